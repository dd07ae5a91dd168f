"""PC-DARTS' relaxation: only a part of a node's channels is searched (Xu et al. 2020, arXiv:1907.05737).

With `edges`, each edge also has a weight β, a softmax over the inputs of a node, which scales the channels that
pass by as well. The paper takes random channels; its code takes the first 1/K and shuffles channels behind every node,
and so do we: a fixed slice costs no copy, and the shuffle gives each channel its turn.
"""

from dataclasses import dataclass
from typing import Any

from torch import Tensor

from idarts.errors import InputError
from idarts.layers.mixture import Mixture
from idarts.searching.registries import RELAXATIONS, build_part
from idarts.spaces.relaxation import softmax


@RELAXATIONS.register("partial-channels")
@dataclass(frozen=True)
class PartialChannels:
    """One in `share` channels is searched, the others pass by. `base` mixes the options: a relaxation or its name.

    A supernet with operations on its edges reads `share` and `edges` when it is built.

    >>> import torch
    >>> PartialChannels(share=4)(torch.zeros(1, 2)).weights
    tensor([[0.5000, 0.5000]])
    >>> PartialChannels(base="dirichlet").derivatives
    1
    """

    share: int = 4
    base: Any = softmax
    edges: bool = False

    def __post_init__(self) -> None:
        if self.share < 2 - self.edges:
            raise InputError(f"partial-channels: share={self.share}, expected at least 2 (one in so many channels)")
        if isinstance(self.base, str):
            object.__setattr__(self, "base", build_part(RELAXATIONS, self.base, {}))

    @property
    def derivatives(self) -> int:
        """How often the base can be differentiated."""
        return getattr(self.base, "derivatives", 2)

    def at(self, used: float) -> "PartialChannels":
        base = self.base.at(used) if hasattr(self.base, "at") else self.base
        return PartialChannels(self.share, base, self.edges)

    def __call__(self, alpha: Tensor) -> Mixture:
        mixture: Mixture = self.base(alpha)
        return mixture
