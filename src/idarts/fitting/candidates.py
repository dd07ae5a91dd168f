"""What the trials of a fit compare.

In the supernet all options have the same number of channels; the networks of a fit have the same number of parameters
instead. There a cheap operation buys more channels, which α cannot see. So some candidates lie between the cheapest and
the dearest architecture, and α decides only which of the options that cost alike they take. The fixed architecture is a
candidate, too: a search that has nothing better to offer should at least not lose.
"""

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from idarts.arch import Architecture, space_of
from idarts.searching.selections.trials import neighbours
from idarts.spaces.prices import prices

if TYPE_CHECKING:
    from idarts.searching import Search


def candidates(search: "Search", fixed: Architecture) -> list[Architecture]:
    """The architecture of α, the fixed one, some along the price, the neighbours of α; the first stay longest."""
    most = search.selection.samples
    near = neighbours(search)
    chosen = [near[0], fixed, *spaced(by_price(search), most // 2), *near[1:]]
    return list({str(one): one for one in chosen}.values())[:most]


def by_price(search: "Search") -> list[Architecture]:
    """Architectures from the dearest to the cheapest: the largest of log p(option) − λ·price, for rising λ."""
    if not space_of(search.current()).has("prices"):
        return []
    scores = {name: alpha.log_softmax(dim=1) for name, alpha in search.living().items()}
    costs = {name: scores[name].new_tensor(rows) for name, rows in prices(search.net, "parameters").options.items()}
    passed: dict[str, Architecture] = {}
    for pressure in _pressures(scores, costs):
        picked = search.pick({name: score - pressure * costs[name] for name, score in scores.items()})
        passed.setdefault(str(picked), picked)
    return list(passed.values())


def _pressures(scores: dict[str, Tensor], costs: dict[str, Tensor]) -> list[float]:
    """One λ between each two at which two options of a decision tie: elsewhere nothing changes. And one at each end."""
    ties: list[Tensor] = []
    for name, score in scores.items():
        better, dearer = (values[:, :, None] - values[:, None, :] for values in (score, costs[name]))
        ties.append((better / dearer)[(dearer > 0) & better.isfinite()])
    places = torch.cat(ties).unique()
    if not len(places):
        return [0.0]
    return [2 * float(places[0]) - 1, *(places[1:] + places[:-1]).div(2).tolist(), 2 * float(places[-1]) + 1]


def spaced(architectures: list[Architecture], most: int) -> list[Architecture]:
    """At most so many of them, evenly spaced, both ends included; the last one first."""
    count = min(most, len(architectures))
    places = {round(place) for place in torch.linspace(0, len(architectures) - 1, count).tolist()}
    return [architectures[place] for place in sorted(places, reverse=True)]
