"""NAS-Bench-1Shot1: cells of S1, S2 and S3 (each node an operation and so many parents) and their way to 101."""

from collections.abc import Iterator, Sequence
from itertools import combinations, product

from idarts.arch import nas_bench_101
from idarts.arch.record import Architecture, Cell, Edge
from idarts.arch.rules import NAS_BENCH_1SHOT1_PARENTS as PARENTS
from idarts.arch.rules import NAS_BENCH_101_VERTICES
from idarts.errors import InputError

SPACE = "nas-bench-1shot1"
_PADDING = "conv1x1-bn-relu"  # what the benchmark puts on the vertex that it adds; pruning takes it away again


def from_choices(variant: str, ops: Sequence[str], parents: Sequence[Sequence[int]]) -> Architecture:
    """The cell with these operations on nodes 1, 2, … and these parents of nodes 1, 2, …, output.

    >>> a = from_choices("S1", ["maxpool3x3"] * 4, [[0], [0, 1], [0, 1], [0, 1], [1, 2]])
    >>> a.cell.nodes, len(a.cell.edges)
    (6, 9)
    """
    edges = [Edge(source, node) for node, sources in enumerate(parents, start=1) for source in sources]
    cell = Cell(len(parents) + 1, edges, [len(parents)], ops)
    return Architecture(SPACE, {"cell": cell}, variant=variant)


def parents_of(architecture: Architecture) -> list[list[int]]:
    """The parents of nodes 1, 2, …, output.

    >>> parents_of(from_choices("S1", ["maxpool3x3"] * 4, [[0], [0, 1], [0, 1], [0, 1], [1, 2]]))[-1]
    [1, 2]
    """
    cell = _cell(architecture)
    return [[edge.source for edge in cell.edges if edge.target == node] for node in range(1, cell.nodes)]


def parent_choices(variant: str) -> Iterator[tuple[tuple[int, ...], ...]]:
    """Every way to choose the parents in one of the three spaces.

    >>> [sum(1 for _ in parent_choices(variant)) for variant in ("S1", "S2", "S3")]
    [180, 360, 5400]
    """
    if variant not in PARENTS:
        raise InputError(f"unknown variant {variant!r}, expected one of {', '.join(PARENTS)}")
    return product(*(combinations(range(node), count) for node, count in enumerate(PARENTS[variant], start=1)))


def to_matrix(architecture: Architecture) -> tuple[list[list[int]], list[str]]:
    """The 7×7 matrix and operations that NAS-Bench-101's API is asked with; S1 and S2 get an unconnected vertex.

    >>> matrix, ops = to_matrix(from_choices("S1", ["maxpool3x3"] * 4, [[0], [0, 1], [0, 1], [0, 1], [1, 2]]))
    >>> matrix[1], ops[-2:]
    ([0, 0, 1, 1, 1, 0, 1], ['conv1x1-bn-relu', 'output'])
    """
    cell = _cell(architecture)
    output = NAS_BENCH_101_VERTICES - 1
    matrix = [[0] * NAS_BENCH_101_VERTICES for _ in range(NAS_BENCH_101_VERTICES)]
    for edge in cell.edges:
        matrix[edge.source][output if edge.target == cell.nodes - 1 else edge.target] = 1
    padding = [_PADDING] * (NAS_BENCH_101_VERTICES - cell.nodes)
    return matrix, [nas_bench_101.INPUT, *cell.ops, *padding, nas_bench_101.OUTPUT]


def to_nas_bench_101(architecture: Architecture) -> Architecture:
    """The NAS-Bench-101 cell, loose ends dropped.

    >>> a = from_choices("S1", ["maxpool3x3"] * 4, [[0], [0, 1], [0, 1], [0, 1], [1, 2]])
    >>> to_nas_bench_101(a).cell.nodes
    4
    """
    return nas_bench_101.from_matrix(*to_matrix(architecture))


def _cell(architecture: Architecture) -> Cell:
    if architecture.space != SPACE:
        raise InputError(f"an architecture of {architecture.space} is no NAS-Bench-1Shot1 cell")
    return architecture.cell
