"""SmoothDARTS' random perturbation: noise on the mixture (SDARTS-RS; Chen and Hsieh 2020, arXiv:2002.05283).

Weights w that do well under noise make the validation loss smooth in α. It is a relaxation for the weight steps
(`weights.relaxation`); α's step takes the softmax. As in the published code, noise is added to softmax(α), negative
values become 0, and the rest is normalised. Its bounds are those of the published code, too: ε = 0.03 +
(0.3 − 0.03)·epoch/epochs (xiangning-chen/SmoothDARTS, sota/cnn/train_search.py).
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
    """softmax(α) + δ with δ uniform in ±ε, where ε grows linearly from `least` to `most` over the budget.

    >>> [round(Perturbed().at(used).bound, 3) for used in (0.0, 0.5, 1.0)]
    [0.03, 0.165, 0.3]
    """

    most: float = 0.3
    least: float = 0.03
    used: float = 1.0  # share of the budget

    def __post_init__(self) -> None:
        if min(self.most, self.least) < 0:
            raise InputError(f"perturbed: least={self.least}, most={self.most}, expected at least 0")

    def at(self, used: float) -> "Perturbed":
        return Perturbed(self.most, self.least, used)

    @property
    def bound(self) -> float:
        """ε at this share of the budget."""
        return self.least + (self.most - self.least) * self.used

    def __call__(self, alpha: Tensor) -> Mixture:
        noise = (2 * torch.rand(alpha.shape) - 1).to(alpha, non_blocking=True)  # by the CPU's generator on any device
        weights = (alpha.softmax(dim=-1) + self.bound * noise).clamp_min(0.0)
        return Mixture(weights / weights.sum(dim=-1, keepdim=True).clamp_min(1e-12))
