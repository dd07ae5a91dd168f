"""Search spaces, one folder each; and what they share: supernets, networks of architectures, counts and prices.

A new space is a new folder whose `__init__.py` calls `SPACES.add(name, Space(name=name, …))`; `Space` lists its parts.
The records of the spaces need no torch. Everything that does is imported on first use.

>>> from idarts.spaces import SPACES
>>> [name for name in SPACES if SPACES[name].has("network") and not SPACES[name].has("supernet")]
['nas-bench-101']
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from idarts.arch import SPACES, Skeleton, Space
from idarts.errors import InputError, nearest

if TYPE_CHECKING:
    from idarts.layers.mixture import Mixture
    from idarts.spaces.choice.supernet import Choice, ChoiceSupernet, derive, tie
    from idarts.spaces.counting import CONVENTIONS, Counts, count, count_module
    from idarts.spaces.networks import network
    from idarts.spaces.prices import Prices, measure_latency
    from idarts.spaces.relaxation import Relaxation, softmax
    from idarts.spaces.supernet import Supernet

__all__ = [
    "CONVENTIONS",
    "SPACES",
    "Choice",
    "ChoiceSupernet",
    "Counts",
    "Mixture",
    "Prices",
    "Relaxation",
    "Skeleton",
    "Space",
    "Supernet",
    "count",
    "count_module",
    "derive",
    "measure_latency",
    "network",
    "softmax",
    "space",
    "tie",
]

_LAZY = {
    "idarts.layers.mixture": ("Mixture",),
    "idarts.spaces.choice.supernet": ("Choice", "ChoiceSupernet", "derive", "tie"),
    "idarts.spaces.counting": ("CONVENTIONS", "Counts", "count", "count_module"),
    "idarts.spaces.networks": ("network",),
    "idarts.spaces.prices": ("Prices", "measure_latency"),
    "idarts.spaces.relaxation": ("Relaxation", "softmax"),
    "idarts.spaces.supernet": ("Supernet",),
}


def space(name: str) -> Space:
    """A space that can be searched, by name.

    >>> space("nas-bench-201").size
    15625
    >>> space("nas-bench-102")
    Traceback (most recent call last):
    idarts.errors.InputError: unknown space 'nas-bench-102'; did you mean nas-bench-201?
    """
    space = SPACES.parts().get(name)
    if isinstance(space, Space) and space.has("supernet"):
        return space
    searchable = sorted(known for known in SPACES if SPACES[known].has("supernet"))
    if space is not None:
        wrong = "has no supernet to search" if isinstance(space, Space) else f"is a {type(space).__name__}, not a Space"
        raise InputError(f"the space {name} {wrong}; there are {', '.join(searchable)}")
    raise InputError(
        SPACES.unknown(name) if ":" in str(name) else f"unknown space {name!r}; {nearest(name, searchable)}"
    )


def __getattr__(name: str) -> Any:
    module = next((module for module, names in _LAZY.items() if name in names), None)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(module), name)
