"""The search: Algorithm 1 of the paper, its settings, and its checkpoints."""

from idarts.search import checkpoint
from idarts.search.config import METHODS, Alpha, Config, Hypergradient, Weights, config
from idarts.search.loop import Round, Search, Stream

__all__ = [
    "METHODS",
    "Alpha",
    "Config",
    "Hypergradient",
    "Round",
    "Search",
    "Stream",
    "Weights",
    "checkpoint",
    "config",
]
