"""A single path, drawn from the softmax of α: what PARSEC trains and judges (Casale et al. 2019)."""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from idarts.layers.mixture import Mixture, one_hot
from idarts.searching.registries import RELAXATIONS
from idarts.searching.relaxations.gumbel import gumbel_noise


@RELAXATIONS.register("sampled")
@dataclass(frozen=True)
class Sampled:
    """One option of each decision, by the softmax of α; no gradient reaches α.

    >>> import torch
    >>> Sampled()(torch.tensor([[0.0, 99.0]])).active
    ((False, True),)
    """

    derivatives: ClassVar[int] = 0

    def __call__(self, alpha: Tensor) -> Mixture:
        drawn = (alpha.detach() + gumbel_noise(alpha)).argmax(dim=-1)
        return one_hot(drawn.tolist(), alpha.shape[1], alpha)
