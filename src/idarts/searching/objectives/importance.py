"""PARSEC's objective: several paths, each weighted by its likelihood (Casale et al. 2019, arXiv:1902.05116).

The gradient of the log evidence in w is Σ ω_k ∇ log p(y|X, w, path_k) with ω = softmax(−N·loss); divided by N, as for
any mean loss, that is the gradient of −Σ ω_k·loss_k with ω held fixed.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from idarts.engine.ranks import all_mean
from idarts.errors import InputError
from idarts.layers.mixture import Mixture
from idarts.searching.registries import OBJECTIVES

if TYPE_CHECKING:
    from idarts.searching.settings import Config


@OBJECTIVES.register("importance")
class ImportanceWeighted:
    """Σ ω_k·loss_k over `paths` draws.

    >>> from idarts.searching.settings import Config
    >>> losses = iter([torch.tensor(1.0), torch.tensor(1.0)])
    >>> ImportanceWeighted(Config(), paths=2)(dict, lambda _: next(losses))
    tensor(1.)
    """

    def __init__(self, settings: "Config", paths: int = 8) -> None:
        if paths < 1:
            raise InputError(f"weights.objective_options: paths is {paths}, expected a whole number of at least 1")
        self.paths, self.images = paths, settings.batch

    def __call__(
        self, draw: Callable[[], Mapping[str, Mixture]], evaluate: Callable[[Mapping[str, Mixture]], Tensor]
    ) -> Tensor:
        losses = torch.stack([evaluate(draw()) for _ in range(self.paths)])
        return importance(all_mean(losses.detach()), self.images) @ losses


def importance(losses: Tensor, images: int) -> Tensor:
    """softmax(−N·loss): the weight of each path; a constant that all losses share has no effect.

    >>> importance(torch.tensor([1.0, 1.0]), images=64)
    tensor([0.5000, 0.5000])
    """
    return (-images * losses).softmax(dim=0)
