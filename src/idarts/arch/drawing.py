"""Drawings of cells for papers: left to right, one box per operation, coloured by family, readable at 8 cm.

The graph is written in Graphviz' DOT language here, and laid out by pygraphviz, whose wheels bring Graphviz along.
"""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from os import PathLike
from pathlib import Path

from idarts.arch.forms import parse
from idarts.arch.record import Architecture, Cell
from idarts.arch.rules import SPACES
from idarts.errors import InputError
from idarts.files import write_whole

FORMATS = ("svg", "png", "pdf", "dot")
# Okabe and Ito's palette, which people with any colour vision can tell apart: (fill, text, border).
FAMILIES = {
    "convolution": ("#0072B2", "white", "#0072B2"),
    "pool": ("#E69F00", "black", "#E69F00"),
    "skip": ("#009E73", "white", "#009E73"),
    "none": ("white", "#767676", "#BBBBBB"),
}
_STATE = 'shape=circle, width=0.23, fixedsize=true, fillcolor="#EDEDED", color="#555555"'
_END = 'shape=box, width=0.34, height=0.28, fillcolor="#FFFFFF", color="#555555"'
# A table puts the index low in every viewer; Graphviz' own <sub> stays on the line in Firefox.
_INDEXED = (
    '<table border="0" cellborder="0" cellspacing="0" cellpadding="0">'
    '<tr><td rowspan="2">c</td><td height="6"></td></tr>'
    '<tr><td><font point-size="9">{}</font></td></tr></table>'
)
# One node for both inputs: dot keeps no order among nodes of a cluster, but it does within a table.
_DARTS_INPUTS = (
    '<table border="0" cellborder="1" cellspacing="0" cellpadding="3" color="#555555">'
    f'<tr><td port="c0">{_INDEXED.format("k−2")}</td></tr>'
    '<tr><td border="0" height="7"></td></tr>'
    f'<tr><td port="c1">{_INDEXED.format("k−1")}</td></tr></table>'
)
_TITLES = {"normal": "normal cell", "reduce": "reduction cell", "cell": ""}
_PNG_DPI = 300
_CROWD = 5  # edges out of the inputs
_LONGEST_ROW = 2  # with more operations in a row, labels take two short lines so that the drawing stays narrow


def draw(what: "str | PathLike[str] | Architecture", path: "str | PathLike[str]") -> Path:
    """Draw an architecture (in any form) into an svg, png, pdf or dot file; a failure leaves no file behind.

    >>> draw("DARTS_V2", "cell.bmp")
    Traceback (most recent call last):
    idarts.errors.InputError: cell.bmp: a drawing is .svg or .png or .pdf or .dot
    """
    target = Path(path)
    form = target.suffix.lower().lstrip(".")
    if form not in FORMATS:
        raise InputError(f"{target}: a drawing is {' or '.join('.' + name for name in FORMATS)}")
    write_whole(target, render(parse(what), form))
    return target


def render(architecture: Architecture, form: str) -> bytes:
    """The drawing as the bytes of an svg, png, pdf or dot file.

    >>> render(parse("DARTS_V2"), "dot")[:7]
    b'digraph'
    """
    dot = to_dot(architecture)
    if form == "dot":
        return dot.encode()
    try:
        graph = import_module("pygraphviz").AGraph(string=dot)  # an extra
    except ImportError:
        raise InputError("drawing needs pygraphviz: pip install 'idarts[draw]', or draw to a .dot file") from None
    if form == "png":  # the other formats know no pixels, and would only grow
        graph.graph_attr["dpi"] = str(_PNG_DPI)
    with _quiet():
        return bytes(graph.draw(format=form, prog="dot"))


def to_dot(architecture: Architecture) -> str:
    """The drawing in Graphviz' own language.

    >>> "sep 3×3" in to_dot(parse("DARTS_V2"))
    True
    """
    if not architecture.cells:
        raise InputError(f"an architecture of {architecture.space} has no cells to draw")
    lines = [
        "digraph cell {",
        'graph [rankdir=LR, nodesep=0.1, ranksep=0.14, margin=0.02, pad=0.03, fontname="Helvetica"];',
        'node [fontname="Helvetica", fontsize=12, height=0.26, width=0.3, margin="0.04,0.025", style=filled];',
        'edge [arrowsize=0.5, penwidth=0.9, color="#333333"];',
    ]
    on_vertices = SPACES[architecture.space].ops_on_vertices
    stacked = max(map(_depth, architecture.cells.values())) > _LONGEST_ROW
    for name, cell in reversed(list(architecture.cells.items())):  # dot stacks them upwards
        body = _vertex_cell(cell, stacked) if on_vertices else _edge_cell(name, cell, architecture.space, stacked)
        title = _TITLES[name]  # right of the middle: lines that leave an input bend up into the left corner
        if title:
            lines.append(f'subgraph cluster_{name} {{ label="{title}"; labeljust=r; fontsize=13; pencolor=none;')
        lines += body
        if title:
            lines.append("}")
    return "\n".join([*lines, "}"]) + "\n"


