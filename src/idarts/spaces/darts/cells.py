"""DARTS' cells: rules, random cells, names for decisions."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from math import comb, prod
from random import Random

from idarts.arch import Architecture, Block, Cell, Edge, Growth, Style
from idarts.arch.rules import CellRules, counted, expect
from idarts.arch.style import family
from idarts.errors import InputError

SPACE = "darts"
OPS = (
    "none",
    "max_pool_3x3",
    "avg_pool_3x3",
    "skip_connect",
    "sep_conv_3x3",
    "sep_conv_5x5",
    "dil_conv_3x3",
    "dil_conv_5x5",
)
NOISE = "noise"
# DARTS does not search them, but published cells that are written as genotypes use them (NASNet, AmoebaNet, SETN), and
# a variant of the space has noise.
OTHER_OPS = ("sep_conv_7x7", "conv_7x1_1x7", "conv_3x1_1x3", NOISE)
INPUTS, NODES = 2, 6
EDGES = tuple((source, target) for target in range(INPUTS, NODES) for source in range(target))
STYLE = Style(
    inputs=("c_k−2", "c_k−1"),
    output="c_k",
    joins=True,
    first=0,
    titles={"normal": "normal cell", "reduce": "reduction cell"},
    family=lambda op: "none" if op == NOISE else family(op),  # nothing passes from the edge's source to its target
)


def _check_cell(cell: Cell) -> None:
    expect(bool(cell.output), "no output, expected the nodes that are concatenated")
    sources = {edge.source for edge in cell.edges}
    # Bounded by the edges, not by `nodes`: a typed-in node count of a billion must not cost a billion steps.
    needed = 2 * (cell.nodes - 2)
    expect(len(cell.edges) == needed, f"{counted(len(cell.edges), 'edge')}, expected {needed} (two into each node)")
    for node in range(2, cell.nodes):
        entering = sum(edge.target == node for edge in cell.edges)
        expect(entering == 2, f"{counted(entering, 'edge')} into node {node}, expected 2")
        expect(
            node in cell.output or node in sources,
            f"node {node} dangles: it is neither in the output {list(cell.output)} nor an input of a later node",
        )


def rules(ops: Sequence[str]) -> CellRules:
    """The check of a space whose cells have these operations.

    >>> from idarts.arch import parse
    >>> rules(["skip_connect", "sep_conv_3x3"])(parse("DARTS_V1"))
    Traceback (most recent call last):
    idarts.errors.InputError: darts reduce cell: edge 0→2: unknown operation 'max_pool_3x3', \
expected one of skip_connect, sep_conv_3x3
    """
    return CellRules(ops=tuple(ops), cells=("normal", "reduce"), inputs=INPUTS, more=_check_cell)


def size(ops: Sequence[str] = OPS) -> int:
    """How many architectures a search among these operations can give: `none` is never one of them.

    >>> size(["skip_connect", "sep_conv_3x3"]) == (1 * 3 * 6 * 10 * 2**8) ** 2
    True
    """
    return prod(comb(node, 2) * len(_real(ops)) ** 2 for node in range(INPUTS, NODES)) ** 2


def sample(random: Random, ops: Sequence[str] = OPS) -> Architecture:
    """Two different predecessors of each node, and operations other than none.

    >>> len(sample(Random(0)).cells["normal"].edges)
    8
    """
    return Architecture(SPACE, {"normal": _sampled_cell(random, ops), "reduce": _sampled_cell(random, ops)})


def mutate(architecture: Architecture, random: Random, ops: Sequence[str] = OPS) -> Architecture:
    """Another operation on one edge, or another predecessor for it.

    >>> cell = sample(Random(0))
    >>> changed = mutate(cell, Random(1))
    >>> sum(len(set(cell.cells[name].edges) - set(changed.cells[name].edges)) for name in cell.cells)
    1
    """
    while True:
        name = random.choice(("normal", "reduce"))
        cell = architecture.cells[name]
        place = random.randrange(len(cell.edges))
        edge = cell.edges[place]
        others = [*cell.edges[:place], *cell.edges[place + 1 :]]
        taken = {edge.source, *(other.source for other in others if other.target == edge.target)}
        sources = [source for source in range(edge.target) if source not in taken]
        if sources and random.random() < 0.5:
            edge = edge._replace(source=random.choice(sources))
        else:
            edge = edge._replace(op=random.choice([op for op in _real(ops) if op != edge.op]))
        try:
            return Architecture(SPACE, {**architecture.cells, name: Cell(cell.nodes, [*others, edge], cell.output)})
        except InputError:  # a node that is not in the output lost its only reader
            continue


def growth(ops: Sequence[str] = OPS) -> Growth:
    """Two different nodes before it enter each node, as in `sample`; a cell may end after any node.

    >>> [len(growth().blocks(node)) for node in range(4)]  # C(n+1, 2)·7² for node n
    [49, 147, 294, 490]
    """
    inputs = tuple(tuple(combinations(range(node), 2)) for node in range(INPUTS, NODES))
    return Growth(inputs, tuple(_real(ops)), _grown, cells=("normal", "reduce"))


def _grown(cells: Mapping[str, Sequence[Block]]) -> Architecture:
    return Architecture(SPACE, {name: _grown_cell(blocks) for name, blocks in cells.items()})


def _grown_cell(blocks: Sequence[Block]) -> Cell:
    edges = [Edge(source, node, op) for node, block in enumerate(blocks, start=INPUTS) for source, op in block]
    return Cell(INPUTS + len(blocks), edges, range(INPUTS, INPUTS + len(blocks)))


def labels(_group: str, _shape: tuple[int, ...], ops: Sequence[str] = OPS) -> tuple[list[str], list[str]]:
    """Edges and operations, in the words of the drawing.

    >>> labels("normal", (14, 8))[0][:3]
    ['c(k−2) → 0', 'c(k−1) → 0', 'c(k−2) → 1']
    """
    inputs = {0: "c(k−2)", 1: "c(k−1)"}
    edges = [f"{inputs.get(source, source - INPUTS)} → {target - INPUTS}" for source, target in EDGES]
    return edges, [STYLE.label(op) for op in ops]


def _sampled_cell(random: Random, ops: Sequence[str]) -> Cell:
    edges = [
        Edge(source, node, random.choice(_real(ops)))
        for node in range(INPUTS, NODES)
        for source in random.sample(range(node), 2)
    ]
    return Cell(NODES, edges, range(INPUTS, NODES))


def _real(ops: Sequence[str]) -> list[str]:
    """The operations that a cell can have: all but none."""
    return [op for op in ops if op != "none"]
