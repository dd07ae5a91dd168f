"""Whether a search decided: how uniform α is at the end, and whether its leads are more than noise.

A low entropy alone proves nothing: a large rate lowers it by noise alone. So each decision's lead, of its best option
over the second best, is compared with a random walk. Over blocks of rounds the lead changes by d₁ … d_B; a walk without
a direction ends at about √Σd², a lead that grows steadily at √B times that. A decision is made if its lead is larger
than CLEAR times the walk's.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import compress
from typing import Any

import torch
from torch import Tensor

from idarts.searching.stage import Mask

UNIFORM = 0.95  # entropy above which the largest α is hardly more than chance
CLEAR = 1.5  # times a random walk's lead
BLOCKS = 16
FEWEST = 8  # blocks: with fewer, a random walk looks like a lead


@dataclass(frozen=True)
class Verdict:
    """What is known about the decisions of a search at its end."""

    entropy: float  # of α's softmax among the options that take part, mean over decisions, 1 for uniform
    margin: float
    decisions: int
    clear: int | None  # decisions whose lead is more than noise; None where there are too few rounds to tell
    trials: int = 0  # architectures that the selection trained: these trials decided, then

    @property
    def decided(self) -> bool:
        """Whether the architecture is more than chance: α is not uniform, and half of the decisions are clear."""
        clear = 0 if self.clear is None else self.clear
        return self.decisions > 0 and self.entropy <= UNIFORM and 2 * clear >= self.decisions

    @property
    def sentence(self) -> str:
        """The verdict in one line.

        >>> Verdict(0.5, 0.1, decisions=6, clear=1, trials=8).sentence
        'α did not decide: only 1 of 6 decisions lead by more than noise; trials of 8 architectures decided instead'
        >>> Verdict(0.99, 0.01, decisions=6, clear=None).sentence
        'α did not decide: it is still almost uniform (entropy 0.990 of 1); search longer, or with a larger alpha.rate'
        """
        shown = "" if self.clear is None else f"; {self.clear} of {self.decisions} decisions lead by more than noise"
        if self.decided:
            return f"α decided: entropy {self.entropy:.3f} of 1{shown}"
        if not self.decisions:
            return "α did not decide: every decision had a single option left, so there was nothing to judge"
        if self.entropy > UNIFORM:
            reason = f"it is still almost uniform (entropy {self.entropy:.3f} of 1{shown})"
            advice = "search longer, or with a larger alpha.rate"
        elif self.clear is None:
            reason, advice = "there were too few rounds to tell its leads from noise", "search longer"
        else:
            reason, advice = f"only {shown[2:]}", "search longer, with more images, or with selection.rule trials"
        instead = f"trials of {self.trials} architectures decided instead"
        return f"α did not decide: {reason}; {instead if self.trials else advice}"

    def to_data(self) -> dict[str, Any]:
        """JSON types only, for a run's result."""
        return {**asdict(self), "decided": self.decided, "sentence": self.sentence}


def verdict(
    entropy: float,
    margin: float,
    path: Sequence[Mapping[str, Sequence[Sequence[float | None]]]],
    mask: Mask,
    trials: int = 0,
) -> Verdict:
    """The verdict on a search whose α took this path, at equal distances, among the options of the mask.

    >>> steady = [{"cell": [[0.1 * number, 0.0]]} for number in range(20)]
    >>> verdict(0.5, 0.8, steady, {"cell": [[True, True]]}).clear
    1
    """
    open_rows = {name: [sum(row) > 1 for row in rows] for name, rows in mask.items()}
    decisions = sum(map(sum, open_rows.values()))
    places = sorted({round(place * (len(path) - 1) / BLOCKS) for place in range(BLOCKS + 1)}) if path else []
    if len(places) <= FEWEST:
        return Verdict(entropy, margin, decisions, None, trials)
    clear = 0
    for name, rows in mask.items():
        for row, alive in enumerate(rows):
            if open_rows[name][row]:
                values = _held([list(compress(point[name][row], alive)) for point in path])
                clear += _is_clear(torch.tensor([values[place] for place in places]))
    return Verdict(entropy, margin, decisions, clear, trials)


def _held(rows: Sequence[Sequence[float | None]]) -> list[list[float]]:
    """The values of options over time, where one that has left keeps its last value.

    >>> _held([[1.0, 2.0], [1.5, None]])
    [[1.0, 2.0], [1.5, 2.0]]
    """
    held: list[list[float]] = [[value or 0.0 for value in rows[0]]]
    for row in rows[1:]:
        held.append([before if value is None else value for value, before in zip(row, held[-1], strict=True)])
    return held


def _is_clear(values: Tensor) -> bool:
    """Whether the lead at the end is more than a random walk's, for one decision over time."""
    first, second = values[-1].topk(2).indices.tolist()
    lead = values[:, first] - values[:, second]
    steps = lead.diff()
    return bool((lead[-1] - lead[0]).item() > CLEAR * math.sqrt((steps**2).sum().item()))
