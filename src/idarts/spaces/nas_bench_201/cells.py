"""NAS-Bench-201's cell: rules, the string, the official index, random cells, names for decisions.

The index needs no table: the benchmark listed all cells in the order of their operations (first edge slowest) and
shuffled the list with Python's Mersenne twister, seed 88. `_official_order` does the same with `getrandbits`, whose
output is fixed, rather than `random.shuffle`, whose use of it is not.
"""

import re
from collections.abc import Sequence
from functools import cache
from itertools import product
from random import Random
from reprlib import repr as short

from idarts.arch import Architecture, Block, Cell, Edge, Growth
from idarts.arch.rules import CellRules, counted, expect
from idarts.arch.style import label
from idarts.errors import InputError

SPACE = "nas-bench-201"
OPS = ("none", "skip_connect", "nor_conv_1x1", "nor_conv_3x3", "avg_pool_3x3")
NODES = 4
EDGES = ((0, 1), (0, 2), (1, 2), (0, 3), (1, 3), (2, 3))
SIZE = len(OPS) ** len(EDGES)
_SEED = 88
_SHAPE = "|op~0|+|op~0|op~1|+|op~0|op~1|op~2|"
_INDEX = re.compile(SPACE + r":\s*([0-9]{1,9})", re.IGNORECASE)


def _check_cell(cell: Cell) -> None:
    expect(cell.nodes == NODES, f"{counted(cell.nodes, 'node')}, expected {NODES}")
    pairs = sorted((edge.target, edge.source) for edge in cell.edges)
    complete = pairs == [(target, source) for source, target in EDGES]
    named = " ".join(f"{source}→{target}" for source, target in EDGES)
    expect(complete, f"{counted(len(pairs), 'edge')}, expected the {len(EDGES)} edges {named}, each once")
    expect(cell.output == (NODES - 1,), f"output {list(cell.output)}, expected [{NODES - 1}]")


check = CellRules(ops=OPS, more=_check_cell)


def parse(form: object) -> Architecture | None:
    """The architecture of a text that starts like the string, or is nas-bench-201:INDEX.

    >>> to_index(parse("nas-bench-201:7"))
    7
    """
    if not isinstance(form, str):
        return None
    index = _INDEX.fullmatch(form)
    return from_index(int(index[1])) if index else from_string(form) if form.startswith("|") else None


def from_ops(ops: tuple[str, ...] | list[str]) -> Architecture:
    """The cell with these operations on its edges 0→1, 0→2, 1→2, 0→3, 1→3, 2→3.

    >>> to_string(from_ops(["skip_connect"] * 5 + ["none"]))
    '|skip_connect~0|+|skip_connect~0|skip_connect~1|+|skip_connect~0|skip_connect~1|none~2|'
    """
    if len(ops) != len(EDGES):
        raise InputError(f"{len(ops)} operations, expected {len(EDGES)}: one for each edge of a NAS-Bench-201 cell")
    edges = [Edge(*edge, op) for edge, op in zip(EDGES, ops, strict=True)]
    return Architecture(SPACE, {"cell": Cell(NODES, edges, [NODES - 1])})


def to_ops(architecture: Architecture) -> tuple[str, ...]:
    """The operations in the order of the edges 0→1, 0→2, 1→2, 0→3, 1→3, 2→3.

    >>> to_ops(from_index(0))[:2]
    ('avg_pool_3x3', 'nor_conv_1x1')
    """
    if architecture.space != SPACE:
        raise InputError(f"an architecture of {architecture.space} is not a NAS-Bench-201 cell")
    return tuple(edge.op or "" for edge in architecture.cell.edges)


def from_string(text: str) -> Architecture:
    """The record of a NAS-Bench-201 string.

    >>> to_index(from_string("|none~0|+|none~0|none~1|+|none~0|none~1|none~2|"))
    1651
    >>> from_string("|none~0|+|none~0|none~1|")
    Traceback (most recent call last):
    idarts.errors.InputError: not a NAS-Bench-201 string: '|none~0|+|none~0|none~1|' has 2 nodes, \
expected the 3 of |op~0|+|op~0|op~1|+|op~0|op~1|op~2|
    """
    groups = re.sub(r"\s+", "", text).split("+")
    wrong = f"not a NAS-Bench-201 string: {short(text)}"
    if len(groups) != 3:
        raise InputError(f"{wrong} has {len(groups)} nodes, expected the 3 of {_SHAPE}")
    ops = []
    for node, group in enumerate(groups, start=1):
        if len(group) < 2 or group[0] != "|" or group[-1] != "|":
            raise InputError(f"{wrong}: node {node} is {short(group)}, expected |op~0|…| as in {_SHAPE}")
        parts = group[1:-1].split("|")
        if len(parts) != node:
            raise InputError(f"{wrong}: node {node} has {len(parts)} edges, expected {node} as in {_SHAPE}")
        for source, part in enumerate(parts):
            op, _, number = part.rpartition("~")
            if number != str(source):
                raise InputError(f"{wrong}: edge {short(part)} of node {node}, expected an operation and ~{source}")
            ops.append(op)
    return from_ops(ops)


