"""DrNAS' relaxation: the weights are drawn from a Dirichlet distribution (Chen et al. 2021)."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import elu

from idarts.layers.mixture import Mixture
from idarts.searching.registries import RELAXATIONS


@RELAXATIONS.register("dirichlet")
@dataclass(frozen=True)
class Dirichlet:
    """Weights from Dirichlet(elu(α) + 1), differentiable once in α.

    >>> round(Dirichlet()(torch.zeros(1, 3)).weights.sum().item(), 4)
    1.0
    """

    derivatives: ClassVar[int] = 1

    def __call__(self, alpha: Tensor) -> Mixture:
        return Mixture(torch.distributions.Dirichlet(elu(alpha) + 1).rsample())
