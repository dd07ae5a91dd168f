"""Figures as SVG: curves with bands over a plain or a logarithmic axis, in the colours of the run report."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files

import numpy as np

from idarts.engine.folder import Floats
from idarts.pages.chart import Axis

COLOURS = 6  # curves that can be told apart
_WIDTH, _LEFT, _RIGHT, _TOP, _BOTTOM = 560, 66, 544, 14, 262
_LEGEND, _LINE = 310, 19  # where the legend begins, and the height of its lines
_FACTORS = (1, 2, 5, 10)


@dataclass(frozen=True)
class Curve:
    """A line through points, perhaps with a band around it."""

    name: str
    x: Floats
    y: Floats
    low: Floats | None = None
    high: Floats | None = None


@dataclass(frozen=True)
class Figure:
    """A drawing, the name of its file, and a sentence that says how to read it."""

    name: str
    title: str
    svg: str
    reading: str

    def alone(self) -> bytes:
        """The drawing as a file of its own, with its colours."""
        style = files("idarts.experiments").joinpath("templates/figure.css").read_text(encoding="utf-8")
        head, _, rest = self.svg.partition(">")
        ground = '<rect class="ground" width="100%" height="100%"/>'
        return f'{head} xmlns="http://www.w3.org/2000/svg"><style>{style}</style>{ground}{rest}\n'.encode()


def figure(
    name: str,
    title: str,
    axes: tuple[str, str],
    curves: Sequence[Curve],
    reading: str = "",
    *,
    log_x: bool = False,
    log_y: bool = False,
) -> Figure:
    """Draw curves; on a logarithmic axis, points at or below zero are left out.

    >>> drawn = figure("a", "Error", ("K", "error"), [Curve("bound", np.arange(3.0), np.array([1, 0.1, 0.01]))])
    >>> drawn.svg[:4], drawn.svg.count('class="line s1"')  # the curve, and its key in the legend
    ('<svg', 2)
    """
    shown = [_cleaned(curve, log_x, log_y) for curve in curves]
    x = _axis(_joined(curve.x for curve in shown), _LEFT, _RIGHT, log_x, room=0.0)
    extent = [values for curve in shown for values in (curve.y, curve.low, curve.high) if values is not None]
    y = _axis(_joined(extent), _BOTTOM, _TOP, log_y, room=0.05)
    height = _LEGEND + _LINE * math.ceil(len(shown) / 2)
    alt = escape(f"{title}: {axes[1]} over {axes[0]} for {', '.join(curve.name for curve in shown)}")
    parts = [
        f'<svg viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{alt}">',
        *_frame(x, y, axes, all((curve.x == curve.x.round()).all() for curve in shown)),
        *(part for place, curve in enumerate(shown) for part in _curve(x, y, curve, place)),
        *(part for place, curve in enumerate(shown) for part in _legend(curve, place)),
        "</svg>",
    ]
    return Figure(name, title, "".join(parts), reading)


def banded(name: str, x: Floats, values: Floats) -> Curve:
    """The mean over the first axis (seeds) with a band of one standard deviation.

    >>> banded("a", np.array([0.0]), np.array([[1.0], [3.0]])).y.tolist()
    [2.0]
    """
    mean, spread = values.mean(axis=0), values.std(axis=0, ddof=1 if len(values) > 1 else 0)
    return Curve(name, x, mean, mean - spread, mean + spread) if len(values) > 1 else Curve(name, x, mean)


def _cleaned(curve: Curve, log_x: bool, log_y: bool) -> Curve:
    keep = np.isfinite(curve.x) & np.isfinite(curve.y)
    keep &= (curve.x > 0) | (not log_x)
    keep &= (curve.y > 0) | (not log_y)
    x, y = curve.x[keep], curve.y[keep]
    low, high = (None if side is None else side[keep] for side in (curve.low, curve.high))
    if low is not None and log_y:  # a band that reaches below zero ends somewhere on paper
        low = np.maximum(low, y / 10)
    return Curve(curve.name, x, y, low, high)


def _joined(values: "Iterator[Floats] | Sequence[Floats]") -> Floats:
    joined = np.concatenate([np.asarray(part, dtype=float) for part in values])
    return joined if joined.size else np.array([0.1, 1.0])


def _axis(values: Floats, start: float, end: float, logarithmic: bool, room: float) -> Axis:
    low, high = float(values.min()), float(values.max())
    if logarithmic:  # whole decades, so that there are always two numbers to read
        first, last = math.floor(math.log10(low) + 1e-9), math.ceil(math.log10(high) - 1e-9)
        return Axis(10.0**first, 10.0 ** max(last, first + 1), start, end, logarithmic=True)
    space = room * (high - low) or (0.0 if high > low else 0.1 * abs(high) or 1.0)
    return Axis(low - space, high + space, start, end)


def _ticks(axis: Axis, most: int) -> list[float]:
    """Round numbers along an axis."""
    if axis.logarithmic:
        first, last = round(math.log10(axis.low)), round(math.log10(axis.high))
        return [10.0**power for power in range(first, last + 1, (last - first) // (most + 1) + 1)]
    rough = (axis.high - axis.low) / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in _FACTORS if factor * power >= rough * (1 - 1e-9))
    first, last = math.ceil(axis.low / step - 1e-9), math.floor(axis.high / step + 1e-9)
    return [round(place * step, 12) for place in range(first, last + 1)]


def _frame(x: Axis, y: Axis, axes: tuple[str, str], whole: bool) -> Iterator[str]:
    """Grid, numbers and names; what is counted in whole numbers has no others at its axis."""
    for tick in _ticks(y, 6):
        at = float(y.place(np.array(tick)))
        yield f'<path class="grid" d="M{_LEFT} {at:.1f}H{_RIGHT}"/>'
        yield f'<text x="{_LEFT - 6}" y="{at + 4:.1f}" text-anchor="end">{tick:g}</text>'
    for tick in _ticks(x, 8):
        if whole and tick != round(tick):
            continue
        at = float(x.place(np.array(tick)))
        yield f'<text x="{at:.1f}" y="{_BOTTOM + 17}" text-anchor="middle">{tick:g}</text>'
    middle = (_TOP + _BOTTOM) / 2
    yield f'<path class="axis" d="M{_LEFT} {_BOTTOM}H{_RIGHT}"/>'
    yield f'<text x="{(_LEFT + _RIGHT) / 2}" y="{_BOTTOM + 34}" text-anchor="middle">{escape(axes[0])}</text>'
    yield f'<text x="13" y="{middle}" text-anchor="middle" transform="rotate(-90 13 {middle})">{escape(axes[1])}</text>'


def _curve(x: Axis, y: Axis, curve: Curve, place: int) -> Iterator[str]:
    colour = f"s{place % COLOURS + 1}"
    across = x.place(curve.x)
    if not across.size:
        return
    if curve.low is not None and curve.high is not None:
        sides = [_points(across, y.place(side)) for side in (curve.low, curve.high)]
        yield f'<path class="band {colour}" d="M{"L".join(sides[0] + sides[1][::-1])}Z"/>'
    points = _points(across, y.place(curve.y))
    yield f'<path class="line {colour}" d="M{"L".join(points)}{"h0" if len(points) == 1 else ""}"/>'
    if len(points) <= 12:
        centres = (point.split() for point in points)
        yield from (f'<circle class="dot {colour}" cx="{left}" cy="{top}" r="3"/>' for left, top in centres)


def _points(across: Floats, down: Floats) -> list[str]:
    return [f"{left:.1f} {top:.1f}" for left, top in zip(across, down, strict=True)]


def _legend(curve: Curve, place: int) -> Iterator[str]:
    left = _LEFT + (place % 2) * (_RIGHT - _LEFT) / 2
    top = _LEGEND + _LINE * (place // 2)
    yield f'<path class="line s{place % COLOURS + 1}" d="M{left} {top}h26"/>'
    yield f'<text x="{left + 32}" y="{top + 4}">{escape(curve.name)}</text>'
