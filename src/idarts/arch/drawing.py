"""Drawings of cells for papers: left to right, one box per operation, coloured by family, readable at 8 cm.

The graph is written in Graphviz' DOT language and laid out by pygraphviz, whose wheels include Graphviz. A drawing has
the colours of paper. Its operations also have a class, op-FAMILY, and edges of none the class faint, by which a page
can give them other colours, e.g. at night.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from os import PathLike
from pathlib import Path

from idarts.arch.forms import parse
from idarts.arch.record import Architecture, Cell
from idarts.arch.space import space_of
from idarts.arch.style import FAMILIES, Style
from idarts.errors import InputError
from idarts.files import make_parents, write_whole

FORMATS = ("svg", "png", "pdf", "dot")
_STATE = 'shape=circle, width=0.23, fixedsize=true, fillcolor="#EDEDED", color="#555555"'
_END = 'shape=box, width=0.34, height=0.28, fillcolor="#FFFFFF", color="#555555"'
_TABLE = '<table border="0" cellborder="{}" cellspacing="0" cellpadding="{}"{}>{}</table>'
_PNG_DPI = 300
_CROWD = 5  # edges out of the inputs
_LONGEST_ROW = 2  # with more operations in a row, labels take two short lines so that the drawing stays narrow


def draw(what: "str | PathLike[str] | Architecture", path: "str | PathLike[str]") -> Path:
    """Draw an architecture (in any form) into an svg, png, pdf or dot file; a failure leaves no file behind.

    >>> draw("DARTS_V2", "cell.bmp")
    Traceback (most recent call last):
    idarts.errors.InputError: cell.bmp: the name of a drawing must end in .svg or .png or .pdf or .dot
    """
    target = Path(path)
    form = target.suffix.lower().lstrip(".")
    if form not in FORMATS:
        endings = " or ".join(f".{name}" for name in FORMATS)
        raise InputError(f"{target}: the name of a drawing must end in {endings}")
    content = render(parse(what), form)
    write_whole(make_parents(target), content)
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


def drawn_cells(architecture: Architecture) -> Mapping[str, Cell]:
    """The cells that a drawing of an architecture shows; empty if there is nothing to draw.

    >>> list(drawn_cells(parse("DARTS_V2")))
    ['normal', 'reduce']
    """
    return space_of(architecture).style.cells(architecture)


def to_dot(architecture: Architecture) -> str:
    """The drawing in Graphviz' own language.

    >>> "sep 3×3" in to_dot(parse("DARTS_V2"))
    True
    """
    style, cells = space_of(architecture).style, drawn_cells(architecture)
    if not cells:
        raise InputError(f"an architecture of {architecture.space} has no cells to draw")
    lines = [
        "digraph cell {",
        'graph [rankdir=LR, nodesep=0.1, ranksep=0.14, margin=0.02, pad=0.03, fontname="Helvetica"];',
        'node [fontname="Helvetica", fontsize=12, height=0.26, width=0.3, margin="0.04,0.025", style=filled];',
        'edge [arrowsize=0.5, penwidth=0.9, color="#333333"];',
    ]
    stacked = max(map(_depth, cells.values())) > _LONGEST_ROW
    for name, cell in reversed(list(cells.items())):  # dot stacks them upwards
        on_edges = any(edge.op is not None for edge in cell.edges)
        drawn = _edge_cell(name, cell, style, stacked) if on_edges else _vertex_cell(name, cell, style, stacked)
        # Right of the middle: lines that leave an input bend up into the left corner.
        title = style.titles.get(name, name if len(cells) > 1 else "")
        if title:
            lines.append(f'subgraph cluster_{name} {{ label="{title}"; labeljust=r; fontsize=13; pencolor=none;')
        lines += drawn
        if title:
            lines.append("}")
    return "\n".join([*lines, "}"]) + "\n"


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence stderr: the bundled font library, which is written in C, warns about system settings there."""
    saved = os.dup(2)
    try:
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), 2)
            yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)