def family(op: str) -> str:
    """Which of the `FAMILIES` an operation belongs to.

    >>> family("avg_pool_3x3"), family("conv3x3-bn-relu")
    ('pool', 'convolution')
    """
    return next(
        (name for name, part in (("pool", "pool"), ("skip", "skip"), ("none", "none")) if part in op), "convolution"
    )


def label(op: str) -> str:
    """A short name for a drawing.

    >>> label("sep_conv_3x3"), label("max_pool_3x3"), label("conv1x1-bn-relu"), label("conv_7x1_1x7")
    ('sep 3×3', 'max 3×3', 'conv 1×1', 'conv 7×1 1×7')
    """
    sizes = " ".join(f"{a}×{b}" for a, b in re.findall(r"(\d)x(\d)", op))
    kind = re.match(r"[a-z]+", op)
    word = {"nor": "conv", "maxpool": "max", "skip": "skip"}.get(kind[0], kind[0]) if kind else op
    return f"{word} {sizes}".strip()


@contextmanager
def _quiet() -> Iterator[None]:
    """The bundled font library complains on stderr, from C, about settings of the system that it does not know."""
    saved = os.dup(2)
    try:
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), 2)
            yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)


def _edge_cell(name: str, cell: Cell, space: str, stacked: bool) -> Iterator[str]:
    """States are circles, and each edge runs through a box with its operation."""
    if space == "darts":
        yield f"{name}_in [label=<{_DARTS_INPUTS}>, shape=plain, style=solid];"
        yield f"{name}_out [label=<{_INDEXED.format('k')}>, {_END}];"
        states = {0: f"{name}_in:c0", 1: f"{name}_in:c1"} | {node: f"{name}{node}" for node in range(2, cell.nodes)}
        yield from (f'{states[node]} [label="{node - 2}", {_STATE}];' for node in range(2, cell.nodes))
        yield from (f"{states[node]} -> {name}_out;" for node in cell.output)
    else:
        states = {node: f"{name}{node}" for node in range(cell.nodes)}
        yield from (f'{states[node]} [label="{node}", {_STATE}];' for node in range(1, cell.nodes - 1))
        yield f'{states[0]} [label="in", {_END}];'
        yield f'{states[cell.nodes - 1]} [label="out", {_END}];'
    inputs = SPACES[space].inputs
    leaving = sum(edge.source < inputs for edge in cell.edges)
    for position, edge in enumerate(cell.edges):
        box = f"{name}_op{position}"
        faint = 'style=dashed, color="#BBBBBB"' if family(edge.op or "") == "none" else ""
        yield _box(box, edge.op or "", stacked)
        room = 2 if edge.source < inputs and leaving > _CROWD else 1  # lines that fan out of an input need space
        yield f"{states[edge.source]} -> {box} [arrowhead=none, minlen={room}, {faint}];"
        yield f"{box} -> {states[edge.target]} [{faint}];"


def _vertex_cell(cell: Cell, stacked: bool) -> Iterator[str]:
    """The operations are the nodes."""
    last = cell.nodes - 1
    for node in range(cell.nodes):
        if node in (0, last):
            yield f'v{node} [label="{"in" if node == 0 else "out"}", {_END}];'
        else:
            yield _box(f"v{node}", cell.ops[node - 1], stacked)
    for edge in cell.edges:
        yield f"v{edge.source} -> v{edge.target};"


def _depth(cell: Cell) -> int:
    """Operations on the longest way through the cell."""
    depth = [0] * cell.nodes
    for edge in cell.edges:  # by target, so every source is done before it is used
        depth[edge.target] = max(depth[edge.target], depth[edge.source] + 1)
    return max(depth) - bool(cell.ops)


def _box(name: str, op: str, stacked: bool) -> str:
    fill, text, border = FAMILIES[family(op)]
    lines = label(op).replace(" ", "\\n") if stacked else label(op)
    return f'{name} [label="{lines}", shape=box, fillcolor="{fill}", fontcolor="{text}", color="{border}"];'
