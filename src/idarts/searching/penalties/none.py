"""No penalty."""

from collections.abc import Mapping

import torch
from torch import Tensor

from idarts.searching.registries import PENALTIES
from idarts.searching.stage import Mask


@PENALTIES.register("none")
def none(_alphas: Mapping[str, Tensor], _mask: Mask, _used: float) -> Tensor:
    """Zero.

    >>> none({}, {}, 0.0)
    tensor(0.)
    """
    return torch.zeros(())
