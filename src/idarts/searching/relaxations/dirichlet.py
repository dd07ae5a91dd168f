"""DrNAS' relaxation: the weights are drawn from a Dirichlet distribution (Chen et al. 2021, arXiv:2006.10355).

θ ~ Dir(β) with β = elu(α) + 1, so α = 0 is the uniform distribution over the simplex. Gradients are pathwise. Among
some of the options it is the Dirichlet distribution of their concentrations: the same as drawing all, leaving the
others out and normalising, as the published code does (neutrality).
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import elu

from idarts.layers.mixture import Mixture
from idarts.searching.registries import RELAXATIONS

SMALLEST = 1e-4  # concentration: elu(α) + 1 is 0 in float32 from α = −17 on, where there is no distribution


@RELAXATIONS.register("dirichlet")
@dataclass(frozen=True)
class Dirichlet:
    """Weights from Dirichlet(elu(α) + 1), differentiable once in α.

    >>> round(Dirichlet()(torch.zeros(1, 3)).weights.sum().item(), 4)
    1.0
    """

    derivatives: ClassVar[int] = 1

    def __call__(self, alpha: Tensor) -> Mixture:
        return Mixture(torch.distributions.Dirichlet(concentration(alpha), validate_args=False).rsample())


def concentration(alpha: Tensor) -> Tensor:
    """β = elu(α) + 1, kept away from 0.

    >>> concentration(torch.tensor([0.0, 2.0, -99.0]))
    tensor([1.0000e+00, 3.0000e+00, 1.0000e-04])
    """
    return (elu(alpha) + 1).clamp_min(SMALLEST)
