"""What a search writes to `metrics.jsonl` after a round, and what it warns about then."""

import warnings
from typing import Any

from idarts.arch import Architecture, as_text
from idarts.errors import CollapseWarning
from idarts.searching.loop import Search
from idarts.searching.round import Round
from idarts.searching.verdict import UNIFORM

SKIP_SHARE = 2 / 3  # of a cell's edges: from there on a search has collapsed
KNOWN_BY_HEART = 0.5  # the training loss as a share of the validation loss
PICTURES = 500  # rounds whose α is kept: enough to draw it over time


class Log:
    """Every round's numbers; α and its architecture as often as a picture of them needs."""

    def __init__(self, search: Search) -> None:
        self.search = search
        self.every, self.warned = max(1, search.total // PICTURES), False

    def entry(self, round: Round) -> dict[str, Any]:
        """The line of one round."""
        entry = round.entry()
        if round.number % self.every == 0 or round.number in (1, self.search.total):
            architecture = self.search.current()
            if self.search.shares_weights:
                entry["alpha"] = self._alpha()
            entry["architecture"] = as_text(architecture)
            known = self.search.task.table_accuracy(architecture)
            entry |= {} if known is None else {"table_accuracy": known}
            self._warn_of_collapse(architecture, round)
        return entry

    def _alpha(self) -> dict[str, list[list[float | None]]]:
        """α, without the values of the options that the search has dropped by now."""
        search, first = self.search, self.search.full_mask()
        return {
            name: [
                [None if had and not has else round(value, 5) for value, had, has in zip(*columns, strict=True)]
                for columns in zip(alpha.tolist(), first[name], search.mask[name], strict=True)
            ]
            for name, alpha in search.net.alpha.items()
        }

    def _warn_of_collapse(self, architecture: Architecture, round: Round) -> None:
        ops = [edge.op for cell in architecture.cells.values() for edge in cell.edges if edge.op]
        if self.warned or not ops or round.number < self.search.total / 4:
            return
        if round.entropy is None or round.entropy > UNIFORM:
            return  # an α that is almost uniform has not collapsed: its largest option is chance
        share = ops.count("skip_connect") / len(ops)
        if share >= SKIP_SHARE:
            self.warned = True
            warnings.warn(
                f"α has collapsed to skip connections on {100 * share:.0f} % of the edges by round {round.number}; "
                f"{_remedy(round)}",
                CollapseWarning,
                stacklevel=2,
            )


def _remedy(round: Round) -> str:
    """Against a collapse; that weights know their images is one cause, which docs/study.md has measured."""
    train, valid = round.train_loss, round.valid_loss
    if train is not None and valid is not None and 0 <= train < KNOWN_BY_HEART * valid:
        losses = f"training loss {train:.2g}, validation loss {valid:.2g}"
        return f"the weights know their images by heart ({losses}): give them more by a smaller `valid`, or end earlier"
    return "lower alpha.rate, or warm the weights up longer (weights.warmup)"
