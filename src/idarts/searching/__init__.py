"""The search: Algorithm 1 of the paper, its settings, its runs."""

from idarts.searching.api import search
from idarts.searching.loop import Search
from idarts.searching.round import Round, Stream
from idarts.searching.run import RunConfig, SearchResult
from idarts.searching.settings import METHODS, Alpha, Config, Hypergradient, Weights, config

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
