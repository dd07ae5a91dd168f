"""Cells of NAS-Bench-301 as numbers: eight edges a cell, two into each node, the smaller input first.

A cell is one integer: six bits an edge (three for its input, three for its operation), the edge into the first node
first. The operations have the numbers that the benchmark's public listings give them.
"""

from array import array
from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

from idarts.arch import Architecture, Cell, Edge, parse
from idarts.errors import InputError
from idarts.spaces import darts

CELLS = ("normal", "reduce")
OPS = tuple(op for op in darts.OPS if op != "none")
EDGES = 2 * (darts.NODES - darts.INPUTS)  # of a cell
_BITS, _MASK = 3, 7


def encode(architecture: Any) -> tuple[int, int]:
    """The codes of the two cells, from any form that `idarts.arch.parse` reads.

    >>> encode("DARTS_V1")
    (13952386379986, 550057877586)
    >>> encode("NASNet-A")
    Traceback (most recent call last):
    idarts.errors.InputError: NAS-Bench-301 has cells of four nodes, all joined in the output; NASNet-A is not one
    """
    cell = parse(architecture)
    if cell.space != darts.SPACE:
        raise InputError(f"NAS-Bench-301 has cells of the space {darts.SPACE}, not of {cell.space}")
    normal, reduce = (_encode(cell.cells[name], architecture) for name in CELLS)
    return normal, reduce


def _encode(cell: Cell, name: Any) -> int:
    code = 0
    if cell.nodes != darts.NODES or sorted(cell.output) != list(range(darts.INPUTS, darts.NODES)):
        shown = name if isinstance(name, str) and len(name) < 40 else "this cell"
        raise InputError(f"NAS-Bench-301 has cells of four nodes, all joined in the output; {shown} is not one")
    for edge in sorted(cell.edges, key=lambda edge: (edge.target, edge.source)):
        if edge.op not in OPS:
            raise InputError(f"NAS-Bench-301 has no operation {edge.op}; it has {', '.join(OPS)}")
        code = code << 2 * _BITS | edge.source << _BITS | OPS.index(edge.op)
    pairs = digits(code)
    if any(pairs[place][0] == pairs[place + 1][0] for place in range(0, EDGES, 2)):
        raise InputError(
            "NAS-Bench-301 has cells whose nodes have two different inputs; here a node has the same input twice"
        )
    return code


def digits(code: int) -> list[tuple[int, int]]:
    """The inputs and operations of a cell's edges.

    >>> digits(encode("DARTS_V1")[0])[:2]
    [(0, 3), (1, 3)]
    """
    places = range(2 * _BITS * (EDGES - 1), -1, -2 * _BITS)
    return [(code >> place + _BITS & _MASK, code >> place & _MASK) for place in places]


def code_of(inputs: Sequence[int], ops: Sequence[int]) -> int:
    """The code of a cell from its inputs and operations, two for each node; the two may stand in any order.

    >>> code_of([1, 0] * 4, [3, 2] * 4) == code_of([0, 1] * 4, [2, 3] * 4)
    True
    """
    code = 0
    for place in range(0, EDGES, 2):
        for source, op in sorted(zip(inputs[place : place + 2], ops[place : place + 2], strict=True)):
            code = code << 2 * _BITS | source << _BITS | op
    return code


def decode(normal: int, reduce: int) -> Architecture:
    """The architecture of two codes.

    >>> encode(decode(*encode("DARTS_V2"))) == encode("DARTS_V2")
    True
    """
    cells = {name: _decode(code) for name, code in zip(CELLS, (normal, reduce), strict=True)}
    return Architecture(darts.SPACE, cells)


def _decode(code: int) -> Cell:
    edges = [Edge(source, darts.INPUTS + place // 2, OPS[op]) for place, (source, op) in enumerate(digits(code))]
    return Cell(darts.NODES, edges, range(darts.INPUTS, darts.NODES))


def row_of(normal: int, reduce: int, normals: "array[int]", reduces: "array[int]") -> int | None:
    """The row of a pair of codes in columns that are sorted by both; None if they have no such row.

    >>> row_of(5, 2, array("Q", [3, 5, 5]), array("Q", [9, 1, 2]))
    2
    """
    row = bisect_left(normals, normal)
    while row < len(normals) and normals[row] == normal:
        if reduces[row] == reduce:
            return row
        row += 1
    return None
