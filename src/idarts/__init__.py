"""Gradient-based neural architecture search that a person can run, read and trust.

>>> import idarts
>>> idarts.__version__
'0.2.0'
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from idarts._version import __version__
from idarts.errors import IdartsError, InputError, NotDifferentiableError, NotFiniteError

if TYPE_CHECKING:
    from idarts.fitting import fit
    from idarts.fitting.classifier import ImageClassifier as ImageClassifier
    from idarts.hypergrad import hypergradient
    from idarts.searching import search
    from idarts.spaces import Choice, derive, space
    from idarts.training import evaluate, export, load, predict, train

__all__ = [
    "Choice",
    "IdartsError",
    "InputError",
    "NotDifferentiableError",
    "NotFiniteError",
    "__version__",
    "derive",
    "evaluate",
    "export",
    "fit",
    "hypergradient",
    "load",
    "predict",
    "search",
    "space",
    "train",
]

# Imported on first use, because these need torch: `idarts --help` and `idarts arch list` do not.
_LAZY = {
    "ImageClassifier": "idarts.fitting.classifier",
    "fit": "idarts.fitting",
    "hypergradient": "idarts.hypergrad",
    "search": "idarts.searching",
    "Choice": "idarts.spaces",
    "derive": "idarts.spaces",
    "space": "idarts.spaces",
    "evaluate": "idarts.training",
    "export": "idarts.training",
    "load": "idarts.training",
    "predict": "idarts.training",
    "train": "idarts.training",
}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'idarts' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, *_LAZY})  # `from idarts import *` must not need scikit-learn
