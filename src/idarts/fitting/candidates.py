"""What the trials of a fit compare.

In the supernet all options have the same number of channels; the networks of a fit have the same number of parameters
instead. There a cheap operation buys more channels, which α cannot see. So some candidates follow α under the pressure
of a preference: the largest of log p(option) + λ·preference(option) in every decision, for rising λ. Two preferences
are used: for few parameters, and for the fixed architecture, which people have used for years. The fixed architecture
is a candidate, too: a search that has nothing better to offer should at least not lose. So are the architectures with
one option throughout, which is how people build networks.
"""

from itertools import pairwise
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from idarts.arch import Architecture, space_of
from idarts.searching.candidates import different, neighbours
from idarts.spaces.prices import prices

if TYPE_CHECKING:
    from idarts.searching import Search

FAVOUR = 1e6  # more than any difference within α
Preference = dict[str, Tensor]  # a number for each option, in the shape of α


def candidates(search: "Search", fixed: Architecture) -> list[Architecture]:
    """α's architecture, the fixed one, those of one option, some along two preferences, then the neighbours of α's."""
    most = search.selection.samples
    near, cheap = neighbours(search), cheapness(search)
    block = {name: 2 * mixture.weights + cheap[name] for name, mixture in search.net.path(fixed).items()}
    towards, priced = along(search, block, start=0.0), along(search, cheap)
    chosen = [near[0], fixed, *uniform(search), *spaced(towards, most // 8), *spaced(priced, most // 4), *near[1:]]
    return different(chosen)[:most]


def uniform(search: "Search") -> list[Architecture]:
    """The architectures that have one option in all decisions; where a decision lacks it, the largest of α is taken."""
    alphas = search.living()
    options = range(max(alpha.shape[1] for alpha in alphas.values()))
    return [search.pick({name: _favour(option, alpha) for name, alpha in alphas.items()}) for option in options]


def _favour(option: int, alpha: Tensor) -> Tensor:
    """α with one option raised above all others; one that takes no part has −∞, and keeps it."""
    return alpha + FAVOUR * (torch.arange(alpha.shape[1], device=alpha.device) == option)


def cheapness(search: "Search") -> Preference:
    """From 0 for a free option to −1 for the dearest; 0 for all in a space that knows no prices."""
    alphas = search.living()
    if not space_of(search.current()).has("prices"):
        return {name: torch.zeros_like(alpha) for name, alpha in alphas.items()}
    priced = prices(search.net, "parameters").options
    dearest = max(price for rows in priced.values() for row in rows for price in row)
    return {name: -alpha.new_tensor(priced[name]) / dearest for name, alpha in alphas.items()}


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
