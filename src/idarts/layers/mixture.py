"""What a supernet mixes: the weights of the options of every decision, and which of them run."""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Mixture:
    """Weights of the options, and which of them run: `None` for all; `active` is control flow, so it is plain data."""

    weights: Tensor
    active: tuple[tuple[bool, ...], ...] | None = None

    def runs(self, row: int, column: int) -> bool:
        return self.active is None or self.active[row][column]


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
