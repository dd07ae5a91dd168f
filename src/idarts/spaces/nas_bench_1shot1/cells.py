"""NAS-Bench-1Shot1's cells, in S1, S2 and S3: each node has an operation and a fixed number of parents."""

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, product
from math import comb, prod
from random import Random

from idarts.arch import Architecture, Cell, Edge
from idarts.arch.rules import CellRules, counted, expect
from idarts.arch.style import label
from idarts.errors import InputError
from idarts.spaces import nas_bench_101

SPACE = "nas-bench-1shot1"
# Parents of every node after the input, the output last.
PARENTS = {"S1": (1, 2, 2, 2, 2), "S2": (1, 1, 2, 2, 3), "S3": (1, 1, 1, 2, 2, 2)}
COLUMNS = ("maxpool3x3", "conv3x3-bn-relu", "conv1x1-bn-relu")  # of α: the operations in another order
_PADDING = "conv1x1-bn-relu"  # what the benchmark puts on the vertex that it adds; pruning removes it again


def rules(variant: str) -> CellRules:
    """The `check` of one of the three spaces."""
    parents = PARENTS[variant]

    def check_cell(cell: Cell) -> None:
        expected = len(parents) + 1
        expect(cell.nodes == expected, f"{counted(cell.nodes, 'node')}, expected {expected} in {variant}")
        nas_bench_101.check_graph(cell)
        for node, number in enumerate(parents, start=1):
            entering = sum(edge.target == node for edge in cell.edges)
            expect(entering == number, f"node {node} has {counted(entering, 'parent')}, expected {number} in {variant}")

    return CellRules(ops=nas_bench_101.OPS, on_vertices=True, more=check_cell)


def size(variant: str) -> int:
    """How many cells one of the three spaces describes.

    >>> size("S1")
    14580
    """
    parents = PARENTS[variant]
    wirings = prod(comb(node, count) for node, count in enumerate(parents, start=1))
    return wirings * prod(len(nas_bench_101.OPS) for _ in parents[1:])


def sampler(variant: str) -> Callable[[Random], Architecture]:
    """The `sample` of one of the three spaces: parents and operations, each with the same probability."""

    def sample(random: Random) -> Architecture:
        counts = PARENTS[variant]
        parents = [sorted(random.sample(range(node), count)) for node, count in enumerate(counts, start=1)]
        return from_choices(variant, random.choices(nas_bench_101.OPS, k=len(counts) - 1), parents)

    return sample


def mutate(architecture: Architecture, random: Random) -> Architecture:
    """Another operation on one node, or another parent for it or for the output.

    >>> cell = from_choices("S1", ["maxpool3x3"] * 4, [[0], [0, 1], [0, 1], [0, 1], [1, 2]])
    >>> mutate(cell, Random(1)).cell.ops
    ('maxpool3x3', 'conv3x3-bn-relu', 'maxpool3x3', 'maxpool3x3')
    """
    ops, parents = list(architecture.cell.ops), parents_of(architecture)
    free = [node for node, chosen in enumerate(parents, start=1) if len(chosen) < node]  # with another parent to take
    decision = random.randrange(len(ops) + len(free))
    if decision < len(ops):
        ops[decision] = random.choice([op for op in nas_bench_101.OPS if op != ops[decision]])
    else:
        node = free[decision - len(ops)]
        chosen = parents[node - 1]
        chosen[random.randrange(len(chosen))] = random.choice([other for other in range(node) if other not in chosen])
    return from_choices(str(architecture.variant), ops, parents)


def labels(group: str, shape: tuple[int, ...]) -> tuple[list[str], list[str]]:
    """Names for the decisions of nodes and of the output.

    >>> labels("inputs_2", (1, 2))
    (['what node 2 reads'], ['in', 'node 1'])
    """
    if group == "ops":
        return [f"operation of node {row + 1}" for row in range(shape[0])], [label(op) for op in COLUMNS]
    reader = "the output" if group == "output" else f"node {group.removeprefix('inputs_')}"
    return [f"what {reader} reads"], ["in", *(f"node {node}" for node in range(1, shape[1]))]


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
    """The 7×7 matrix and operations for NAS-Bench-101's API; S1 and S2 get an unconnected vertex.

    >>> matrix, ops = to_matrix(from_choices("S1", ["maxpool3x3"] * 4, [[0], [0, 1], [0, 1], [0, 1], [1, 2]]))
    >>> matrix[1], ops[-2:]
    ([0, 0, 1, 1, 1, 0, 1], ['conv1x1-bn-relu', 'output'])
    """
    cell = _cell(architecture)
    vertices = nas_bench_101.VERTICES
    output = vertices - 1
    matrix = [[0] * vertices for _ in range(vertices)]
    for edge in cell.edges:
        matrix[edge.source][output if edge.target == cell.nodes - 1 else edge.target] = 1
    padding = [_PADDING] * (vertices - cell.nodes)
    return matrix, [nas_bench_101.INPUT, *cell.ops, *padding, nas_bench_101.OUTPUT]


def to_nas_bench_101(architecture: Architecture) -> Architecture:
    """The NAS-Bench-101 cell, loose ends dropped.

    >>> a = from_choices("S1", ["maxpool3x3"] * 4, [[0], [0, 1], [0, 1], [0, 1], [1, 2]])
    >>> to_nas_bench_101(a).cell.nodes
    4
    """
    return nas_bench_101.from_matrix(*to_matrix(architecture))


def to_text(architecture: Architecture) -> str:
    """Matrix, operations and fingerprint of the NAS-Bench-101 cell as JSON.

    >>> cell = from_choices("S1", ["maxpool3x3"] * 4, [[0], [0, 1], [0, 1], [0, 1], [1, 2]])
    >>> to_text(cell)[:24]
    '{"matrix": [[0, 1, 1, 0]'
    """
    return nas_bench_101.to_text(to_nas_bench_101(architecture))


def _cell(architecture: Architecture) -> Cell:
    if architecture.space != SPACE:
        raise InputError(f"an architecture of {architecture.space} is not a NAS-Bench-1Shot1 cell")
    return architecture.cell