def to_string(architecture: Architecture) -> str:
    """The NAS-Bench-201 string of a record.

    >>> to_string(from_ops(["none"] * 6))
    '|none~0|+|none~0|none~1|+|none~0|none~1|none~2|'
    """
    ops = iter(to_ops(architecture))
    groups = ("|".join(f"{next(ops)}~{source}" for source in range(node)) for node in (1, 2, 3))
    return "+".join(f"|{group}|" for group in groups)


def from_index(index: int) -> Architecture:
    """The cell at an official index (that of NAS-Bench-201 and of NATS-Bench's topology space).

    >>> to_string(from_index(0))
    '|avg_pool_3x3~0|+|nor_conv_1x1~0|skip_connect~1|+|nor_conv_1x1~0|skip_connect~1|skip_connect~2|'
    """
    if isinstance(index, bool) or not isinstance(index, int) or not 0 <= index < SIZE:
        raise InputError(f"NAS-Bench-201 index {short(index)}, expected 0 to {SIZE - 1}")
    return from_ops(_official_order()[index])


def to_index(architecture: Architecture) -> int:
    """The official index of a cell.

    >>> to_index(from_index(1462))
    1462
    """
    return _official_positions()[to_ops(architecture)]


def sample(random: Random) -> Architecture:
    """A cell, each with the same probability.

    >>> sample(Random(0)) == sample(Random(0))
    True
    """
    return from_index(random.randrange(SIZE))


def mutate(architecture: Architecture, random: Random) -> Architecture:
    """Another operation on one edge.

    >>> cell = from_index(0)
    >>> sum(a != b for a, b in zip(to_ops(cell), to_ops(mutate(cell, Random(0)))))
    1
    """
    ops = list(to_ops(architecture))
    edge = random.randrange(len(ops))
    ops[edge] = random.choice([op for op in OPS if op != ops[edge]])
    return from_ops(ops)


def growth() -> Growth:
    """Node n is entered by all nodes before it.

    A cell with fewer nodes is one whose last node is handed on to the output by skip connections:

    >>> to_string(growth().same([((0, "nor_conv_3x3"),)]))
    '|nor_conv_3x3~0|+|none~0|skip_connect~1|+|none~0|none~1|skip_connect~2|'
    """
    inputs = tuple((tuple(range(node)),) for node in range(1, NODES))
    return Growth(inputs, OPS, lambda cells: _grown(cells["cell"]))


def _grown(blocks: Sequence[Block]) -> Architecture:
    ops = {(source, node): op for node, block in enumerate(blocks, start=1) for source, op in block}
    rest = {edge: "skip_connect" if edge[1] == edge[0] + 1 else "none" for edge in EDGES if edge[1] > len(blocks)}
    return from_ops([{**rest, **ops}[edge] for edge in EDGES])


def labels(_group: str, _shape: tuple[int, ...]) -> tuple[list[str], list[str]]:
    """Edges and operations, in the words of the drawing.

    >>> labels("cell", (6, 5))[0][:4]
    ['in → 1', 'in → 2', '1 → 2', 'in → out']
    """
    ends = {0: "in", NODES - 1: "out"}
    edges = [f"{ends.get(source, source)} → {ends.get(target, target)}" for source, target in EDGES]
    return edges, [label(op) for op in OPS]


@cache
def _official_order() -> list[tuple[str, ...]]:
    cells = list(product(OPS, repeat=len(EDGES)))
    draw = Random(_SEED).getrandbits
    for last in range(len(cells) - 1, 0, -1):
        bits = (last + 1).bit_length()
        chosen = draw(bits)
        while chosen > last:
            chosen = draw(bits)
        cells[last], cells[chosen] = cells[chosen], cells[last]
    return cells


@cache
def _official_positions() -> dict[tuple[str, ...], int]:
    return {ops: index for index, ops in enumerate(_official_order())}
