"""A chart: its data, its drawing inside a page, and its drawing as a file.

Drawings are our own SVG, and `templates/chart.js` draws the same from the same data where a reader zooms. A library
would not save this code: uPlot, the smallest well-kept one (50 kB, MIT), draws on a canvas, which a page without
scripts, a screen reader and a paper cannot use, so the SVG would have to stay beside it and look different. A test
holds both drawings equal.
"""

import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache, cached_property
from html import escape
from importlib.resources import files

import numpy as np

from idarts.pages.chart.curve import POINTS, Curve
from idarts.pages.chart.frame import LETTER, WIDTH, Frame, frame, text
from idarts.pages.chart.scale import Scale, scale
from idarts.pages.numbers import number, percent

COLOURS = 6  # line styles; further curves repeat them
_DOTS = 12  # points up to which each is marked
_ROWS = 12  # of the table that a page has without scripts
_DIGITS, _MEAN_DIGITS = 6, 4  # of a measured value in a page, and of a mean of several
_KEY, _LINE = 26, 19  # a legend's sample of a line, and the height of its rows


@dataclass(frozen=True)
class Chart:
    """Curves with their scales and the words around them; drawings are made from these data."""

    name: str  # of its file
    title: str
    axes: tuple[str, str]
    curves: tuple[Curve, ...]
    reading: str  # how to read it
    x: Scale
    y: Scale
    limit: float | None = None
    ends: bool = False  # the legend shows each curve's last value

    @property
    def legend(self) -> list[tuple[str, str]]:
        """Names of the curves, each with its last value."""
        return [(curve.name, self._value(curve.last()) if self.ends else "") for curve in self.curves]

    @cached_property
    def svg(self) -> str:
        """The drawing for a page, which brings colours and legend."""
        return f"{self._head('', self._frame.height)}{''.join(self._parts())}</svg>"

    @property
    def head(self) -> dict[str, object]:
        """What a browser has to know beside the curves."""
        return {
            "title": self.title,
            "axes": self.axes,
            "x": asdict(self.x),
            "y": asdict(self.y),
            "limit": self.limit,
            "ends": self.ends,
        }

    @cached_property
    def json(self) -> str:
        """The data from which a browser draws the same chart.

        >>> drawn = chart("a", "Error", ("K", "error"), [Curve("bound", np.arange(2.0), np.array([1, np.nan]))])
        >>> json.loads(drawn.json)["curves"]
        [{'name': 'bound', 'x': [0, 1], 'y': [1, None]}]
        """
        data = {**self.head, "curves": [plain(curve) for curve in self.curves]}
        return json.dumps(data, separators=(",", ":"), allow_nan=False)

    @property
    def table(self) -> tuple[list[str], list[list[str]], int]:
        """A header, some rows at even distances, the first and the last point among them, and how many there are.

        >>> chart("a", "Error", ("K", ""), [Curve("bound", np.arange(99.0), np.arange(99.0))]).table[1][-1]
        ['98', '98']
        """
        known = [dict(zip(curve.x.tolist(), curve.y.tolist(), strict=True)) for curve in self.curves]
        every = sorted(set().union(*known))
        shared = [x for x in every if all(math.isfinite(values.get(x, math.nan)) for values in known)]
        places = shared if len(shared) > 1 else every  # a series that is measured now and then decides
        chosen = np.unique(np.linspace(0, len(places) - 1, min(len(places), _ROWS)).round().astype(int))
        rows = [
            [f"{places[one]:,.6g}", *(self._value(values.get(places[one], math.nan)) for values in known)]
            for one in chosen
        ]
        return [self.axes[0] or "x", *(curve.name for curve in self.curves)], rows, len(every)

    def file(self) -> bytes:
        """The drawing as an SVG file with legend and colours.

        >>> chart("a", "Error", ("K", "error"), [Curve("bound", np.arange(2.0), np.array([1, 0.1]))]).file()[:4]
        b'<svg'
        """
        legend, height = _legend(self.curves, self._frame.height + 8)
        size = f'xmlns="http://www.w3.org/2000/svg" width="{1.6 * WIDTH:.0f}" height="{1.6 * height:.0f}" '
        style = f'<style>{file_style()}</style><rect class="ground" width="100%" height="100%"/>'
        return f"{self._head(size, height)}{style}{''.join([*self._parts(), *legend])}</svg>\n".encode()

    @cached_property
    def _frame(self) -> Frame:
        return frame(self.x, self.y, self.axes)

    def _value(self, value: float) -> str:
        return percent(value) if self.y.percent else number(value)

    def _head(self, attributes: str, height: float) -> str:
        places = np.concatenate([curve.x for curve in self.curves] or [np.array([self.x.low, self.x.high])])
        range_ = f"{number(places.min())} to {number(places.max())}"
        ends = ", ".join(f"{curve.name} {self._value(curve.last())} at the end" for curve in self.curves)
        alt = escape(f"{self.title} over {self.axes[0] or 'rounds'} {range_}: {ends or 'no values'}")
        return f'<svg {attributes}viewBox="0 0 {WIDTH} {height:.0f}" role="img" aria-label="{alt}">'

    def _parts(self) -> Iterator[str]:
        yield from self._frame.parts()
        if self.limit is not None:
            level = float(self._frame.down(self.limit))
            yield f'<path class="limit" d="M{self._frame.left:.1f} {level:.1f}H{self._frame.right:.1f}"/>'
        for place, curve in enumerate(self.curves):
            yield from _marks(self._frame, curve, _colour(place))


