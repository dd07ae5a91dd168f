"""Words and colours for drawings: what a space says about its own, and the defaults."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from idarts.arch.record import Architecture, Cell

# Okabe and Ito's palette, which people with any colour vision can tell apart: (fill, text, border).
FAMILIES = {
    "convolution": ("#0072B2", "white", "#0072B2"),
    "pool": ("#E69F00", "black", "#E69F00"),
    "skip": ("#009E73", "white", "#009E73"),
    "none": ("white", "#767676", "#BBBBBB"),
}


def family(op: str) -> str:
    """Which of the `FAMILIES` an operation belongs to, by its name.

    >>> family("avg_pool_3x3"), family("conv3x3-bn-relu")
    ('pool', 'convolution')
    """
    return next((name for name in ("pool", "skip", "none") if name in op), "convolution")


def label(op: str) -> str:
    """A short name for an operation.

    >>> label("sep_conv_3x3"), label("max_pool_3x3"), label("conv1x1-bn-relu"), label("conv_7x1_1x7")
    ('sep 3×3', 'max 3×3', 'conv 1×1', 'conv 7×1 1×7')
    """
    sizes = " ".join(f"{a}×{b}" for a, b in re.findall(r"(\d)x(\d)", op))
    kind = re.match(r"[a-z]+", op)
    word = {"nor": "conv", "maxpool": "max"}.get(kind[0], kind[0]) if kind else op
    return f"{word} {sizes}".strip()


def _cells(architecture: "Architecture") -> "Mapping[str, Cell]":
    return architecture.cells


@dataclass(frozen=True)
class Style:
    """How a space's cells are drawn. What follows an underscore in the name of an input or output is an index.

    >>> Style(inputs=("x_1", "x_2")).output
    'out'
    """

    inputs: tuple[str, ...] = ("in",)
    """names of a cell's inputs, which are its first nodes"""
    output: str = "out"
    """name of the output"""
    joins: bool = False
    """the output is not the last node, but joins all of the cell's output nodes"""
    first: int = 1
    """number of the first node after the inputs"""
    titles: Mapping[str, str] = field(default_factory=dict)
    """titles of the cells, if they are not the names"""
    cells: "Callable[[Architecture], Mapping[str, Cell]]" = _cells
    """the cells to draw; a space without cells may describe an architecture as some"""
    label: Callable[[str], str] = label
    """a short name for an operation"""
    family: Callable[[str], str] = family
    """which of the `FAMILIES` an operation belongs to"""
