"""The search: Algorithm 1 of the paper, its settings, its runs. The package can be called: `idarts.search(…)`."""

import sys
from types import ModuleType
from typing import Any

from idarts.search.api import search
from idarts.search.loop import Search
from idarts.search.round import Round, Stream
from idarts.search.run import RunConfig, SearchResult
from idarts.search.settings import METHODS, Alpha, Config, Hypergradient, Weights, config

__all__ = [
    "METHODS",
    "Alpha",
    "Config",
    "Hypergradient",
    "Round",
    "RunConfig",
    "Search",
    "SearchResult",
    "Stream",
    "Weights",
    "config",
    "search",
]


class _Callable(ModuleType):
    """Python gives a package's name to its sub-package; this lets `idarts.search` be both that and the function."""

    def __call__(self, *arguments: Any, **settings: Any) -> SearchResult:
        return search(*arguments, **settings)


sys.modules[__name__].__class__ = _Callable