def chart(
    name: str,
    title: str,
    axes: tuple[str, str],
    curves: Sequence[Curve],
    reading: str = "",
    *,
    log_x: bool = False,
    log_y: bool | None = False,
    limit: float | None = None,
    percent: bool = False,
    ends: bool = False,
) -> Chart:
    """A chart of those curves that have values; a logarithmic axis leaves out what is not positive.

    `log_y` None decides by the values; `limit` is a level to compare with; `percent`: the values are shares.

    >>> drawn = chart("a", "Error", ("K", "error"), [Curve("bound", np.arange(3.0), np.array([1, 0.1, 0.01]))])
    >>> drawn.svg[:4], drawn.svg.count('class="line s1"')
    ('<svg', 1)
    """
    plain = [curve.drawable(log_x, bool(log_y)) for curve in curves]
    shown = tuple(curve for curve in plain if np.isfinite(curve.y).any())
    levels = [np.array([] if limit is None else [limit], dtype=float)]
    x = np.concatenate([np.empty(0), *(curve.x for curve in shown)])
    vertical = scale(np.concatenate([*levels, *(curve.values() for curve in shown)]), log_y, 0.05, percent)
    horizontal = scale(x, log_x, whole=bool((x == x.round()).all()))
    note = " The vertical axis is logarithmic." if log_y is None and vertical.logarithmic else ""
    return Chart(name, title, axes, shown, f"{reading}{note}".strip(), horizontal, vertical, limit, ends)


def _marks(place: Frame, curve: Curve, colour: str) -> Iterator[str]:
    """Band, line and dots of each piece between gaps."""
    curve = curve.thinned(POINTS)
    across, down = place.across(curve.x), place.down(curve.y)
    dots = np.isfinite(curve.y).sum() <= _DOTS
    for piece in curve.pieces():
        points = _points(across[piece], down[piece])
        if curve.low is not None and curve.high is not None:
            low, high = (_points(across[piece], place.down(side[piece])) for side in (curve.low, curve.high))
            if low != high:
                yield f'<path class="band {colour}" d="M{"L".join(low + high[::-1])}Z"/>'
        yield f'<path class="line {colour}" d="M{"L".join(points)}{"h0" if len(points) == 1 else ""}"/>'
        for point in points if dots else ():
            left, top = point.split()
            yield f'<circle class="dot {colour}" cx="{left}" cy="{top}" r="3"/>'


def plain(curve: Curve, start: int = 0) -> dict[str, object]:
    """A curve as JSON has it, from a point on, with null for gaps; lists that it does not have are left out.

    >>> plain(Curve("loss", np.arange(3.0), np.array([2.0, np.nan, 1.0])), start=1)
    {'name': 'loss', 'x': [1, 2], 'y': [None, 1]}
    """
    digits = _DIGITS if curve.each == 1 else _MEAN_DIGITS
    sides = {"y": curve.y, "low": curve.low, "high": curve.high}
    lists = {
        name: [_short(one, digits) for one in side[start:].tolist()] for name, side in sides.items() if side is not None
    }
    x = [_short(value, _DIGITS) for value in curve.x[start:].tolist()]
    more = {"each": curve.each, "end": _short(curve.last(), _DIGITS)} if curve.each > 1 else {}
    return {"name": curve.name, "x": x, **lists, **more}


def _short(value: float, digits: int) -> float | int | None:
    if not math.isfinite(value):
        return None
    short = float(f"{value:.{digits}g}") if value != round(value) else value
    return int(short) if short == round(short) and abs(short) < 2**53 else short


def _points(across: np.ndarray, down: np.ndarray) -> list[str]:
    return [f"{left:.1f} {top:.1f}" for left, top in zip(across, down, strict=True)]


def _colour(place: int) -> str:
    return f"s{place % COLOURS + 1}"


def _legend(curves: Sequence[Curve], top: float) -> tuple[list[str], float]:
    """Names below the axis, as many in a row as fit, and where they end."""
    parts: list[str] = []
    left, room = 8.0, WIDTH - _KEY - 24
    for place, curve in enumerate(curves):
        width = min(LETTER * len(curve.name), room) + _KEY + 24
        if left > 8 and left + width > WIDTH + 16:
            left, top = 8.0, top + _LINE
        parts.append(f'<path class="line {_colour(place)}" d="M{left:.0f} {top:.0f}h{_KEY}"/>')
        parts.append(text(left + _KEY + 6, top + 4, curve.name, most=room))
        left += width
    return parts, top + 14


@cache
def file_style() -> str:
    """The rules of charts with colours in place of variables, which programs that make PDF files do not know.

    >>> "var(" in file_style()
    False
    """
    sheet = files("idarts.pages").joinpath("templates/chart.css").read_text(encoding="utf-8")
    palettes, rules = sheet[: sheet.index(".ground")], sheet[sheet.index(".ground") :]
    light, dark = (_filled(rules, palette) for palette in palettes.split("@media"))
    return f"{light}@media (prefers-color-scheme: dark) {{\n{dark}}}"


def _filled(rules: str, palette: str) -> str:
    colours = dict(re.findall(r"(--\w+): (#\w+)", palette))
    return re.sub(r"var\((--\w+)\)", lambda variable: colours[variable[1]], rules)
