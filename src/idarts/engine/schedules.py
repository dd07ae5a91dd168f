"""Schedules of the learning rate: how much of it is left at a moment."""

import math
from collections.abc import Callable

from idarts.registry import Registry

Schedule = Callable[[float, float], float]  # (now, end) → the share that is left, from 1 down to 0
SCHEDULES: Registry[Schedule] = Registry("schedule")
SLOW_EPOCHS = 5  # at the end of `linear-slow-end`


def learning_rate(first: float, last: float, now: float, end: float, schedule: str = "cosine") -> float:
    """The learning rate at `now`, on its way from `first` (at 0) to `last` (at `end`).

    `now` and `end` may be epochs, steps or shares of a budget; `linear-slow-end` counts epochs.

    >>> [round(learning_rate(0.1, 0.0, epoch, 4), 4) for epoch in (0, 1, 2, 3)]
    [0.1, 0.0854, 0.05, 0.0146]
    """
    return last + (first - last) * SCHEDULES[schedule](now, end)


@SCHEDULES.register("cosine")
def cosine(now: float, end: float) -> float:
    """Half a period of a cosine."""
    return 0.5 * (1 + math.cos(math.pi * now / end))


@SCHEDULES.register("linear")
def linear(now: float, end: float) -> float:
    """A straight line."""
    return 1 - now / end


@SCHEDULES.register("linear-slow-end")
def linear_slow_end(now: float, end: float) -> float:
    """The line of P-DARTS and PC-DARTS, whose slope is a fifth in the last five epochs."""
    steep = end - SLOW_EPOCHS
    return (steep - now) / steep if end - now > SLOW_EPOCHS else (end - now) / (steep * SLOW_EPOCHS)
