"""NAS-Bench-101's cell: rules, adjacency matrix, official fingerprint, pruning as the benchmark does, random cells."""

import json
from collections.abc import Iterable, Mapping, Sequence
from hashlib import md5
from random import Random
from reprlib import repr as short
from typing import Any

from idarts.arch import Architecture, Cell, Edge
from idarts.arch.rules import CellRules, counted, expect
from idarts.errors import InputError

SPACE = "nas-bench-101"
OPS = ("conv3x3-bn-relu", "conv1x1-bn-relu", "maxpool3x3")
VERTICES, EDGES = 7, 9  # at most
INPUT, OUTPUT = "input", "output"
_LARGEST = 100  # far above what the benchmark holds; a bigger matrix is a mistake and not worth a search for paths


def check_graph(cell: Cell) -> None:
    """Each edge once, and the last node the output."""
    for edge, following in zip(cell.edges, cell.edges[1:], strict=False):
        expect(edge != following, f"edge {edge.source}→{edge.target} occurs twice")
    expect(cell.output == (cell.nodes - 1,), f"output {list(cell.output)}, expected [{cell.nodes - 1}]")


def _check_cell(cell: Cell) -> None:
    expect(2 <= cell.nodes <= VERTICES, f"{counted(cell.nodes, 'node')}, expected 2 to {VERTICES}")
    expect(len(cell.edges) <= EDGES, f"{counted(len(cell.edges), 'edge')}, expected at most {EDGES}")
    check_graph(cell)
    dangling = set(range(cell.nodes)) - on_a_path(cell.nodes, cell.edges)
    named = ", ".join(map(str, sorted(dangling)))
    expect(not dangling, f"node {named} dangles: it is on no path from the input 0 to the output {cell.nodes - 1}")


check = CellRules(ops=OPS, on_vertices=True, more=_check_cell)


