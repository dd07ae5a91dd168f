"""A single path, all of them equally likely: how RandomNAS and SETN train their weights."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from idarts.layers.mixture import Mixture, one_hot
from idarts.searching.registries import RELAXATIONS


@RELAXATIONS.register("uniform")
@dataclass(frozen=True)
class Uniform:
    """One option of each decision at random, independent of α.

    >>> Uniform()(torch.zeros(2, 3)).weights.sum(dim=1)
    tensor([1., 1.])
    """

    derivatives: ClassVar[int] = 0

    def __call__(self, alpha: Tensor) -> Mixture:
        return one_hot(torch.randint(alpha.shape[1], (len(alpha),)).tolist(), alpha.shape[1], alpha)
