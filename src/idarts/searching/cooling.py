"""A temperature that falls over the budget, for relaxations that draw with noise."""

from dataclasses import dataclass, replace
from typing import Self

from idarts.errors import InputError


@dataclass(frozen=True)
class Cooled:
    """The temperature falls linearly from `first` to `last` over the budget.

    >>> [Cooled(10.0, 2.0).at(used).temperature for used in (0.0, 0.5, 1.0)]
    [10.0, 6.0, 2.0]
    >>> Cooled(0.0, 1.0)
    Traceback (most recent call last):
    idarts.errors.InputError: temperatures first 0.0 and last 1.0, expected positive numbers
    """

    first: float
    last: float
    used: float = 0.0  # share of the budget

    def __post_init__(self) -> None:
        if not (self.first > 0 and self.last > 0):
            raise InputError(f"temperatures first {self.first} and last {self.last}, expected positive numbers")

    @property
    def temperature(self) -> float:
        return self.first - (self.first - self.last) * self.used

    def at(self, used: float) -> Self:
        return replace(self, used=used)