def on_a_path(nodes: int, edges: Iterable[Edge]) -> set[int]:
    """Nodes on a path from the first node to the last one.

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


def parse(form: object) -> Architecture | None:
    """The architecture of a mapping with the keys `matrix` and `ops`; a `fingerprint` is checked.

    >>> parse({"matrix": [[0, 1], [0, 0]], "ops": []}).cell.nodes
    2
    """
    if not isinstance(form, Mapping) or "matrix" not in form:
        return None
    unknown = set(form) - {"matrix", "ops", "fingerprint"}
    if unknown or "ops" not in form:
        wrong = f"has the unknown key {short(min(unknown, key=str))}" if unknown else "lacks the key 'ops'"
        raise InputError(f"the NAS-Bench-101 cell {wrong}, expected matrix, ops and perhaps fingerprint")
    architecture = from_matrix(form["matrix"], form["ops"])
    correct = fingerprint(architecture)
    if form.get("fingerprint", correct) != correct:
        raise InputError(f"fingerprint is {short(form['fingerprint'])}, but that of matrix and ops is {correct}")
    return architecture


def to_text(architecture: Architecture) -> str:
    """Matrix, operations and fingerprint as JSON, which `parse` reads.

    >>> to_text(from_matrix([[0, 1], [0, 0]], []))[:42]
    '{"matrix": [[0, 1], [0, 0]], "ops": ["inpu'
    """
    matrix, ops = to_matrix(architecture)
    return json.dumps({"matrix": matrix, "ops": ops, "fingerprint": fingerprint(architecture)})


def sample(random: Random) -> Architecture:
    """Random matrices and operations until one is a valid cell, as the benchmark's authors sample.

    >>> sample(Random(0)) == sample(Random(0))
    True
    """
    while True:
        matrix = [[random.getrandbits(1) if y > x else 0 for y in range(VERTICES)] for x in range(VERTICES)]
        ops = random.choices(OPS, k=VERTICES - 2)
        try:
            return from_matrix(matrix, ops)
        except InputError:  # no path, or more than nine edges
            continue


def from_matrix(matrix: Any, ops: Any) -> Architecture:
    """The record of an upper-triangular adjacency matrix and its operations, without vertices that lead nowhere.

    `ops` names every vertex, from "input" to "output", or only those between.

    >>> a = from_matrix([[0, 1, 1, 0], [0, 0, 0, 1], [0, 0, 0, 0], [0, 0, 0, 0]], ["maxpool3x3", "conv1x1-bn-relu"])
    >>> to_matrix(a)
    ([[0, 1, 0], [0, 0, 1], [0, 0, 0]], ['input', 'maxpool3x3', 'output'])
    """
    edges = _edges(_plain(matrix))
    vertices, inner = len(matrix), _inner(_plain(ops))
    if len(inner) != vertices - 2:
        raise InputError(
            f"{len(inner)} operations between input and output, expected {vertices - 2} for {vertices} rows"
        )
    kept = sorted(on_a_path(vertices, edges))
    if len(kept) < 2:
        raise InputError(f"the matrix has no path from its input 0 to its output {vertices - 1}")
    new = {old: position for position, old in enumerate(kept)}
    pruned = [Edge(new[edge.source], new[edge.target]) for edge in edges if edge.source in new and edge.target in new]
    cell = Cell(len(kept), pruned, [len(kept) - 1], [inner[vertex - 1] for vertex in kept[1:-1]])
    return Architecture(SPACE, {"cell": cell})


def to_matrix(architecture: Architecture) -> tuple[list[list[int]], list[str]]:
    """Adjacency matrix and operations, with "input" and "output", as NAS-Bench-101's own API takes them.

    >>> to_matrix(from_matrix([[0, 1], [0, 0]], ["input", "output"]))
    ([[0, 1], [0, 0]], ['input', 'output'])
    """
    cell = _vertex_cell(architecture)
    matrix = [[0] * cell.nodes for _ in range(cell.nodes)]
    for edge in cell.edges:
        matrix[edge.source][edge.target] = 1
    return matrix, [INPUT, *cell.ops, OUTPUT]


def fingerprint(architecture: Architecture) -> str:
    """NAS-Bench-101's name for a cell, the same for every numbering of its vertices.

    Each vertex starts from the MD5 of its out-degree, in-degree and label; as often as there are vertices, it is
    hashed together with the sorted hashes of its predecessors and successors; all of them, sorted, are hashed last.

    >>> fingerprint(from_matrix([[0, 1], [0, 0]], []))
    '043721b9c7fe8c5fad811d47d83132ec'
    """
    cell = _vertex_cell(architecture)
    labels = [-1, *(OPS.index(op) for op in cell.ops), -2]
    before: list[list[int]] = [[] for _ in labels]
    after: list[list[int]] = [[] for _ in labels]
    for edge in cell.edges:
        before[edge.target].append(edge.source)
        after[edge.source].append(edge.target)
    hashes = [_md5(str((len(after[v]), len(before[v]), label))) for v, label in enumerate(labels)]
    for _ in labels:
        hashes = [
            _md5(f"{_joined(hashes, before[v])}|{_joined(hashes, after[v])}|{hashes[v]}") for v in range(len(labels))
        ]
    return _md5(str(sorted(hashes)))


def _joined(hashes: list[str], vertices: list[int]) -> str:
    return "".join(sorted(hashes[vertex] for vertex in vertices))


def _md5(text: str) -> str:
    return md5(text.encode(), usedforsecurity=False).hexdigest()


def _vertex_cell(architecture: Architecture) -> Cell:
    if architecture.space != SPACE:
        raise InputError(f"an architecture of {architecture.space} is not a NAS-Bench-101 cell")
    return architecture.cell


def _plain(values: Any) -> Any:
    """Arrays of numpy or torch as lists, without importing either."""
    if hasattr(values, "tolist"):
        return values.tolist()
    return [_plain(value) if hasattr(value, "tolist") else value for value in values] if _is_list(values) else values


def _is_list(values: Any) -> bool:
    return isinstance(values, Sequence) and not isinstance(values, (str, bytes))


def _inner(ops: Any) -> list[str]:
    if not _is_list(ops):
        raise InputError(f"ops is {short(ops)}, expected a list of operations")
    names = list(ops)
    return names[1:-1] if len(names) > 1 and names[0] == INPUT and names[-1] == OUTPUT else names


def _edges(matrix: Any) -> list[Edge]:
    if not _is_list(matrix) or not 2 <= len(matrix) <= _LARGEST:
        raise InputError(f"matrix is {short(matrix)}, expected at least two rows of zeros and ones")
    edges = []
    for source, row in enumerate(matrix):
        if not _is_list(row) or len(row) != len(matrix):
            raise InputError(f"matrix row {source} is {short(row)}, expected {len(matrix)} zeros and ones")
        for target, entry in enumerate(row):
            if not isinstance(entry, (int, float)) or entry not in (0, 1):
                raise InputError(f"matrix entry {source}, {target} is {short(entry)}, expected 0 or 1")
            if entry and target <= source:
                raise InputError(
                    f"matrix entry {source}, {target} closes a cycle, expected ones above the diagonal only"
                )
            if entry:
                edges.append(Edge(source, target))
    return edges
