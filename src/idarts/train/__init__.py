"""From an architecture to a trained network."""

from idarts.train.fit import accuracy, fit

__all__ = ["accuracy", "fit"]
