"""DrNAS' anchor in its KL form: λ·KL(Dir(β) ‖ Dir(1)), β = elu(α) + 1 (Chen et al. 2021, arXiv:2006.10355).

It keeps the distribution of the weights near the uniform one. The ℓ2 form, which the published code takes, is Adam's
weight decay on α (`alpha.decay`): α = 0 is the anchor β = 1. With this one, set that to 0.
"""

from collections.abc import Mapping

import torch
from torch import Tensor

from idarts.searching.registries import PENALTIES
from idarts.searching.relaxations.dirichlet import concentration
from idarts.searching.stage import Mask, living_rows


@PENALTIES.register("dirichlet-anchor")
def dirichlet_anchor(alphas: Mapping[str, Tensor], mask: Mask, _used: float, weight: float = 1e-3) -> Tensor:
    """weight · Σ over decisions of the KL divergence.

    >>> dirichlet_anchor({"cell": torch.zeros(2, 3)}, {"cell": [[True] * 3] * 2}, 0.5).item()
    0.0
    """
    return weight * torch.stack([kl_to_uniform(concentration(row)) for row in living_rows(alphas, mask)]).sum()


def kl_to_uniform(beta: Tensor) -> Tensor:
    """KL(Dir(β) ‖ Dir(1)) = ln Γ(S) − Σ ln Γ(β_k) − ln Γ(n) + Σ (β_k − 1)(ψ(β_k) − ψ(S)) with S = Σβ."""
    total, count = beta.sum(), torch.tensor(float(len(beta))).to(beta)
    constant = torch.lgamma(total) - torch.lgamma(beta).sum() - torch.lgamma(count)
    return constant + ((beta - 1) * (torch.digamma(beta) - torch.digamma(total))).sum()
