"""What the trials of a fit compare.

In the supernet all options have the same number of channels; the networks of a fit have the same number of parameters
instead. There a cheap operation buys more channels, which α cannot see. So some candidates follow α under the pressure
of a preference: the largest of log p(option) + λ·preference(option) in every decision, for rising λ. Two preferences
are used: for few parameters, and for the fixed architecture, which people have used for years. The fixed architecture
is a candidate, too: a search that has nothing better to offer should at least not lose. So are the architectures with
one option throughout, which is how people build networks.
"""

from typing import TYPE_CHECKING

import torch

from idarts.arch import Architecture, space_of
from idarts.searching.candidates import Preference, along, different, neighbours, spaced, uniform
from idarts.spaces.prices import prices

if TYPE_CHECKING:
    from idarts.searching import Search


def candidates(search: "Search", fixed: Architecture) -> list[Architecture]:
    """α's architecture, the fixed one, those of one option, some along two preferences, then the neighbours of α's."""
    most = search.selection.samples
    near, cheap = neighbours(search), cheapness(search)
    block = {name: 2 * mixture.weights + cheap[name] for name, mixture in search.net.path(fixed).items()}
    towards, priced = along(search, block, start=0.0), along(search, cheap)
    chosen = [near[0], fixed, *uniform(search), *spaced(towards, most // 8), *spaced(priced, most // 4), *near[1:]]
    return different(chosen)[:most]


def cheapness(search: "Search") -> Preference:
    """From 0 for a free option to −1 for the dearest; 0 for all in a space that knows no prices."""
    alphas = search.living()
    if not space_of(search.current()).has("prices"):
        return {name: torch.zeros_like(alpha) for name, alpha in alphas.items()}
    priced = prices(search.net, "parameters").options
    dearest = max(price for rows in priced.values() for row in rows for price in row)
    return {name: -alpha.new_tensor(priced[name]) / dearest for name, alpha in alphas.items()}
