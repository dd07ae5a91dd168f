"""What trials compare: the architecture that α selects, and others near it."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from idarts.arch import Architecture, space_of

if TYPE_CHECKING:
    from idarts.searching.loop import Search

# In α, where candidates are drawn: at first, the factor after a draw that is not new, and the end of all draws.
NOISE, MORE_NOISE, MOST_NOISE = 0.5, 1.1, 100.0


def neighbours(search: "Search") -> list[Architecture]:
    """The architecture that α selects, then those with one decision changed, the nearest by α first."""
    alphas = {name: alpha.detach().clone() for name, alpha in search.net.alpha.items()}
    candidates: list[tuple[float, Architecture]] = [(-1.0, search.pick(alphas))]
    for name, alpha in alphas.items():
        for row in range(len(alpha)):
            first = int(alpha[row].argmax())
            for column in range(alpha.shape[1]):
                other = alpha.clone()
                other[row, [first, column]] = alpha[row, [column, first]]
                gap = float(alpha[row, first] - alpha[row, column])
                candidates.append((gap, search.pick({**alphas, name: other})))
    nearest = sorted(candidates, key=lambda candidate: candidate[0])
    return different(architecture for _, architecture in nearest)[: search.selection.samples]


def draws(search: "Search") -> list[Architecture]:
    """The architecture that α selects, then others around it: those of α plus noise, of half α's spread at first.

    Where a space has many decisions, good architectures differ from that of α in more than one. Where draws repeat
    themselves, because α has decided, the noise grows.
    """
    random, noise = torch.Generator().manual_seed(search.settings.seed), NOISE
    networks = {_identity(first): first for first in [search.pick()]}
    while len(networks) < search.selection.samples and noise < MOST_NOISE:
        drawn = search.pick({name: _blurred(alpha, noise, random) for name, alpha in search.living().items()})
        if networks.setdefault(_identity(drawn), drawn) is not drawn:
            noise *= MORE_NOISE
    return list(networks.values())


def different(architectures: Iterable[Architecture]) -> list[Architecture]:
    """The architectures without those that are the same network as an earlier one, such as by a loose end."""
    networks: dict[str, Architecture] = {}
    for architecture in architectures:
        networks.setdefault(_identity(architecture), architecture)
    return list(networks.values())


def _identity(architecture: Architecture) -> str:
    return space_of(architecture).identity(architecture)


def _blurred(alpha: Tensor, noise: float, random: torch.Generator) -> Tensor:
    """α with noise in units of its standard deviation; an option that takes no part has −∞, and keeps it."""
    spread = alpha[alpha.isfinite()].std(correction=0)
    return alpha + noise * spread * torch.randn(alpha.shape, generator=random).to(alpha)


CANDIDATES = {"neighbours": neighbours, "draws": draws}
