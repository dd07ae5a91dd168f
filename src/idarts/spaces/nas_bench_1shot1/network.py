"""Networks of NAS-Bench-1Shot1's cells are those of NAS-Bench-101."""

from idarts.arch import Architecture, Skeleton
from idarts.spaces.nas_bench_1shot1.cells import to_nas_bench_101
from idarts.spaces.nas_bench_101.network import NasBench101Network


def network(architecture: Architecture, skeleton: Skeleton, in_channels: int = 3) -> NasBench101Network:
    """The network of the NAS-Bench-101 cell."""
    return NasBench101Network(to_nas_bench_101(architecture), skeleton, in_channels)
