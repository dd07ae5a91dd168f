"""What each space allows, as data, and the checks that every record passes when it is made.

Each message names the offending part and what was expected.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from reprlib import repr as short
from typing import TYPE_CHECKING

from idarts.errors import InputError

if TYPE_CHECKING:
    from idarts.arch.record import Architecture, Cell, Edge

NAS_BENCH_201_OPS = ("none", "skip_connect", "nor_conv_1x1", "nor_conv_3x3", "avg_pool_3x3")
NAS_BENCH_201_EDGES = ((0, 1), (0, 2), (1, 2), (0, 3), (1, 3), (2, 3))
DARTS_OPS = (
    "none",
    "max_pool_3x3",
    "avg_pool_3x3",
    "skip_connect",
    "sep_conv_3x3",
    "sep_conv_5x5",
    "dil_conv_3x3",
    "dil_conv_5x5",
)
# Not searched by DARTS, but used by published cells that are written as DARTS genotypes (NASNet, AmoebaNet, SETN).
DARTS_OTHER_OPS = ("sep_conv_7x7", "conv_7x1_1x7", "conv_3x1_1x3")
NAS_BENCH_101_OPS = ("conv3x3-bn-relu", "conv1x1-bn-relu", "maxpool3x3")
NAS_BENCH_101_VERTICES = 7
NAS_BENCH_101_EDGES = 9
# Parents of every node after the input, the output last.
NAS_BENCH_1SHOT1_PARENTS = {"S1": (1, 2, 2, 2, 2), "S2": (1, 1, 2, 2, 3), "S3": (1, 1, 1, 2, 2, 2)}


@dataclass(frozen=True)
class Space:
    """The rules of one cell space: cell names, how many first nodes are inputs, operations and where they sit."""

    cells: tuple[str, ...]
    inputs: int
    ops: tuple[str, ...]
    ops_on_vertices: bool
    check: Callable[["Cell", str | None], None]


def check(architecture: "Architecture") -> None:
    """Raise an InputError that names what this architecture's space does not allow.

    >>> from idarts.arch import Architecture, Cell
    >>> Architecture("nas-bench-201", {"cell": Cell(4, [(0, 1, "none")], [3])})
    Traceback (most recent call last):
    idarts.errors.InputError: nas-bench-201 cell: 1 edge, expected the 6 edges 0→1 0→2 1→2 0→3 1→3 2→3, each once
    """
    space, variant = architecture.space, architecture.variant
    if not isinstance(space, str) or (space not in SPACES and space != "choice"):
        raise InputError(f"unknown space {short(space)}: expected one of {', '.join([*SPACES, 'choice'])}")
    variants: Sequence[str | None] = tuple(NAS_BENCH_1SHOT1_PARENTS) if space == "nas-bench-1shot1" else (None,)
    if variant not in variants:
        expected = "none" if variants == (None,) else "one of S1, S2, S3"
        raise InputError(f"{space}: variant is {short(variant)}, expected {expected}")
    if space == "choice":
        _check_choices(architecture)
        return
    if architecture.choices:
        raise InputError(f"{space}: it has choices, which only the space 'choice' has; expected cells")
    _check_names(space, tuple(architecture.cells))
    for name, cell in architecture.cells.items():
        where = f"{space} {name}" if name == "cell" else f"{space} {name} cell"
        try:
            _check_cell(SPACES[space], cell)
            SPACES[space].check(cell, variant)
        except InputError as error:
            raise InputError(f"{where}: {error}") from None


def on_a_path(nodes: int, edges: Iterable["Edge"]) -> set[int]:
    """Nodes on a way from the first node to the last one.

    >>> from idarts.arch import Edge
    >>> sorted(on_a_path(4, [Edge(0, 1), Edge(0, 2), Edge(2, 3)]))
    [0, 2, 3]
    """
    from_input, to_output = {0}, {nodes - 1}
    ordered = sorted(edges)  # sources ascend, so one sweep each way is enough
    for edge in ordered:
        if edge.source in from_input:
            from_input.add(edge.target)
    for edge in reversed(ordered):
        if edge.target in to_output:
            to_output.add(edge.source)
    return from_input & to_output


def _check_choices(architecture: "Architecture") -> None:
    if architecture.cells:
        raise InputError("choice: it has cells, expected only choices")
    if not architecture.choices:
        raise InputError("choice: no choices, expected at least one name with the branch it takes")
    for name, branch in architecture.choices.items():
        if not isinstance(branch, str) or not branch or not name:
            raise InputError(f"choice {short(name)}: branch is {short(branch)}, expected the name of a branch")


def _check_names(space: str, names: tuple[str, ...]) -> None:
    expected = SPACES[space].cells
    if set(names) != set(expected):
        found = ", ".join(short(name) for name in names) or "none"
        raise InputError(f"{space}: cells are {found}, expected {' and '.join(repr(name) for name in expected)}")


def _check_cell(space: Space, cell: "Cell") -> None:
    if not hasattr(cell, "edges"):
        raise InputError(f"it is {short(cell)}, expected a Cell")
    if cell.nodes <= space.inputs:
        raise InputError(f"{_count(cell.nodes, 'node')}, expected more than its {_count(space.inputs, 'input')}")
    for edge in cell.edges:
        _check_edge(space, cell.nodes, edge)
    if space.ops_on_vertices:
        if len(cell.ops) != max(cell.nodes - 2, 0):
            expected = f"{cell.nodes - 2} for {cell.nodes} nodes (none for input and output)"
            raise InputError(f"{_count(len(cell.ops), 'operation')} on its nodes, expected {expected}")
        for node, op in enumerate(cell.ops, start=1):
            _check_op(f"node {node}", op, space.ops)
    elif cell.ops:
        raise InputError(f"operation {short(cell.ops[0])} on a node, expected operations on edges only")
    for node in cell.output:
        if not space.inputs <= node < cell.nodes:
            raise InputError(f"output node {node} is not one of the nodes {space.inputs} to {cell.nodes - 1}")
    if len(set(cell.output)) != len(cell.output):
        raise InputError(f"output {list(cell.output)} names a node twice")


def _check_edge(space: Space, nodes: int, edge: "Edge") -> None:
    where = f"edge {edge.source}→{edge.target}"
    if max(edge.source, edge.target) >= nodes:
        raise InputError(f"{where}: there is no node {max(edge.source, edge.target)}, nodes are 0 to {nodes - 1}")
    if edge.target < space.inputs:
        raise InputError(f"{where} enters an input, expected a target of at least {space.inputs}")
    if edge.source >= edge.target:
        raise InputError(f"{where} closes a cycle, expected a source below {edge.target}")
    if space.ops_on_vertices:
        if edge.op is not None:
            raise InputError(f"{where} carries {short(edge.op)}, expected operations on nodes only")
    else:
        _check_op(where, edge.op, space.ops)


def _check_op(where: str, op: str | None, ops: Collection[str]) -> None:
    if op not in ops:
        raise InputError(f"{where}: unknown operation {short(op)}, expected one of {', '.join(ops)}")


def _check_nas_bench_201(cell: "Cell", _: str | None) -> None:
    _expect(cell.nodes == 4, f"{_count(cell.nodes, 'node')}, expected 4")
    pairs = sorted((edge.target, edge.source) for edge in cell.edges)
    complete = pairs == [(target, source) for source, target in NAS_BENCH_201_EDGES]
    named = " ".join(f"{source}→{target}" for source, target in NAS_BENCH_201_EDGES)
    _expect(complete, f"{_count(len(pairs), 'edge')}, expected the 6 edges {named}, each once")
    _expect(cell.output == (3,), f"output {list(cell.output)}, expected [3]")


def _check_darts(cell: "Cell", _: str | None) -> None:
    _expect(bool(cell.output), "no output, expected the nodes that are concatenated")
    sources = {edge.source for edge in cell.edges}
    # Bounded by the edges, not by `nodes`: a typed-in node count of a billion must not cost a billion steps.
    needed = 2 * (cell.nodes - 2)
    _expect(len(cell.edges) == needed, f"{_count(len(cell.edges), 'edge')}, expected {needed} (two into each node)")
    for node in range(2, cell.nodes):
        entering = sum(edge.target == node for edge in cell.edges)
        _expect(entering == 2, f"{_count(entering, 'edge')} into node {node}, expected 2")
        used = node in cell.output or node in sources
        _expect(
            used, f"node {node} dangles: it is neither in the output {list(cell.output)} nor an input of a later node"
        )


def _check_nas_bench_101(cell: "Cell", _: str | None) -> None:
    limit = NAS_BENCH_101_VERTICES
    _expect(2 <= cell.nodes <= limit, f"{_count(cell.nodes, 'node')}, expected 2 to {limit}")
    edges = len(cell.edges)
    _expect(edges <= NAS_BENCH_101_EDGES, f"{_count(edges, 'edge')}, expected at most {NAS_BENCH_101_EDGES}")
    _check_vertex_graph(cell)
    dangling = set(range(cell.nodes)) - on_a_path(cell.nodes, cell.edges)
    named = ", ".join(map(str, sorted(dangling)))
    _expect(not dangling, f"node {named} dangles: it is not on a way from the input 0 to the output {cell.nodes - 1}")


def _check_nas_bench_1shot1(cell: "Cell", variant: str | None) -> None:
    parents = NAS_BENCH_1SHOT1_PARENTS[variant or ""]
    _expect(cell.nodes == len(parents) + 1, f"{_count(cell.nodes, 'node')}, expected {len(parents) + 1} in {variant}")
    _check_vertex_graph(cell)
    for node, expected in enumerate(parents, start=1):
        found = sum(edge.target == node for edge in cell.edges)
        _expect(found == expected, f"node {node} has {_count(found, 'parent')}, expected {expected} in {variant}")


def _check_vertex_graph(cell: "Cell") -> None:
    for edge, following in zip(cell.edges, cell.edges[1:], strict=False):
        _expect(edge != following, f"edge {edge.source}→{edge.target} stands there twice")
    _expect(cell.output == (cell.nodes - 1,), f"output {list(cell.output)}, expected [{cell.nodes - 1}]")


def _expect(condition: bool, message: str) -> None:
    if not condition:
        raise InputError(message)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


SPACES = {
    "nas-bench-201": Space(("cell",), 1, NAS_BENCH_201_OPS, False, _check_nas_bench_201),
    "darts": Space(("normal", "reduce"), 2, DARTS_OPS + DARTS_OTHER_OPS, False, _check_darts),
    "nas-bench-101": Space(("cell",), 1, NAS_BENCH_101_OPS, True, _check_nas_bench_101),
    "nas-bench-1shot1": Space(("cell",), 1, NAS_BENCH_101_OPS, True, _check_nas_bench_1shot1),
}
