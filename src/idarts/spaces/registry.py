"""The search spaces by name: what a search needs to begin."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import comb, prod

from idarts.arch.rules import DARTS_OPS, NAS_BENCH_1SHOT1_PARENTS, NAS_BENCH_201_EDGES, NAS_BENCH_201_OPS
from idarts.arch.rules import NAS_BENCH_101_OPS as VERTEX_OPS
from idarts.errors import require_known
from idarts.spaces.darts_supernet import INPUTS, NODES, DartsSupernet
from idarts.spaces.macro import Macro
from idarts.spaces.nas_bench_1shot1_supernet import NasBench1Shot1Supernet
from idarts.spaces.nas_bench_201_supernet import NasBench201Supernet
from idarts.spaces.supernet import Supernet


@dataclass(frozen=True)
class Space:
    """A space: its supernet, the skeleton in which the papers search it, and how many architectures it describes.

    `size` counts descriptions; different ones may be the same network.
    """

    name: str
    supernet: Callable[..., Supernet]  # of a macro, and of in_channels and relaxation by name
    macro: Macro
    size: int


def _darts_size() -> int:
    cell = prod(comb(node, 2) * (len(DARTS_OPS) - 1) ** 2 for node in range(INPUTS, NODES))
    return cell**2


def _one_shot(variant: str) -> Space:
    parents = NAS_BENCH_1SHOT1_PARENTS[variant]
    size = prod(comb(node, count) for node, count in enumerate(parents, start=1)) * len(VERTEX_OPS) ** (
        len(parents) - 1
    )
    macro = Macro(depth=3, channels=16, classes=10, image=32)
    return Space(f"nas-bench-1shot1-{variant.lower()}", partial(NasBench1Shot1Supernet, variant), macro, size)


_ALL = (
    Space(
        "nas-bench-201",
        NasBench201Supernet,
        Macro(depth=5, channels=16, classes=10, image=32),
        len(NAS_BENCH_201_OPS) ** len(NAS_BENCH_201_EDGES),
    ),
    *(_one_shot(variant) for variant in NAS_BENCH_1SHOT1_PARENTS),
    Space("darts", DartsSupernet, Macro(depth=8, channels=16, classes=10, image=32), _darts_size()),
)
SPACES = {space.name: space for space in _ALL}


def space(name: str) -> Space:
    """A search space by name.

    >>> space("nas-bench-201").size
    15625
    >>> space("nas-bench-102")
    Traceback (most recent call last):
    idarts.errors.InputError: unknown space 'nas-bench-102'; did you mean nas-bench-201?
    """
    require_known("space", name, SPACES)
    return SPACES[name]
