"""From an architecture to a trained network."""

from idarts.train.config import TrainConfig, Weights
from idarts.train.loop import Round, Training, evaluate
from idarts.train.presets import PRESETS
from idarts.train.run import TrainResult, run, train

__all__ = ["PRESETS", "Round", "TrainConfig", "TrainResult", "Training", "Weights", "evaluate", "run", "train"]
