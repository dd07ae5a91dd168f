"""PC-DARTS' relaxation: only a part of every node's channels goes through the operations (Xu et al. 2020)."""

from dataclasses import dataclass

from torch import Tensor

from idarts.errors import InputError
from idarts.layers.mixture import Mixture
from idarts.searching.registries import RELAXATIONS
from idarts.spaces.relaxation import Relaxation, softmax


@RELAXATIONS.register("partial-channels")
@dataclass(frozen=True)
class PartialChannels:
    """One in `share` channels is searched, the others pass by. `base` mixes the options.

    A supernet with operations on its edges reads `share` when it is built.

    >>> import torch
    >>> PartialChannels(share=4)(torch.zeros(1, 2)).weights
    tensor([[0.5000, 0.5000]])
    """

    share: int = 4
    base: Relaxation = softmax

    def __post_init__(self) -> None:
        if self.share < 2:
            raise InputError(f"partial-channels: share={self.share}, expected at least 2 (one in so many channels)")

    def __call__(self, alpha: Tensor) -> Mixture:
        return self.base(alpha)
