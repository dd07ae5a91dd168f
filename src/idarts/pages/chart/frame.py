"""The frame of a chart: axes, grid and numbers, with room for the widest number on every side."""

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape

import numpy as np

from idarts.pages.chart.scale import Floats, Scale, Tick

WIDTH, HEIGHT = 400, 224  # of a drawing without names at its axes
LETTER = 8.3  # widest usual digit at 13 pixels: text is measured without the reader's font
_GAP = 7  # between numbers and the axis
_NAME = 18  # height of a line of text


@dataclass(frozen=True)
class Frame:
    """Two scales and where they lie in the drawing."""

    x: Scale
    y: Scale
    axes: tuple[str, str]  # names of both; may be empty
    x_ticks: list[Tick]
    y_ticks: list[Tick]
    left: float
    right: float
    top: float
    bottom: float

    @property
    def height(self) -> float:
        """The drawing's height, with the numbers and the name below the axis."""
        return self.bottom + 26 + _NAME * bool(self.axes[0])

    def across(self, values: Floats | float) -> Floats:
        """Horizontal coordinates of values."""
        return self.left + self.x.place(np.asarray(values, dtype=float)) * (self.right - self.left)

    def down(self, values: Floats | float) -> Floats:
        """Vertical coordinates of values; they grow downwards, as SVG's do."""
        return self.bottom - self.y.place(np.asarray(values, dtype=float)) * (self.bottom - self.top)

    def parts(self) -> Iterator[str]:
        """Grid, numbers and names as SVG elements."""
        for tick in self.y_ticks:
            at = float(self.down(tick.value))
            yield f'<path class="grid" d="M{self.left:.1f} {at:.1f}H{self.right:.1f}"/>'
            yield text(self.left - _GAP, at + 4, tick.text, "end")
        for tick in self.x_ticks:
            at = float(self.across(tick.value))
            yield f'<path class="axis" d="M{at:.1f} {self.bottom:.1f}v4"/>'
            yield text(at, self.bottom + 18, tick.text, "middle")
        yield f'<path class="axis" d="M{self.left:.1f} {self.bottom:.1f}H{self.right:.1f}"/>'
        if self.axes[0]:
            middle = min((self.left + self.right) / 2, WIDTH - min(LETTER * len(self.axes[0]), WIDTH) / 2)
            yield text(middle, self.bottom + 18 + _NAME, self.axes[0], "middle")
        if self.axes[1]:
            yield text(4, 14, self.axes[1], most=WIDTH - 8)


def frame(x: Scale, y: Scale, axes: tuple[str, str] = ("", "")) -> Frame:
    """Lay out two scales: as many ticks as have room, and margins that hold half of the numbers at the ends.

    >>> made = frame(Scale(0, 1_000_000), Scale(0, 1, percent=True))
    >>> [tick.text for tick in made.x_ticks], made.left > LETTER * len("100 %")
    (['0', '500,000', '1,000,000'], True)
    """
    y_ticks = y.ticks(6)
    left = max(44, _widest(y_ticks) + _GAP + 2)
    x_ticks = next((ticks for most in (8, 6, 5, 4) if _fits(ticks := x.ticks(most), WIDTH - left)), x.ticks(3))
    half = _widest(x_ticks) / 2 + 2
    top = 10 + _NAME * bool(axes[1])
    return Frame(x, y, axes, x_ticks, y_ticks, max(left, half), WIDTH - max(12, half), top, top + HEIGHT - 36)


def text(x: float, y: float, content: str, anchor: str = "start", most: float = WIDTH) -> str:
    """Text in a drawing, escaped; one that may be wider than `most` is squeezed.

    >>> text(1, 2, "a < b")
    '<text x="1.0" y="2.0">a &lt; b</text>'
    """
    anchored = "" if anchor == "start" else f' text-anchor="{anchor}"'
    squeezed = f' textLength="{most:.0f}" lengthAdjust="spacingAndGlyphs"' if LETTER * len(content) > most else ""
    return f'<text x="{x:.1f}" y="{y:.1f}"{anchored}{squeezed}>{escape(content)}</text>'


def _widest(ticks: list[Tick]) -> float:
    return LETTER * max((len(tick.text) for tick in ticks), default=0)


def _fits(ticks: list[Tick], width: float) -> bool:
    return (_widest(ticks) + 10) * len(ticks) <= width
