"""What becomes of a trained network: saved, loaded, exported, evaluated, asked about images, measured.

>>> from idarts.export import load, predict
>>> load("nowhere")
Traceback (most recent call last):
idarts.errors.InputError: nowhere is no folder; give a model folder or a finished training run
"""

from idarts.export.card import Card, card_for
from idarts.export.evaluation import data_for, evaluate
from idarts.export.folder import load, model_folder, read_card, save
from idarts.export.formats import FORMATS, export
from idarts.export.prediction import Prediction, predict
from idarts.export.profiling import profile

__all__ = [
    "FORMATS",
    "Card",
    "Prediction",
    "card_for",
    "data_for",
    "evaluate",
    "export",
    "load",
    "model_folder",
    "predict",
    "profile",
    "read_card",
    "save",
]
