"""Scales of a chart: values to places along an axis, and round numbers beside it."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

LARGEST, SMALLEST = 1e30, 1e-300  # sizes that can be drawn; beyond them, differences and logarithms overflow
_WIDE = 1000  # ratio of largest to smallest value above which a linear axis hides most values
_CONSTANT = 1e-12  # relative span below which differences are rounding errors
_FACTORS = (1, 2, 5)
_EDGE = 1e-9  # of a step: a tick may be that far outside, by rounding
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


class Tick(NamedTuple):
    """A round number at an axis."""

    value: float
    text: str


@dataclass(frozen=True)
class Scale:
    """One axis: its range, and how its numbers are written."""

    low: float
    high: float
    logarithmic: bool = False
    percent: bool = False  # values are shares
    whole: bool = False  # only whole numbers are values

    def place(self, values: Floats) -> Floats:
        """Where values lie: 0 at the low end, 1 at the high end.

        >>> Scale(1, 100, logarithmic=True).place(np.array([1.0, 10.0])).tolist()
        [0.0, 0.5]
        """
        ends = np.array([self.low, self.high])
        if self.logarithmic:
            values, ends = np.log10(values), np.log10(ends)
        places: Floats = (values - ends[0]) / (ends[1] - ends[0])
        return places

    def ticks(self, most: int) -> list[Tick]:
        """About `most` round numbers inside the range.

        >>> [tick.text for tick in Scale(0, 1.05).ticks(6)]
        ['0', '0.2', '0.4', '0.6', '0.8', '1.0']
        >>> [tick.text for tick in Scale(1e-6, 1, logarithmic=True).ticks(4)]
        ['10⁻⁶', '10⁻⁴', '10⁻²', '10⁰']
        """
        decimals = self._log_ticks(most) if self.logarithmic else self._linear_ticks(most)
        texts = _texts([(count, power + 2 * self.percent) for count, power in decimals], " %" if self.percent else "")
        return [Tick(_decimal(*one), text) for one, text in zip(decimals, texts, strict=True)]

    def _linear_ticks(self, most: int) -> list[tuple[int, int]]:
        """Ticks as decimals (n, p), which stand for n · 10^p: floats would add their rounding errors."""
        rough = (self.high - self.low) / most
        power = math.floor(math.log10(rough))
        steps = [*((factor, power) for factor in _FACTORS), (1, power + 1)]
        factor, power = next(step for step in steps if _decimal(*step) >= rough * (1 - _EDGE))
        if self.whole and power < 0:
            factor, power = 1, 0
        step = _decimal(factor, power)
        first, last = math.ceil(self.low / step - _EDGE), math.floor(self.high / step + _EDGE)
        return [(count * factor, power) for count in range(first, last + 1)]

    def _log_ticks(self, most: int) -> list[tuple[int, int]]:
        powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        fine = self._inside((factor, power) for power in powers for factor in _FACTORS)
        if len(fine) <= most + 1:
            return fine
        decades = self._inside((1, power) for power in powers)
        return decades[:: math.ceil(len(decades) / most)]

    def _inside(self, decimals: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
        low, high = self.low * (1 - _EDGE), self.high * (1 + _EDGE)
        return [one for one in decimals if low <= _decimal(*one) <= high and not (self.whole and one[1] < 0)]


def scale(
    values: Floats, log: bool | None = False, room: float = 0.0, percent: bool = False, whole: bool = False
) -> Scale:
    """A scale for values; `log` None decides by their range, `room` is kept free at both ends, as a share.

    A vertical axis (with room) starts at 0 where that costs less than half of it.

    >>> wide, linear = scale(np.array([3.0, 40.0]), log=True), scale(np.array([1.0, 10.0]), room=0.1)
    >>> (wide.low, wide.high), (linear.low, linear.high)
    ((2.0, 50.0), (0.0, 11.0))
    """
    finite = values[np.isfinite(values)]
    if not finite.size:
        return Scale(0.1 if log else 0.0, 1.0, bool(log), percent, whole)
    low, high = float(finite.min()), float(finite.max())
    if log or (log is None and low > 0 and high > _WIDE * low):
        return Scale(*_round_ends(low, high), True, percent, whole)
    if room and 0 <= low < high / 2:
        low = 0.0
    span = high - low
    if span <= _CONSTANT * max(abs(low), abs(high)):  # a constant gets an axis too
        margin = 0.1 * abs(high) or 1.0
        return Scale(low - margin, high + margin, False, percent, whole)
    return Scale(low - (room * span if low else 0.0), high + room * span, False, percent, whole)


def _decimal(count: int, power: int) -> float:
    return float(f"{count}e{power}")


def _round_ends(low: float, high: float) -> tuple[float, float]:
    """The nearest 1, 2 or 5 times a power of ten on either side."""
    powers = range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 2)
    numbers = [_decimal(factor, power) for power in powers for factor in _FACTORS]
    below = max(number for number in numbers if number <= low * (1 + _EDGE))
    above = min(number for number in numbers if number >= high * (1 - _EDGE))
    if below < above:
        return below, above
    return max(number for number in numbers if number < low), min(number for number in numbers if number > high)


def _texts(decimals: list[tuple[int, int]], unit: str) -> list[str]:
    """Numbers as text, all of an axis in one notation: 0.05, 1,000 or 2×10⁻⁷."""
    largest = max((abs(_decimal(*one)) for one in decimals), default=0.0)
    if largest >= 1e7 or min((power for _, power in decimals), default=0) < -4:
        return [f"{_scientific(*one)}{unit}" for one in decimals]
    plain = [f"{_decimal(*one):,.{max(0, -one[1])}f}" if one[0] else "0" for one in decimals]
    return [f"{text.replace('-', '−')}{unit}" for text in plain]


def _scientific(count: int, power: int) -> str:
    if not count:
        return "0"
    digits = str(abs(count))
    mantissa = digits[0] + ("." + digits[1:]).rstrip("0").rstrip(".")
    exponent = f"10{str(power + len(digits) - 1).translate(_SUPERSCRIPTS)}"
    return f"{'−' * (count < 0)}{exponent if mantissa == '1' else f'{mantissa}×{exponent}'}"
