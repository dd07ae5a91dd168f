"""NAS-Bench-101 (Ying et al., ICML 2019, arXiv:1902.09635): cells with operations on up to seven vertices.

It has a network and a table, but no supernet: NAS-Bench-1Shot1 has those for parts of it.

>>> from idarts.spaces import nas_bench_101
>>> nas_bench_101.fingerprint(nas_bench_101.from_matrix([[0, 1], [0, 0]], []))
'043721b9c7fe8c5fad811d47d83132ec'
"""

from idarts.arch import SPACES, Skeleton, Space, lazy
from idarts.spaces.nas_bench_101 import cells
from idarts.spaces.nas_bench_101.cells import (
    EDGES,
    INPUT,
    OPS,
    OUTPUT,
    SPACE,
    VERTICES,
    check_graph,
    fingerprint,
    from_matrix,
    to_matrix,
    to_text,
)

__all__ = [
    "EDGES",
    "INPUT",
    "OPS",
    "OUTPUT",
    "SKELETONS",
    "SPACE",
    "VERTICES",
    "check_graph",
    "fingerprint",
    "from_matrix",
    "to_matrix",
    "to_text",
]

SKELETONS = {"cifar10": Skeleton(depth=3, channels=128, classes=10, image=32)}

SPACES.add(
    SPACE,
    Space(
        name=SPACE,
        check=cells.check,
        parse=cells.parse,
        forms={SPACE: to_text},
        identity=fingerprint,
        sample=cells.sample,
        network=lazy(f"{__name__}.network:NasBench101Network"),
        skeletons=SKELETONS,
    ),
)
