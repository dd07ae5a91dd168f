"""From architecture parameters to what a supernet mixes. A relaxation knows no space, a space no relaxation.

Every α is a matrix: a row for each decision, a column for each option. A relaxation turns it into a `Mixture` of the
same shape; one that samples paths also says which options run, and the supernet runs no others.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from idarts.errors import InputError


@dataclass(frozen=True)
class Mixture:
    """Weights of the options, and which of them run: `None` for all; `active` is control flow, so it is plain data."""

    weights: Tensor
    active: tuple[tuple[bool, ...], ...] | None = None

    def runs(self, row: int, column: int) -> bool:
        return self.active is None or self.active[row][column]


Relaxation = Callable[[Tensor], Mixture]


def softmax(alpha: Tensor) -> Mixture:
    """DARTS' relaxation: every option runs, weighted by its softmax.

    >>> softmax(torch.zeros(1, 4)).weights
    tensor([[0.2500, 0.2500, 0.2500, 0.2500]])
    """
    return Mixture(alpha.softmax(dim=-1))


@dataclass(frozen=True)
class PartialChannels:
    """PC-DARTS: of every node's channels only one in `share` goes through the operations, the others pass them by.

    `base` says how the options are mixed. A supernet with operations on its edges reads `share` when it is built.

    >>> PartialChannels(share=4)(torch.zeros(1, 2)).weights
    tensor([[0.5000, 0.5000]])
    """

    share: int = 4
    base: Relaxation = softmax

    def __post_init__(self) -> None:
        if self.share < 2:
            raise InputError(f"share={self.share}, expected at least 2: one in so many channels is searched")

    def __call__(self, alpha: Tensor) -> Mixture:
        return self.base(alpha)


def share_of(relaxation: Relaxation, channels: int) -> int:
    """How many channels stand for one that goes through the operations; they must divide evenly.

    >>> share_of(softmax, 10), share_of(PartialChannels(2), 10)
    (1, 2)
    """
    share = relaxation.share if isinstance(relaxation, PartialChannels) else 1
    if channels % share:
        raise InputError(f"one in {share} of {channels} channels is no whole number; change share or channels")
    return share


def one_hot(choices: list[int], options: int, like: Tensor) -> Mixture:
    """A single path: each row takes one option with weight one, and only that one runs.

    >>> one_hot([2], 3, torch.zeros(1)).active
    ((False, False, True),)
    """
    return chosen([[choice] for choice in choices], options, like)


def chosen(choices: list[list[int]], options: int, like: Tensor) -> Mixture:
    """Each row takes several options (or none) with weight one: parents of a node, for example."""
    active = tuple(tuple(column in row for column in range(options)) for row in choices)
    return Mixture(torch.tensor(active, dtype=like.dtype, device=like.device), active)
