"""Training from scratch, and then evaluation, prediction, export and profiling.

>>> from idarts.training import load
>>> load("nowhere")
Traceback (most recent call last):
idarts.errors.InputError: nowhere is not a folder; give a model folder, or that of a finished training or fit
"""

from idarts.training.card import Card, card_for
from idarts.training.evaluation import data_for, evaluate, loss_and_accuracy
from idarts.training.formats import FORMATS, export
from idarts.training.loop import Round, Training
from idarts.training.model_folder import find_model, load, read_card, save
from idarts.training.prediction import Prediction, predict, probabilities
from idarts.training.presets import PRESETS
from idarts.training.profiling import profile
from idarts.training.run import TrainResult, run, train
from idarts.training.settings import TrainConfig, Weights

__all__ = [
    "FORMATS",
    "PRESETS",
    "Card",
    "Prediction",
    "Round",
    "TrainConfig",
    "TrainResult",
    "Training",
    "Weights",
    "card_for",
    "data_for",
    "evaluate",
    "export",
    "find_model",
    "load",
    "loss_and_accuracy",
    "predict",
    "probabilities",
    "profile",
    "read_card",
    "run",
    "save",
    "train",
]
