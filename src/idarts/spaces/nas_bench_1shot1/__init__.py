"""NAS-Bench-1Shot1 (Zela et al., ICLR 2020, arXiv:2001.10422): three spaces of cells that NAS-Bench-101 holds.

>>> from idarts.arch import SPACES
>>> [SPACES[f"nas-bench-1shot1-{number}"].size for number in ("s1", "s2", "s3")]
[14580, 29160, 1312200]
"""

from functools import partial
from typing import Any

from idarts.arch import SPACES, Absent, Architecture, Skeleton, Space, lazy
from idarts.spaces import nas_bench_101
from idarts.spaces.nas_bench_1shot1 import cells
from idarts.spaces.nas_bench_1shot1.cells import (
    PARENTS,
    SPACE,
    from_choices,
    parent_choices,
    parents_of,
    to_matrix,
    to_nas_bench_101,
    to_text,
)

__all__ = [
    "PARENTS",
    "SPACE",
    "from_choices",
    "parent_choices",
    "parents_of",
    "to_matrix",
    "to_nas_bench_101",
    "to_text",
]


def _network(architecture: Architecture, skeleton: Skeleton, in_channels: int = 3) -> Any:
    return SPACES[nas_bench_101.SPACE].network(to_nas_bench_101(architecture), skeleton, in_channels)


def _identity(architecture: Architecture) -> str:
    return nas_bench_101.fingerprint(to_nas_bench_101(architecture))


for _variant in PARENTS:
    _name = f"{SPACE}-{_variant.lower()}"
    SPACES.add(
        _name,
        Space(
            name=_name,
            record=SPACE,
            variant=_variant,
            check=cells.rules(_variant),
            forms={nas_bench_101.SPACE: to_text},
            labels=cells.labels,
            size=cells.size(_variant),
            identity=_identity,
            sample=cells.sampler(_variant),
            mutate=cells.mutate,
            supernet=partial(lazy(f"{__name__}.supernet:NasBench1Shot1Supernet"), _variant),
            network=_network,
            skeletons=nas_bench_101.SKELETONS,
            search_skeleton=Skeleton(depth=3, channels=16, classes=10, image=32),
            prices=Absent("an edge changes what every operation costs"),
        ),
    )
