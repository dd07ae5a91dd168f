"""XNAS' relaxation: the softmax of α, with the derivative of the weights (Nayman et al. 2019, arXiv:1906.08031).

The weights are u = softmax(α), and α's gradient is ∂L2/∂u, not ∂L2/∂α: the reward of an expert is −∂L2/∂u_i, without
the normalisation. The rule `exponentiated` needs it so. An α that several cells share gets the sum over them.
"""

from torch import Tensor

from idarts.layers.mixture import Mixture
from idarts.searching.registries import RELAXATIONS


@RELAXATIONS.register("experts")
def experts(alpha: Tensor) -> Mixture:
    """u = softmax(α) with ∂u/∂α taken for the identity.

    >>> import torch
    >>> alpha = torch.zeros(1, 2, requires_grad=True)
    >>> (experts(alpha).weights * torch.tensor([3.0, 5.0])).sum().backward()
    >>> alpha.grad
    tensor([[3., 5.]])
    """
    return Mixture(alpha.softmax(dim=-1).detach() + (alpha - alpha.detach()))
