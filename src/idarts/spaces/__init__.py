"""Search spaces: supernets with weights and α, the networks of their architectures, and what those cost."""

from idarts.layers.mixture import Mixture
from idarts.spaces.choice import Choice, ChoiceSupernet, derive, tie
from idarts.spaces.counting import CONVENTIONS, Counts, count, count_module
from idarts.spaces.macro import MACROS, Macro
from idarts.spaces.networks import network
from idarts.spaces.registry import SPACES, Space, space
from idarts.spaces.relaxation import Relaxation, softmax
from idarts.spaces.supernet import Supernet

__all__ = [
    "CONVENTIONS",
    "MACROS",
    "SPACES",
    "Choice",
    "ChoiceSupernet",
    "Counts",
    "Macro",
    "Mixture",
    "Relaxation",
    "Space",
    "Supernet",
    "count",
    "count_module",
    "derive",
    "network",
    "softmax",
    "space",
    "tie",
]
