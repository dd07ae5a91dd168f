"""From an architecture to a trained network."""

from idarts.train.loop import Round, Training, evaluate
from idarts.train.presets import PRESETS
from idarts.train.run import TrainResult, run, train
from idarts.train.settings import TrainConfig, Weights

__all__ = ["PRESETS", "Round", "TrainConfig", "TrainResult", "Training", "Weights", "evaluate", "run", "train"]
