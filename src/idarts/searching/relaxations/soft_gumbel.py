"""SNAS' relaxation: a soft draw of every decision, from the concrete distribution (Xie et al. 2019, arXiv:1812.09926).

Z = softmax((α + G)/λ) with Gumbel noise G. All options run, and nothing is made hard, so gradients are pathwise:
∂Z_k/∂α_j = (δ_jk − Z_j)·Z_k/λ. λ falls linearly over the budget; the published scheduler always divides by 150 epochs,
however many there are. As λ → 0 a draw becomes one-hot, by the softmax of α at every λ.
"""

from dataclasses import dataclass

from torch import Tensor

from idarts.layers.mixture import Mixture
from idarts.searching.cooling import Cooled
from idarts.searching.registries import RELAXATIONS
from idarts.searching.relaxations.gumbel import gumbel_noise


@RELAXATIONS.register("soft-gumbel")
@dataclass(frozen=True)
class SoftGumbel(Cooled):
    """The softmax of α + noise, at a temperature that falls from `first` to `last` over the budget.

    >>> import torch
    >>> [round(SoftGumbel().at(used).temperature, 6) for used in (0.0, 1.0)]
    [1.0, 0.03]
    >>> round(SoftGumbel()(torch.zeros(1, 3)).weights.sum().item(), 4)
    1.0
    """

    first: float = 1.0
    last: float = 0.03

    def __call__(self, alpha: Tensor) -> Mixture:
        return Mixture(((alpha + gumbel_noise(alpha)) / self.temperature).softmax(dim=-1))
