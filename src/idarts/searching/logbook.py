"""What a search's `metrics.jsonl` says of its rounds, and what is to be warned of when they are written."""

import warnings
from dataclasses import asdict
from typing import Any

from idarts.arch import Architecture, as_text
from idarts.errors import CollapseWarning
from idarts.searching.loop import Search
from idarts.searching.round import Round

SKIP_SHARE = 2 / 3  # of a cell's edges: from there on a search is said to have collapsed
PICTURES = 500  # rounds of which α is kept: enough to draw it over time


class Logbook:
    """Every round's numbers; α and the cell that it stands for as often as is good for a picture of them."""

    def __init__(self, search: Search) -> None:
        self.search = search
        self.every, self.warned = max(1, search.total // PICTURES), False

    def entry(self, found: Round) -> dict[str, Any]:
        """What is on record of one round."""
        entry: dict[str, Any] = asdict(found)
        if found.number % self.every == 0 or found.number in (1, self.search.total):
            net = self.search.net
            architecture = self.search.current()
            entry["alpha"] = {name: _rounded(alpha.tolist()) for name, alpha in net.alpha.items()}
            entry["architecture"] = as_text(architecture)
            if self.search.truth:
                entry["table_accuracy"] = self.search.truth.accuracy(architecture)
            self._watch_collapse(architecture, found)
        return entry

    def _watch_collapse(self, architecture: Architecture, found: Round) -> None:
        ops = [edge.op for cell in architecture.cells.values() for edge in cell.edges if edge.op]
        if self.warned or not ops or found.number < self.search.total / 4:
            return
        share = ops.count("skip_connect") / len(ops)
        if share >= SKIP_SHARE:
            self.warned = True
            warnings.warn(
                f"α has collapsed to skip connections on {100 * share:.0f} % of the edges by round {found.number}; "
                "lower alpha.rate, or warm the weights up longer (weights.warmup)",
                CollapseWarning,
                stacklevel=2,
            )


def _rounded(rows: list[list[float]]) -> list[list[float]]:
    return [[round(value, 5) for value in row] for row in rows]
