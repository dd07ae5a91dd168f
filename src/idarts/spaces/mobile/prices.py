"""What the options of the mobile space cost: counted, or from measured latencies. The sums are exact."""

from collections.abc import Mapping
from typing import Any

from idarts.arch import Architecture, Skeleton
from idarts.spaces.mobile.chain import FIRST, FURTHER, SHAPES, SKIP, STAGES, from_blocks, to_blocks
from idarts.spaces.mobile.network import InvertedResidual, MobileNetwork, Place, places
from idarts.spaces.prices import Milliseconds, Prices, Whole
from idarts.spaces.supernet import Supernet

Rows = Mapping[str, list[list[float]]]  # the cost of every option in the first, and in a further block of each stage


def prices(whole: Whole, net: Supernet) -> Prices:
    """A block's cost depends on no other block. The further blocks of a stage cost the same."""
    depth = _depth(net)
    least = [[FIRST[0], *[SKIP] * (depth - 1)] for _ in range(STAGES)]
    base = whole(from_blocks(least))

    def more(stage: int, block: int, option: str) -> float:
        changed = [list(options) for options in least]
        changed[stage][block] = option
        return whole(from_blocks(changed)) - base

    first = [[more(stage, 0, option) for option in FIRST] for stage in range(STAGES)]
    further = [[more(stage, 1, option) for option in FURTHER] for stage in range(STAGES)] if depth > 1 else []
    return Prices(base, _options({"first": first, "further": further}, depth), whole)


def latency(skeleton: Skeleton, milliseconds: Milliseconds) -> dict[str, Any]:
    """Milliseconds of every option in the first and in a further block of each stage, and of all the rest."""

    def row(place: Place, options: tuple[str, ...]) -> list[float]:
        shape = place.inputs, place.side, place.side
        modules = (InvertedResidual(place, *SHAPES[option]) for option in options if option != SKIP)
        return [milliseconds(module, shape) for module in modules] + [0.0] * (SKIP in options)

    stages = places(skeleton)
    rows = {"first": [row(first, FIRST) for first, _ in stages], "further": [row(more, FURTHER) for _, more in stages]}
    least = MobileNetwork(from_blocks([[FIRST[0]]] * STAGES), skeleton)
    rest = milliseconds(least, (3, skeleton.image, skeleton.image)) - sum(costs[0] for costs in rows["first"])
    return {"base": max(rest, 0.0), **rows}


def latency_prices(table: Mapping[str, Any], net: Supernet) -> Prices:
    """A network takes as long as its blocks and the rest."""
    base = float(table["base"])
    rows = {group: [[float(cost) for cost in row] for row in table[group]] for group in ("first", "further")}
    for group, options in (("first", FIRST), ("further", FURTHER)):
        if [len(row) for row in rows[group]] != [len(options)] * STAGES:
            raise ValueError(f"{group} has another shape")

    def whole(architecture: Architecture) -> float:
        return base + sum(
            rows["further" if block else "first"][stage][FURTHER.index(option)]
            for stage, options in enumerate(to_blocks(architecture))
            for block, option in enumerate(options)
        )

    return Prices(base, _options(rows, _depth(net)), whole)


def _options(rows: Rows, depth: int) -> dict[str, list[list[float]]]:
    """The rows in the shape of α."""
    further = [row for row in rows["further"] for _ in range(depth - 1)]
    return {"first": rows["first"], **({"further": further} if depth > 1 else {})}


def _depth(net: Supernet) -> int:
    return len(to_blocks(net.architecture())[0])
