"""P-DARTS' three stages (Chen et al. 2019, arXiv:1904.12760): each deeper, with fewer options; w and α start afresh.

Depth 5 → 11 → 17 cells (here 1, 2.2 and 3.4 times the supernet's depth), 8 → 5 → 3 options by the softmax of α, edge by
edge; in the last stage `none` leaves first. Behind identity skips there is dropout, p₀ = 0.1, 0.4, 0.7. The paper says
only that the rate decays in a stage; the formula is that of the published code, whose own defaults have no dropout:
p₀(E − e − 1)/E while α rests (the first 10 of E = 25 epochs), then p₀·exp(−0.2(e − 10)), so the rate jumps back to p₀
when α starts. Strided skips have none.
"""

import math
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from idarts.errors import InputError
from idarts.searching.registries import SCHEDULES
from idarts.searching.stage import Stage

if TYPE_CHECKING:
    from idarts.searching.settings import Config

EPOCHS, RESTING = 25, 10  # of a stage in the paper, and those in which α rests


@SCHEDULES.register("p-darts")
def p_darts(
    _settings: "Config",
    deepen: Sequence[float] = (1.0, 2.2, 3.4),
    keep: Sequence[float] = (5 / 8, 3 / 8),
    dropout: Sequence[float] = (0.1, 0.4, 0.7),
) -> list[Stage]:
    """Depth of each stage as a multiple of the supernet's, share of the options in the later ones, first dropout rates.

    >>> from idarts.searching.settings import Config
    >>> [round(5 * stage.deepen) for stage in p_darts(Config())]
    [5, 11, 17]
    """
    if not len(deepen) == len(keep) + 1 == len(dropout):
        raise InputError("stages_options of p-darts: one `keep` fewer than `deepen` and `dropout`, which start a stage")
    last = len(dropout) - 1
    return [
        Stage(
            share=1 / len(dropout),
            deepen=deepen[stage],
            keep=float(keep[stage - 1]) if stage else None,
            drop_none=stage == last > 0,
            skip_dropout=partial(skip_dropout, dropout[stage]),
        )
        for stage in range(len(dropout))
    ]


def skip_dropout(first: float, part: float) -> float:
    """The rate after that part of a stage.

    >>> [round(skip_dropout(0.4, epoch / EPOCHS), 3) for epoch in (0, 9, 10, 15)]
    [0.384, 0.24, 0.4, 0.147]
    """
    epoch = math.floor(part * EPOCHS + 1e-9)
    if epoch < RESTING:
        return first * (EPOCHS - epoch - 1) / EPOCHS
    return first * math.exp(-0.2 * (epoch - RESTING))
