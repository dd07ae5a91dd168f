"""One immutable record for every architecture: plain data, equal and hashed by content, always valid.

A record is canonical (edges by target, source and op; output nodes ascending), so two descriptions of one cell are
equal. Its space checks it when it is made.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from reprlib import repr as short
from types import MappingProxyType
from typing import Any, NamedTuple

from idarts.arch.space import space_of
from idarts.errors import InputError


class Edge(NamedTuple):
    """An edge of a cell; `op` is None in a space that has its operations on the nodes.

    >>> Edge(0, 1, "skip_connect").op
    'skip_connect'
    """

    source: int
    target: int
    op: str | None = None


@dataclass(frozen=True)
class Cell:
    """A directed acyclic graph: its first nodes are the inputs, `output` names the nodes that form the output.

    >>> cell = Cell(nodes=3, edges=[(1, 2), (0, 1)], output=[2], ops=["maxpool3x3"])
    >>> cell.edges
    (Edge(source=0, target=1, op=None), Edge(source=1, target=2, op=None))
    """

    nodes: int
    edges: tuple[Edge, ...]
    output: tuple[int, ...]
    ops: tuple[str, ...] = ()

    def __init__(
        self,
        nodes: int,
        edges: Iterable[Edge | tuple[Any, ...]],
        output: Iterable[int],
        ops: Iterable[str] = (),
    ) -> None:
        if not _is_index(nodes):
            raise InputError(f"nodes is {short(nodes)}, expected a count such as 4")
        ordered = sorted((_edge(edge) for edge in _items("edges", edges)), key=_edge_order)
        outputs = _all("output", _items("output", output), _is_index, "a node number")
        set_field = object.__setattr__  # the dataclass is frozen for everyone else
        set_field(self, "nodes", nodes)
        set_field(self, "edges", tuple(ordered))
        set_field(self, "output", tuple(sorted(outputs)))
        set_field(self, "ops", tuple(_all("ops", _items("ops", ops), _is_text, "the name of an operation")))


@dataclass(frozen=True)
class Architecture:
    """One or several cells of a space, or named choices: the decisions of a search.

    >>> a = Architecture("choice", choices={"block2": "skip", "block1": "conv3"})
    >>> a == Architecture("choice", choices={"block1": "conv3", "block2": "skip"})
    True
    >>> a.choices["block1"]
    'conv3'
    """

    space: str
    cells: Mapping[str, Cell] = field(default_factory=dict)
    choices: Mapping[str, str] = field(default_factory=dict)
    variant: str | None = None  # in a space that comes in several

    def __post_init__(self) -> None:
        object.__setattr__(self, "cells", _frozen("cells", self.cells))
        object.__setattr__(self, "choices", _frozen("choices", self.choices))
        space_of(self).check(self)

    @property
    def cell(self) -> Cell:
        """The cell of a space that has only one."""
        if "cell" not in self.cells:
            raise InputError(
                f"an architecture of {self.space} has no single cell, only {', '.join(self.cells) or 'none'}"
            )
        return self.cells["cell"]

    def __hash__(self) -> int:
        return hash((self.space, self.variant, tuple(self.cells.items()), tuple(self.choices.items())))

    def __reduce__(self) -> tuple[Any, ...]:  # a mapping proxy can be neither pickled nor deep-copied
        return Architecture, (self.space, dict(self.cells), dict(self.choices), self.variant)


def _edge_order(edge: Edge) -> tuple[int, int, str]:
    return edge.target, edge.source, edge.op or ""


def _edge(value: Any) -> Edge:
    parts = tuple(value) if isinstance(value, (tuple, list)) else ()
    if len(parts) in (2, 3) and _is_index(parts[0]) and _is_index(parts[1]):
        edge = Edge(*parts)
        if edge.op is None or isinstance(edge.op, str):
            return edge
    raise InputError(f"edge {short(value)}: expected source, target and operation, such as (0, 1, 'skip_connect')")


def _is_index(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _items(name: str, values: Any) -> list[Any]:
    if isinstance(values, (str, bytes, Mapping)) or not isinstance(values, Iterable):
        raise InputError(f"{name} is {short(values)}, expected a list")
    return list(values)


def _all(name: str, values: list[Any], accepts: Callable[[Any], bool], expected: str) -> list[Any]:
    for value in values:
        if not accepts(value):
            raise InputError(f"{name} holds {short(value)}, expected {expected}")
    return values


def _frozen(name: str, values: Any) -> Mapping[str, Any]:
    if not isinstance(values, Mapping) or not all(isinstance(key, str) for key in values):
        raise InputError(f"{name} is {short(values)}, expected names with their values")
    return MappingProxyType(dict(sorted(values.items(), key=lambda item: item[0])))
