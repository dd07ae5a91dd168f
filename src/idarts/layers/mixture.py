"""The weights with which a supernet mixes the options of its decisions."""

from dataclasses import dataclass

from torch import Tensor

from idarts.layers.constants import constant


@dataclass(frozen=True)
class Mixture:
    """The weight of each option (one row per decision), and which options run: `active=None` runs all of them.

    `active` decides what is computed, so it is plain data, not a tensor. Where only a part of the channels goes through
    the options, `bypass` has a weight for each decision, for the channels that pass by (None: one).
    """

    weights: Tensor
    active: tuple[tuple[bool, ...], ...] | None = None
    bypass: Tensor | None = None

    def runs(self, row: int, column: int) -> bool:
        return self.active is None or self.active[row][column]


def one_hot(choices: list[int], options: int, like: Tensor) -> Mixture:
    """A single path: in each row one option has weight one, and only that one runs.

    >>> import torch
    >>> one_hot([2], 3, torch.zeros(1)).active
    ((False, False, True),)
    """
    return multi_hot([[choice] for choice in choices], options, like)


def multi_hot(choices: list[list[int]], options: int, like: Tensor) -> Mixture:
    """In each row several options (or none) have weight one: the parents of a node, for example.

    >>> import torch
    >>> multi_hot([[0, 2], []], 3, torch.zeros(1)).weights
    tensor([[1., 0., 1.],
            [0., 0., 0.]])
    """
    active = tuple(tuple(column in row for column in range(options)) for row in choices)
    return Mixture(constant(active, like.device, like.dtype), active)
