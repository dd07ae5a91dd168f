"""β-DARTS' regulariser: λ·mean over decisions of log Σ exp α, where λ grows (Ye et al. 2022, arXiv:2203.01665).

Its gradient in α is softmax(α): every step lowers the large logits most, which bounds the differences between them.
"""

from collections.abc import Mapping

import torch
from torch import Tensor

from idarts.searching.registries import PENALTIES
from idarts.searching.stage import Mask, living_rows


@PENALTIES.register("beta-decay")
def beta_decay(alphas: Mapping[str, Tensor], mask: Mask, used: float, weight: float = 50.0) -> Tensor:
    """weight · (share of the budget) · mean of log Σ exp α.

    >>> round(beta_decay({"cell": torch.zeros(2, 4)}, {"cell": [[True] * 4] * 2}, 0.5, weight=2.0).item(), 4)
    1.3863
    """
    smooth = [row.logsumexp(dim=0) for row in living_rows(alphas, mask)]
    return weight * used * torch.stack(smooth).mean()
