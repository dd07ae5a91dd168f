"""Checks that spaces share: what a cell may be. Each message names the part that is wrong and what was expected."""

from collections.abc import Callable
from dataclasses import dataclass
from reprlib import repr as short

from idarts.arch.record import Architecture, Cell, Edge
from idarts.errors import InputError


@dataclass(frozen=True)
class CellRules:
    """The `check` of a space of cells: names of the cells, how many first nodes are inputs, operations and their place.

    `more` checks what else the space expects of a cell.

    >>> from idarts.arch import parse
    >>> CellRules(ops=("conv", "skip"))(parse("DARTS_V2"))
    Traceback (most recent call last):
    idarts.errors.InputError: darts: cells are 'normal', 'reduce', expected 'cell'
    """

    ops: tuple[str, ...]
    cells: tuple[str, ...] = ("cell",)
    inputs: int = 1
    on_vertices: bool = False
    more: Callable[[Cell], None] | None = None

    def __call__(self, architecture: Architecture) -> None:
        space = architecture.space
        if architecture.choices:
            raise InputError(f"{space}: it has choices, expected only cells")
        if set(architecture.cells) != set(self.cells):
            names = ", ".join(short(name) for name in architecture.cells) or "none"
            raise InputError(f"{space}: cells are {names}, expected {' and '.join(map(repr, self.cells))}")
        for name, cell in architecture.cells.items():
            try:
                self._check(cell)
                if self.more:
                    self.more(cell)
            except InputError as error:
                where = f"{space} {name}" if name == "cell" else f"{space} {name} cell"
                raise InputError(f"{where}: {error}") from None

    def _check(self, cell: Cell) -> None:
        if not isinstance(cell, Cell):
            raise InputError(f"it is {short(cell)}, expected a Cell")
        if cell.nodes <= self.inputs:
            raise InputError(f"{counted(cell.nodes, 'node')}, expected more than its {counted(self.inputs, 'input')}")
        for edge in cell.edges:
            self._check_edge(cell.nodes, edge)
        if self.on_vertices:
            if len(cell.ops) != max(cell.nodes - 2, 0):
                expected = f"{cell.nodes - 2} for {cell.nodes} nodes (none for input and output)"
                raise InputError(f"{counted(len(cell.ops), 'operation')} on its nodes, expected {expected}")
            for node, op in enumerate(cell.ops, start=1):
                if op not in self.ops:
                    raise InputError(f"node {node}: {self._unknown(op)}")
        elif cell.ops:
            raise InputError(f"operation {short(cell.ops[0])} on a node, expected operations on edges only")
        for node in cell.output:
            if not self.inputs <= node < cell.nodes:
                raise InputError(f"output node {node} is not one of the nodes {self.inputs} to {cell.nodes - 1}")
        if len(set(cell.output)) != len(cell.output):
            raise InputError(f"output {list(cell.output)} names a node twice")

    def _check_edge(self, nodes: int, edge: Edge) -> None:
        source, target, op = edge
        wrong = None
        if max(source, target) >= nodes:
            wrong = f": there is no node {max(source, target)}, nodes are 0 to {nodes - 1}"
        elif target < self.inputs:
            wrong = f" enters an input, expected a target of at least {self.inputs}"
        elif source >= target:
            wrong = f" closes a cycle, expected a source below {target}"
        elif self.on_vertices:
            wrong = None if op is None else f" carries {short(op)}, expected operations on nodes only"
        elif op not in self.ops:
            wrong = f": {self._unknown(op)}"
        if wrong:
            raise InputError(f"edge {source}→{target}{wrong}")

    def _unknown(self, op: str | None) -> str:
        return f"unknown operation {short(op)}, expected one of {', '.join(self.ops)}"


def expect(condition: bool, message: str) -> None:
    """Raise an InputError with this message unless the condition holds."""
    if not condition:
        raise InputError(message)


def counted(number: int, noun: str) -> str:
    """A number with its noun.

    >>> counted(1, "node"), counted(2, "node")
    ('1 node', '2 nodes')
    """
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