def _edge_cell(name: str, cell: Cell, style: Style, stacked: bool) -> Iterator[str]:
    """States are circles, and each edge runs through a box with its operation."""
    inputs = len(style.inputs)
    states = {node: f"{name}{node}" for node in range(cell.nodes)}
    output = f"{name}_out" if style.joins else states[cell.nodes - 1]
    if inputs == 1:
        yield f"{states[0]} [label={_name(style.inputs[0])}, {_END}];"
    else:
        yield f"{name}_in [label=<{_inputs(style)}>, shape=plain, style=solid];"
        states |= {node: f"{name}_in:c{node}" for node in range(inputs)}
    yield f"{output} [label={_name(style.output)}, {_END}];"
    inner = [node for node in range(inputs, cell.nodes) if states[node] != output]
    yield from (f'{states[node]} [label="{node - inputs + style.first}", {_STATE}];' for node in inner)
    if style.joins:
        yield from (f"{states[node]} -> {output};" for node in cell.output)
    leaving = sum(edge.source < inputs for edge in cell.edges)
    for position, edge in enumerate(cell.edges):
        box, op = f"{name}_op{position}", edge.op or ""
        faint = 'class=faint, style=dashed, color="#BBBBBB"' if style.family(op) == "none" else ""
        yield _box(box, op, style, stacked)
        room = 2 if edge.source < inputs and leaving > _CROWD else 1  # lines that fan out of an input need space
        yield f"{states[edge.source]} -> {box} [arrowhead=none, minlen={room}, {faint}];"
        yield f"{box} -> {states[edge.target]} [{faint}];"


def _vertex_cell(name: str, cell: Cell, style: Style, stacked: bool) -> Iterator[str]:
    """The operations are the nodes."""
    ends = {0: style.inputs[0], cell.nodes - 1: style.output}
    for node in range(cell.nodes):
        if node in ends:
            yield f"{name}{node} [label={_name(ends[node])}, {_END}];"
        else:
            yield _box(f"{name}{node}", cell.ops[node - 1], style, stacked)
    yield from (f"{name}{edge.source} -> {name}{edge.target};" for edge in cell.edges)


def _inputs(style: Style) -> str:
    """One table for all inputs: dot keeps no order among the nodes of a cluster, but it does within a table."""
    rows = [f'<tr><td port="c{node}">{_indexed(name)}</td></tr>' for node, name in enumerate(style.inputs)]
    return _TABLE.format(1, 3, ' color="#555555"', '<tr><td border="0" height="7"></td></tr>'.join(rows))


def _name(name: str) -> str:
    return f"<{_indexed(name)}>" if "_" in name else f'"{name}"'


def _indexed(name: str) -> str:
    """A name with its index. A table puts it low in every viewer; Graphviz' own <sub> stays on the line in Firefox."""
    letter, _, index = name.partition("_")
    if not index:
        return name
    high = f'<tr><td rowspan="2">{letter}</td><td height="6"></td></tr>'
    return _TABLE.format(0, 0, "", f'{high}<tr><td><font point-size="9">{index}</font></td></tr>')


def _depth(cell: Cell) -> int:
    """Operations on the longest way through the cell."""
    depth = [0] * cell.nodes
    for edge in cell.edges:  # by target, so every source is done before it is used
        depth[edge.target] = max(depth[edge.target], depth[edge.source] + 1)
    return max(depth) - bool(cell.ops)


def _box(name: str, op: str, style: Style, stacked: bool) -> str:
    family = style.family(op)
    fill, text, border = FAMILIES[family]
    words = style.label(op).replace(" ", "\\n") if stacked else style.label(op)
    colours = f'fillcolor="{fill}", fontcolor="{text}", color="{border}"'
    return f'{name} [label="{words}", class="op-{family}", shape=box, {colours}];'
