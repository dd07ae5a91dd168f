"""From architecture parameters to what a supernet mixes. A relaxation knows no space, a space no relaxation.

Every α is a matrix: a row for each decision, a column for each option. A relaxation turns it into a `Mixture` of the
same shape; one that samples paths also says which options run, and the supernet runs no others.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import elu

from idarts.errors import InputError
from idarts.layers.mixture import Mixture, one_hot

Relaxation = Callable[[Tensor], Mixture]


def softmax(alpha: Tensor) -> Mixture:
    """DARTS' relaxation: every option runs, weighted by its softmax.

    >>> softmax(torch.zeros(1, 4)).weights
    tensor([[0.2500, 0.2500, 0.2500, 0.2500]])
    """
    return Mixture(alpha.softmax(dim=-1))


@dataclass(frozen=True)
class Gumbel:
    """GDAS: noise is added to α and only the largest option runs; the gradient is that of the softmax around it.

    >>> Gumbel(temperature=0.1)(torch.tensor([[0.0, 99.0]])).active
    ((False, True),)
    """

    temperature: float = 1.0

    def __call__(self, alpha: Tensor) -> Mixture:
        soft = ((alpha + gumbel_noise(alpha)) / self.temperature).softmax(dim=-1)
        hard = one_hot(soft.argmax(dim=-1).tolist(), alpha.shape[1], alpha)
        return Mixture(hard.weights + soft - soft.detach(), hard.active)


def gumbel_noise(like: Tensor) -> Tensor:
    """Noise that makes the largest of α + noise a draw from α's softmax; from the CPU's generator on any device."""
    return torch.empty(like.shape).exponential_().log().neg().to(like)


def dirichlet(alpha: Tensor) -> Mixture:
    """DrNAS: the weights are drawn from a Dirichlet distribution, differentiable in its concentration elu(α) + 1.

    >>> round(dirichlet(torch.zeros(1, 3)).weights.sum().item(), 4)
    1.0
    """
    return Mixture(torch.distributions.Dirichlet(elu(alpha) + 1).rsample())


def uniform(alpha: Tensor) -> Mixture:
    """A single path, all of them alike: RandomNAS and SETN train their weights so.

    >>> uniform(torch.zeros(2, 3)).weights.sum(dim=1)
    tensor([1., 1.])
    """
    return one_hot(torch.randint(alpha.shape[1], (len(alpha),)).tolist(), alpha.shape[1], alpha)


@dataclass(frozen=True)
class Without:
    """A relaxation that leaves one option out, as `none`, whose weight only scales what the others give.

    >>> Without(0)(torch.zeros(1, 3)).weights
    tensor([[0.0000, 0.5000, 0.5000]])
    """

    column: int
    base: Relaxation = softmax

    def __call__(self, alpha: Tensor) -> Mixture:
        kept = [column for column in range(alpha.shape[1]) if column != self.column]
        found = self.base(alpha[:, kept])
        weights = alpha.new_zeros(alpha.shape).index_copy(1, torch.tensor(kept, device=alpha.device), found.weights)
        if found.active is None:
            return Mixture(weights)
        active = [[*row[: self.column], False, *row[self.column :]] for row in found.active]
        return Mixture(weights, tuple(map(tuple, active)))


@dataclass(frozen=True)
class PartialChannels:
    """PC-DARTS: of every node's channels only one in `share` goes through the operations, the others pass them by.

    `base` says how the options are mixed. A supernet with operations on its edges reads `share` when it is built.

    >>> PartialChannels(share=4)(torch.zeros(1, 2)).weights
    tensor([[0.5000, 0.5000]])
    """

    share: int = 4
    base: Relaxation = softmax

    def __post_init__(self) -> None:
        if self.share < 2:
            raise InputError(f"share={self.share}, expected at least 2: one in so many channels is searched")

    def __call__(self, alpha: Tensor) -> Mixture:
        return self.base(alpha)


def share_of(relaxation: Relaxation, channels: int) -> int:
    """How many channels stand for one that goes through the operations; they must divide evenly.

    >>> share_of(softmax, 10), share_of(PartialChannels(2), 10)
    (1, 2)
    """
    share = relaxation.share if isinstance(relaxation, PartialChannels) else 1
    if channels % share:
        raise InputError(f"one in {share} of {channels} channels is no whole number; change share or channels")
    return share
