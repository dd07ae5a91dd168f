"""What trials compare: the architecture that α selects, and others near it."""

from collections.abc import Iterable
from itertools import pairwise
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from idarts.arch import Architecture, space_of

if TYPE_CHECKING:
    from idarts.searching.loop import Search

# In α, where candidates are drawn: at first, the factor after a draw that is not new, and the end of all draws.
NOISE, MORE_NOISE, MOST_NOISE = 0.5, 1.1, 100.0
FAVOUR = 1e6  # more than any difference within α
Preference = dict[str, Tensor]  # a number for each option, in the shape of α


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
    drawn = [search.pick()]
    while len(drawn) < search.selection.samples and noise < MOST_NOISE:
        another = search.pick({name: _blurred(alpha, noise, random) for name, alpha in search.living().items()})
        if len(different([*drawn, another])) > len(drawn):
            drawn.append(another)
        else:
            noise *= MORE_NOISE
    return drawn


def different(architectures: Iterable[Architecture]) -> list[Architecture]:
    """The architectures without those that are the same network as an earlier one, such as by a loose end."""
    networks: dict[str, Architecture] = {}
    for architecture in architectures:
        networks.setdefault(space_of(architecture).identity(architecture), architecture)
    return list(networks.values())


def _blurred(alpha: Tensor, noise: float, random: torch.Generator) -> Tensor:
    """α with noise in units of its standard deviation; an option that takes no part has −∞, and keeps it."""
    spread = alpha[alpha.isfinite()].std(correction=0)
    return alpha + noise * spread * torch.randn(alpha.shape, generator=random).to(alpha)


def uniform(search: "Search") -> list[Architecture]:
    """The architectures that have one option in all decisions; where a decision lacks it, the largest of α is taken."""
    alphas = search.living()
    options = range(max(alpha.shape[1] for alpha in alphas.values()))
    return [search.pick({name: _favour(option, alpha) for name, alpha in alphas.items()}) for option in options]


def _favour(option: int, alpha: Tensor) -> Tensor:
    """α with one option raised above all others; one that takes no part has −∞, and keeps it."""
    return alpha + FAVOUR * (torch.arange(alpha.shape[1], device=alpha.device) == option)


def along(search: "Search", preference: Preference, start: float | None = None) -> list[Architecture]:
    """The different architectures for λ from `start`, else from −∞, to ∞."""
    scores = {name: alpha.log_softmax(dim=1) for name, alpha in search.living().items()}
    passed: dict[str, Architecture] = {}
    for pressure in _pressures(scores, preference, start):
        picked = search.pick({name: score + pressure * preference[name] for name, score in scores.items()})
        passed.setdefault(str(picked), picked)
    return list(passed.values())


def _pressures(scores: Preference, preference: Preference, start: float | None) -> list[float]:
    """One λ between each two at which two options of a decision tie: elsewhere nothing changes. And one at each end."""
    ties: list[Tensor] = []
    for name, score in scores.items():
        better, dearer = (values[:, :, None] - values[:, None, :] for values in (score, -preference[name]))
        ties.append((better / dearer)[(dearer > 0) & better.isfinite()])
    places = torch.cat(ties).unique().tolist()
    if start is not None:
        places = [start, *(place for place in places if place > start)]
    if not places:
        return [0.0]
    middles = ((one + other) / 2 for one, other in pairwise(places))
    return [places[0] - 1 if start is None else start, *middles, places[-1] + 1]


def spaced(architectures: list[Architecture], most: int) -> list[Architecture]:
    """At most so many of them, evenly spaced, both ends included; the last one first."""
    count = min(most, len(architectures))
    places = {round(place) for place in torch.linspace(0, len(architectures) - 1, count).tolist()}
    return [architectures[place] for place in sorted(places, reverse=True)]


CANDIDATES = {"neighbours": neighbours, "draws": draws}
