"""SmoothDARTS' random perturbation: noise on the mixture (SDARTS-RS; Chen and Hsieh 2020, arXiv:2002.05283).

Weights w that do well under noise make the validation loss smooth in α. It is a relaxation for the weight steps
(`weights.relaxation`); α's step takes the softmax. As in the published code, noise is added to softmax(α), negative
values become 0, and the rest is normalised.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from idarts.errors import InputError
from idarts.layers.mixture import Mixture
from idarts.searching.registries import RELAXATIONS


@RELAXATIONS.register("perturbed")
@dataclass(frozen=True)
class Perturbed:
    """softmax(α) + δ with δ uniform in ±ε, where ε grows linearly from 0 to `most` over the budget.

    >>> torch.equal(Perturbed().at(0.0)(torch.zeros(1, 2)).weights, torch.full((1, 2), 0.5))
    True
    """

    most: float = 0.03
    used: float = 1.0  # share of the budget

    def __post_init__(self) -> None:
        if self.most < 0:
            raise InputError(f"perturbed: most={self.most}, expected at least 0")

    def at(self, used: float) -> "Perturbed":
        return Perturbed(self.most, used)

    def __call__(self, alpha: Tensor) -> Mixture:
        noise = (2 * torch.rand(alpha.shape) - 1).to(alpha, non_blocking=True)  # by the CPU's generator on any device
        weights = (alpha.softmax(dim=-1) + self.most * self.used * noise).clamp_min(0.0)
        return Mixture(weights / weights.sum(dim=-1, keepdim=True).clamp_min(1e-12))
