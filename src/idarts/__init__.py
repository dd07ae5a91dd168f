"""Gradient-based neural architecture search that a person can run, read and trust.

>>> import idarts
>>> idarts.__version__
'0.1.0'
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from idarts._version import __version__
from idarts.errors import IdartsError, InputError, NotDifferentiableError, NotFiniteError

if TYPE_CHECKING:
    from idarts.export import load
    from idarts.hypergrad import hypergradient
    from idarts.search import search
    from idarts.spaces import Choice, derive, space

__all__ = [
    "Choice",
    "IdartsError",
    "InputError",
    "NotDifferentiableError",
    "NotFiniteError",
    "__version__",
    "derive",
    "hypergradient",
    "load",
    "search",
    "space",
]

# What needs torch is imported when it is asked for: `idarts --help` and `idarts arch list` do without.
_LAZY = {
    "hypergradient": "idarts.hypergrad",
    "load": "idarts.export",
    "Choice": "idarts.spaces",
    "derive": "idarts.spaces",
    "space": "idarts.spaces",
}


def __getattr__(name: str) -> Any:
    if name == "search":  # a sub-package that can be called
        return import_module("idarts.search")
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'idarts' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
