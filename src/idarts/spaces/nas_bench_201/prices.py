"""What the options of NAS-Bench-201 cost: counted, or from measured latencies."""

from collections.abc import Mapping
from typing import Any

from idarts.arch import Architecture, Skeleton
from idarts.spaces.nas_bench_201.cells import EDGES, OPS, from_ops, to_ops
from idarts.spaces.nas_bench_201.network import NasBench201Network
from idarts.spaces.operations import operation
from idarts.spaces.prices import Milliseconds, Prices, Whole
from idarts.spaces.supernet import Supernet

STAGES = 3


def prices(whole: Whole, _net: Supernet) -> Prices:
    """All edges cost the same, so one is enough; without operations only the skeleton is left. The sum is exact."""
    rest = ["none"] * (len(EDGES) - 1)
    costs = [whole(from_ops([op, *rest])) for op in OPS]
    base = costs[OPS.index("none")]
    return Prices(base, {"cell": [[cost - base for cost in costs] for _ in EDGES]}, whole)


def latency(skeleton: Skeleton, milliseconds: Milliseconds) -> dict[str, Any]:
    """Milliseconds of the skeleton, and of every operation in each of the three stages."""
    ops: dict[str, list[float]] = {"none": [0.0] * STAGES}  # is not run at all
    for op in OPS[1:]:
        ops[op] = []
        for stage in range(STAGES):
            channels, side = skeleton.channels << stage, -(-skeleton.image // (1 << stage))
            ops[op].append(milliseconds(operation(op, channels), (channels, side, side)))
    bare = NasBench201Network(from_ops(["none"] * len(EDGES)), skeleton)
    return {"base": milliseconds(bare, (3, skeleton.image, skeleton.image)), "ops": ops}


def latency_prices(table: Mapping[str, Any], _net: Supernet) -> Prices:
    """A network takes as long as its skeleton and `depth` cells in each stage."""
    base, depth = float(table["base"]), int(table["macro"]["depth"])
    row = [depth * sum(map(float, table["ops"][op])) for op in OPS]

    def whole(architecture: Architecture) -> float:
        return base + sum(row[OPS.index(op)] for op in to_ops(architecture))

    return Prices(base, {"cell": [row for _ in EDGES]}, whole)
