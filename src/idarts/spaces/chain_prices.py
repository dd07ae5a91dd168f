"""What the options of a chain cost: counted, or from measured latencies. A block's cost depends on no other block."""

from collections.abc import Callable, Mapping
from typing import Any

from torch import nn

from idarts.arch import Architecture
from idarts.spaces.chain_networks import ChainSupernet
from idarts.spaces.chains import SKIP, Chain
from idarts.spaces.prices import Milliseconds, Prices, Whole

Rows = Mapping[str, list[list[float]]]  # the cost of every option in the first, and in a further block of each stage
Block = tuple[nn.Module, tuple[int, int, int]]  # a block alone, and the shape of its input


def prices(whole: Whole, net: ChainSupernet) -> Prices:
    """The further blocks of a stage cost the same. The sums are exact."""
    chain, depth = net.chain, net.depth
    least = [[chain.first[0], *[SKIP] * (depth - 1)] for _ in range(chain.stages)]
    base = whole(chain.from_blocks(least))

    def more(stage: int, block: int, option: str) -> float:
        changed = [list(options) for options in least]
        changed[stage][block] = option
        return whole(chain.from_blocks(changed)) - base

    stages = range(chain.stages)
    first = [[more(stage, 0, option) for option in chain.first] for stage in stages]
    further = [[more(stage, 1, option) for option in chain.further] for stage in stages] if depth > 1 else []
    return Prices(base, _options({"first": first, "further": further}, depth), whole)


def latency(
    chain: Chain,
    block: Callable[[int, bool, str], Block],
    least: Block,
    milliseconds: Milliseconds,
) -> dict[str, Any]:
    """Milliseconds of every option in the first and in a further block of each stage, and of all the rest.

    `block` builds one: of a stage, further or first, with an option. `least` is the network of the first options alone.
    """

    def row(stage: int, further: bool) -> list[float]:
        times = [milliseconds(*block(stage, further, option)) for option in chain.first]
        return times + [0.0] * further  # for `skip`

    stages = range(chain.stages)
    rows = {"first": [row(stage, False) for stage in stages], "further": [row(stage, True) for stage in stages]}
    rest = milliseconds(*least) - sum(costs[0] for costs in rows["first"])
    return {"base": max(rest, 0.0), **rows}


def latency_prices(table: Mapping[str, Any], net: ChainSupernet) -> Prices:
    """A network takes as long as its blocks and the rest."""
    chain, base = net.chain, float(table["base"])
    rows = {group: [[float(cost) for cost in row] for row in table[group]] for group in ("first", "further")}
    for group, options in (("first", chain.first), ("further", chain.further)):
        if [len(row) for row in rows[group]] != [len(options)] * chain.stages:
            raise ValueError(f"{group} has another shape")

    def whole(architecture: Architecture) -> float:
        return base + sum(
            rows["further" if block else "first"][stage][chain.further.index(option)]
            for stage, options in enumerate(chain.to_blocks(architecture))
            for block, option in enumerate(options)
        )

    return Prices(base, _options(rows, net.depth), whole)


def _options(rows: Rows, depth: int) -> dict[str, list[list[float]]]:
    """The rows in the shape of α."""
    further = [row for row in rows["further"] for _ in range(depth - 1)]
    return {"first": rows["first"], **({"further": further} if depth > 1 else {})}
