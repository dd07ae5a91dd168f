"""GDAS' relaxation: one path is drawn, the gradient is that of a softmax around it (Dong and Yang 2019)."""

from dataclasses import dataclass

import torch
from torch import Tensor

from idarts.layers.mixture import Mixture, one_hot
from idarts.searching.cooling import Cooled
from idarts.searching.registries import RELAXATIONS


@RELAXATIONS.register("gumbel")
@dataclass(frozen=True)
class Gumbel(Cooled):
    """Only the largest of α + noise runs; the temperature of the softmax falls from `first` to `last` over the budget.

    >>> Gumbel(first=0.1)(torch.tensor([[0.0, 99.0]])).active
    ((False, True),)
    >>> Gumbel().at(1.0).temperature
    0.0999...
    """

    first: float = 10.0
    last: float = 0.1

    def __call__(self, alpha: Tensor) -> Mixture:
        soft = ((alpha + gumbel_noise(alpha)) / self.temperature).softmax(dim=-1)
        hard = one_hot(soft.argmax(dim=-1).tolist(), alpha.shape[1], alpha)
        return Mixture(hard.weights + soft - soft.detach(), hard.active)


def gumbel_noise(like: Tensor) -> Tensor:
    """Noise that makes the largest of α + noise a draw from α's softmax; from the CPU's generator on any device."""
    return torch.empty(like.shape).exponential_().log().neg().to(like, non_blocking=True)
