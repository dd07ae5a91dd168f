"""What the options of DARTS' space cost."""

from idarts.arch import Architecture, Cell, Edge
from idarts.spaces.darts.cells import EDGES, INPUTS, NODES, SPACE
from idarts.spaces.darts.supernet import DartsSupernet
from idarts.spaces.prices import Prices, Whole

_FREE = "avg_pool_3x3"


def prices(whole: Whole, net: DartsSupernet) -> Prices:
    """Edges cost the same, except those that halve the image: from the inputs of a reduction cell. Pools cost nothing.

    The sum is exact for the two edges of each node that an architecture keeps.
    """
    free = {"normal": _cell(0, _FREE), "reduce": _cell(0, _FREE)}
    base = whole(Architecture(SPACE, free))

    def price(name: str, source: int, op: str) -> float:
        return 0.0 if op == "none" else whole(Architecture(SPACE, {**free, name: _cell(source, op)})) - base

    rows = {(name, source): [price(name, source, op) for op in net.ops] for name in free for source in (0, INPUTS)}
    options = {name: [rows[name, INPUTS if edge[0] >= INPUTS else 0] for edge in EDGES] for name in free}
    return Prices(base, options, whole, none=False)


def _cell(source: int, op: str) -> Cell:
    """Pools everywhere, but for one edge into node 3."""
    pools = [Edge(start, target, _FREE) for target in range(INPUTS, NODES) for start in range(INPUTS)]
    edges = [Edge(source, 3, op) if (edge.source, edge.target) == (0, 3) else edge for edge in pools]
    return Cell(NODES, edges, range(INPUTS, NODES))
