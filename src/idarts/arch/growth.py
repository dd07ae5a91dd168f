"""How the cells of a space grow, node by node: what PNAS expands, and what NASNet's controller decides."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from idarts.arch.record import Architecture

Block = tuple[tuple[int, str], ...]  # what enters one node: pairs of source and operation, by source


@dataclass(frozen=True)
class Growth:
    """The decisions of a cell in the order of its nodes.

    `inputs[n]` lists, for the n-th node that is added, the sets of sources that may enter it; each source gets one of
    `ops`. `build` makes a whole architecture from the blocks of each of its `cells`, also from the first few alone:
    the cell of these nodes.

    >>> from idarts.arch import SPACES
    >>> growth = SPACES["nas-bench-201"].growth()
    >>> [len(growth.blocks(node)) for node in range(growth.nodes)]
    [5, 25, 125]
    """

    inputs: tuple[tuple[tuple[int, ...], ...], ...]
    ops: tuple[str, ...]
    build: "Callable[[Mapping[str, Sequence[Block]]], Architecture]"
    cells: tuple[str, ...] = ("cell",)

    @property
    def nodes(self) -> int:
        """How many nodes a whole cell adds to its inputs."""
        return len(self.inputs)

    def blocks(self, node: int) -> list[Block]:
        """Everything that may enter a node, counted from 0."""
        return [
            tuple(zip(sources, ops, strict=True))
            for sources in self.inputs[node]
            for ops in product(self.ops, repeat=len(sources))
        ]

    def same(self, blocks: Sequence[Block]) -> "Architecture":
        """The architecture that has the same blocks in each of its cells."""
        return self.build(dict.fromkeys(self.cells, blocks))

    def without(self, op: str) -> "Growth":
        """The growth that never adds an operation."""
        return replace(self, ops=tuple(other for other in self.ops if other != op))
