"""One clock for all ranks: budgets and learning rates depend on it, so it must say the same everywhere."""

import time
from types import TracebackType
from typing import Self

import torch

from idarts.engine.ranks.collectives import all_mean


class Clock:
    """Adds up the seconds inside `with`, the mean over all ranks; `with` inside `with` counts once.

    >>> clock = Clock()
    >>> with clock:
    ...     pass
    >>> 0 <= clock.seconds < 1
    True
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self._depth = 0

    def __enter__(self) -> Self:
        if not self._depth:
            self._started = time.monotonic()
        self._depth += 1
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._depth -= 1
        if error is None and not self._depth:  # another rank may have met no error, and would wait for the mean
            passed = torch.tensor(time.monotonic() - self._started, dtype=torch.float64)
            self.seconds += float(all_mean(passed))
