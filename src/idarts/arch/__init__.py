"""Architectures as plain data: one record, lossless converters, published cells, drawings.

What is particular to a space comes from its record in `SPACES`.

>>> from idarts.arch import convert
>>> convert("|none~0|+|none~0|none~1|+|none~0|none~1|none~2|", "index")
'1651'
"""

from importlib import import_module
from types import ModuleType

from idarts.arch import registry
from idarts.arch.drawing import draw
from idarts.arch.forms import as_text, convert, parse
from idarts.arch.growth import Block, Growth
from idarts.arch.json_form import from_data, from_json, to_data, to_json
from idarts.arch.record import Architecture, Cell, Edge
from idarts.arch.skeleton import Skeleton
from idarts.arch.space import SPACES, Absent, Space, lazy, mutate, sample, space_of
from idarts.arch.style import Style

__all__ = [
    "SPACES",
    "Absent",
    "Architecture",
    "Block",
    "Cell",
    "Edge",
    "Growth",
    "Skeleton",
    "Space",
    "Style",
    "as_text",
    "convert",
    "draw",
    "from_data",
    "from_json",
    "lazy",
    "mutate",
    "parse",
    "registry",
    "sample",
    "space_of",
    "to_data",
    "to_json",
]


def __getattr__(name: str) -> ModuleType:
    """The folders of the spaces, some of which were modules of this package in version 0.1."""
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return import_module(f"{SPACES.package}.{name}")
    except ModuleNotFoundError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
