"""Line charts as small SVG drawings that take their colours from the page, so that they suit light and dark."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
from numpy.typing import NDArray

from idarts.engine.folder import Floats

POINTS = 200  # of a line at most
_WIDTH, _HEIGHT = 420, 220
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 398, 12, 192  # room for long numbers at both axes
_LOGARITHMIC = 1000  # ratio of the largest to the smallest value from which a linear axis would hide most of them


@dataclass(frozen=True)
class Line:
    """One line of a chart, for its legend."""

    name: str
    last: str


@dataclass(frozen=True)
class Chart:
    """A drawing with its legend and a sentence that says how to read it."""

    title: str
    svg: str
    lines: list[Line]
    reading: str


@dataclass(frozen=True)
class Axis:
    """Values to pixels."""

    low: float
    high: float
    start: float
    end: float
    logarithmic: bool = False

    def place(self, values: Floats) -> Floats:
        """Where values lie, in pixels.

        >>> Axis(1, 100, 0, 10, logarithmic=True).place(np.array([1.0, 10.0])).tolist()
        [0.0, 5.0]
        """
        ends = np.array([self.low, self.high])
        if self.logarithmic:
            values, ends = np.log10(values), np.log10(ends)
        placed: Floats = self.start + (values - ends[0]) / (ends[1] - ends[0]) * (self.end - self.start)
        return placed


def chart(
    title: str,
    numbers: Sequence[float],
    series: Mapping[str, Floats],
    reading: str = "",
    limit: float | None = None,
    percent: bool = False,
    across: str = "rounds",
    sparse: str | None = None,
) -> Chart | None:
    """A chart of series over the rounds, or None where none of them has a value; `limit` is a line to compare with.

    The series `sparse` is one that is measured now and then: its line has no gaps.

    >>> drawn = chart("Losses", [1, 2], {"training": np.array([2.0, 1.0])})
    >>> drawn.svg[:4], drawn.lines
    ('<svg', [Line(name='training', last='1')])
    """
    shown = {name: values for name, values in series.items() if np.isfinite(values).any()}
    if not shown:
        return None
    lines = [Line(name, value_text(values[np.isfinite(values)][-1], percent)) for name, values in shown.items()]
    places = np.array(numbers, dtype=float)
    known = {name: np.isfinite(values) if name == sparse else slice(None) for name, values in shown.items()}
    thin = {name: _thinned(places[known[name]], values[known[name]]) for name, values in shown.items()}
    x = Axis(min(numbers), max(*numbers, min(numbers) + 1), _LEFT, _RIGHT)
    y = _vertical(np.concatenate(list(shown.values())), limit)
    ends = ", ".join(f"{line.name} {line.last} at the end" for line in lines)
    alt = escape(f"{title} over {across} {round(min(numbers), 2)} to {round(max(numbers), 2)}: {ends}")
    parts = [
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{alt}">',
        *_frame(x, y, limit, percent),
        *(part for place, found in enumerate(thin.values(), start=1) for part in _line(x, y, found, place)),
        "</svg>",
    ]
    scale = " The scale is logarithmic." if y.logarithmic else ""
    return Chart(title, "".join(parts), lines, f"{reading}{scale}".strip())


def value_text(value: float, percent: bool = False) -> str:
    """A number as a person reads it.

    >>> value_text(0.97125, percent=True), value_text(0.0249123), value_text(1234567.0), value_text(math.nan)
    ('97.1 %', '0.0249', '1.23e+06', '–')
    """
    if math.isnan(value):
        return "–"
    return f"{100 * value:.1f} %" if percent else f"{value:.3g}"


@dataclass(frozen=True)
class _Thin:
    """A line of few points: means over rounds, and the smallest and largest of each."""

    x: Floats
    mean: Floats
    low: Floats
    high: Floats


def _thinned(x: Floats, values: Floats) -> _Thin:
    """Means over equal parts of the rounds; a part without numbers is a gap."""
    parts = np.array_split(np.arange(len(x)), min(len(x), POINTS))
    finite = [values[part][np.isfinite(values[part])] for part in parts]
    low, mean, high = (
        np.array([float(summary(part)) if part.size else np.nan for part in finite])
        for summary in (np.min, np.mean, np.max)
    )
    return _Thin(np.array([x[part].mean() for part in parts]), mean, low, high)


def _vertical(values: Floats, limit: float | None) -> Axis:
    finite = values[np.isfinite(values)]
    low, high = float(finite.min()), float(finite.max())
    if limit is not None:
        low, high = min(low, limit), max(high, limit)
    if low > 0 and high / low > _LOGARITHMIC:
        return Axis(low, high, _BOTTOM, _TOP, logarithmic=True)
    if low >= 0 and low < 0.5 * high:
        low = 0.0  # what is counted from nothing is drawn from nothing
    room = 0.05 * (high - low) or 0.1 * abs(high) or 1.0  # a constant gets an axis too
    return Axis(low if low == 0 and high > 0 else low - room, high + room, _BOTTOM, _TOP)


def _ticks(axis: Axis, most: int) -> list[float]:
    """Round numbers along an axis."""
    if axis.logarithmic:
        first, last = math.ceil(math.log10(axis.low)), math.floor(math.log10(axis.high))
        return [10.0**power for power in range(first, last + 1, (last - first) // most + 1)]
    rough = (axis.high - axis.low) / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * (1 - 1e-9))
    first = math.ceil(axis.low / step - 1e-9)
    return [round(place * step, 12) for place in range(first, math.floor(axis.high / step + 1e-9) + 1)]


def _frame(x: Axis, y: Axis, limit: float | None, percent: bool) -> Iterator[str]:
    """Grid, numbers and the line to compare with."""
    for tick in _ticks(y, 6):
        at = y.place(np.array(tick))
        yield f'<path class="grid" d="M{_LEFT} {at:.1f}H{_RIGHT}"/>'
        text = f"{100 * tick:g} %" if percent else f"{tick:g}"
        yield f'<text x="{_LEFT - 6}" y="{at + 4:.1f}" text-anchor="end">{text}</text>'
    for tick in _ticks(x, 6):
        if tick == round(tick):
            at = x.place(np.array(tick))
            yield f'<text x="{at:.1f}" y="{_BOTTOM + 18}" text-anchor="middle">{tick:g}</text>'
    yield f'<path class="axis" d="M{_LEFT} {_BOTTOM}H{_RIGHT}"/>'
    if limit is not None:
        yield f'<path class="limit" d="M{_LEFT} {y.place(np.array(limit)):.1f}H{_RIGHT}"/>'


def _line(x: Axis, y: Axis, thin: _Thin, place: int) -> Iterator[str]:
    """The means as a line, and behind it the band from the smallest to the largest, in pieces between gaps."""
    across = x.place(thin.x)
    down = [y.place(values) for values in (thin.low, thin.mean, thin.high)]
    for piece in _pieces(thin.mean):
        low, mean, high = ([f"{across[at]:.1f} {values[at]:.1f}" for at in piece] for values in down)
        if low != high:
            yield f'<path class="band s{place}" d="M{"L".join(low + high[::-1])}Z"/>'
        yield f'<path class="line s{place}" d="M{"L".join(mean)}{"h0" if len(mean) == 1 else ""}"/>'


def _pieces(values: Floats) -> list[NDArray[np.int64]]:
    """Runs of places with numbers."""
    there = np.flatnonzero(np.isfinite(values))
    return [piece for piece in np.split(there, np.flatnonzero(np.diff(there) > 1) + 1) if piece.size]
