"""Search spaces: the networks of their architectures, and what those cost."""

from idarts.spaces.counting import CONVENTIONS, Counts, count, count_module
from idarts.spaces.macro import MACROS, Macro
from idarts.spaces.networks import network

__all__ = ["CONVENTIONS", "MACROS", "Counts", "Macro", "count", "count_module", "network"]
