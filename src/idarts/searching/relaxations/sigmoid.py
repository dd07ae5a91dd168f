"""FairDARTS' relaxation: options do not compete; each has its own sigmoid (Chu et al. 2020, arXiv:1911.12126)."""

from torch import Tensor

from idarts.layers.mixture import Mixture
from idarts.searching.registries import RELAXATIONS


@RELAXATIONS.register("sigmoid")
def sigmoid(alpha: Tensor) -> Mixture:
    """Every option runs, weighted by σ(α).

    >>> import torch
    >>> sigmoid(torch.zeros(1, 2)).weights
    tensor([[0.5000, 0.5000]])
    """
    return Mixture(alpha.sigmoid())
