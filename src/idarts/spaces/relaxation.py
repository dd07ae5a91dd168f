"""From architecture parameters to what a supernet mixes. A relaxation knows no space, a space no relaxation.

Every α is a matrix: a row for each decision, a column for each option. A relaxation turns it into a `Mixture` of the
same shape; one that samples paths also says which options run, and the supernet runs no others. The relaxations that a
search can name are in `idarts.searching.relaxations`.
"""

from collections.abc import Callable

from torch import Tensor

from idarts.errors import InputError
from idarts.layers.mixture import Mixture

Relaxation = Callable[[Tensor], Mixture]


def softmax(alpha: Tensor) -> Mixture:
    """Every option runs, weighted by its softmax.

    >>> import torch
    >>> softmax(torch.zeros(1, 4)).weights
    tensor([[0.2500, 0.2500, 0.2500, 0.2500]])
    """
    return Mixture(alpha.softmax(dim=-1))


def weighs_edges(relaxation: Relaxation) -> bool:
    """Whether the supernet gives every edge a weight β, as the relaxation asks for.

    >>> weighs_edges(softmax)
    False
    """
    return bool(getattr(relaxation, "edges", False))


def share_of(relaxation: Relaxation, channels: int) -> int:
    """One in how many channels goes through the operations; they must divide evenly.

    >>> share_of(softmax, 10)
    1
    """
    share = int(getattr(relaxation, "share", 1))
    if channels % share:
        raise InputError(f"one in {share} of {channels} channels is not a whole number; change share or channels")
    return share
