"""FairDARTS' zero-one loss: −λ·mean (σ(α) − ½)² pushes sigmoids to 0 or 1 (Chu et al. 2020, arXiv:1911.12126)."""

from collections.abc import Mapping

import torch
from torch import Tensor

from idarts.searching.registries import PENALTIES
from idarts.searching.stage import Mask, living_rows


@PENALTIES.register("zero-one")
def zero_one(alphas: Mapping[str, Tensor], mask: Mask, _used: float, weight: float = 10.0) -> Tensor:
    """−weight · mean of (σ(α) − ½)² over all living options.

    >>> zero_one({"cell": torch.tensor([[99.0, -99.0]])}, {"cell": [[True, True]]}, 0.0, weight=4.0).item()
    -1.0
    """
    return -weight * (torch.cat(list(living_rows(alphas, mask))).sigmoid() - 0.5).square().mean()
