"""What changes while a network is trained, as functions of the epoch, which may be a fraction."""

import math
from collections.abc import Callable

from idarts.training.settings import SLOW_EPOCHS, Weights


def rate(weights: Weights, epoch: float, epochs: int) -> float:
    """The learning rate at an epoch, the first of which is 0.

    >>> [round(rate(Weights(rate=0.1), epoch, 4), 4) for epoch in (0, 1, 2, 3)]
    [0.1, 0.0854, 0.05, 0.0146]
    """
    share = _SHARES[weights.schedule](math.floor(epoch) if weights.by == "epoch" else epoch, epochs)
    return weights.last_rate + (weights.rate - weights.last_rate) * share


def drop_path(last: float, weights: Weights, epoch: float, epochs: int) -> float:
    """The probability of drop-path, which rises in a straight line towards `last`.

    >>> drop_path(0.2, Weights(by="epoch"), 300.7, 600)
    0.1
    """
    return last * (math.floor(epoch) if weights.by == "epoch" else epoch) / epochs


def average_share(average: float, step: int) -> float:
    """How much of the old weights stays in the moving average: less in the first steps, which are far from the end.

    >>> average_share(0.999, 0), average_share(0.999, 100000)
    (0.1, 0.999)
    """
    return min(average, (1 + step) / (10 + step))


def _slow_end(epoch: float, epochs: int) -> float:
    """P-DARTS' and PC-DARTS' line, whose slope is a fifth in the last five epochs."""
    steep = epochs - SLOW_EPOCHS
    return (steep - epoch) / steep if epochs - epoch > SLOW_EPOCHS else (epochs - epoch) / (steep * SLOW_EPOCHS)


_SHARES: dict[str, Callable[[float, int], float]] = {
    "cosine": lambda epoch, epochs: 0.5 * (1 + math.cos(math.pi * epoch / epochs)),
    "linear": lambda epoch, epochs: 1 - epoch / epochs,
    "linear-slow-end": _slow_end,
}
