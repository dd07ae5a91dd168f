"""A dot for each value, in one row a group, with the mean of each group: for few values, such as those of seeds."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape

import numpy as np

from idarts.pages.chart.drawing import COLOURS, file_style
from idarts.pages.chart.frame import LETTER, WIDTH, text
from idarts.pages.chart.scale import Scale, scale
from idarts.pages.numbers import mean_std

_ROW = 44  # height of a row: a name above its dots
_RADIUS, _SHIFTS = 4, (0, -8, 8, -4, 4)
_SIDE, _AXIS = 14, 44  # margins beside the dots, and below them for the axis and its name


@dataclass(frozen=True)
class Dots:
    """Values by group, each with its own name; pages show it as they show a `Chart`."""

    name: str  # of its file
    title: str
    axis: str
    groups: Mapping[str, Sequence[tuple[str, float]]]
    reading: str
    json: str = ""  # the page's script has nothing to draw again
    legend: Sequence[tuple[str, str]] = ()

    @cached_property
    def svg(self) -> str:
        """The drawing for a page. Each dot says its value under the pointer."""
        return f"{self._head()}{''.join(self._parts())}</svg>"

    @property
    def table(self) -> tuple[list[str], list[list[str]], int]:
        """Every value, one in each row."""
        rows = [[group, name, f"{value:.2f}"] for group, values in self.groups.items() for name, value in values]
        return ["", "seed", self.axis], rows, len(rows)

    def file(self) -> bytes:
        """The drawing as an SVG file with its colours.

        >>> Dots("a", "Test", "percent", {"darts": [("1", 93.0), ("2", 94.0)]}, "").file()[:4]
        b'<svg'
        """
        size = f'xmlns="http://www.w3.org/2000/svg" width="{1.6 * WIDTH:.0f}" height="{1.6 * self._height:.0f}" '
        style = f'<style>{file_style()}</style><rect class="ground" width="100%" height="100%"/>'
        return f"{self._head(size)}{style}{''.join(self._parts())}</svg>\n".encode()

    @property
    def _height(self) -> int:
        return _ROW * len(self.groups) + _AXIS

    @cached_property
    def _scale(self) -> Scale:
        known = np.array([value for values in self.groups.values() for _, value in values], dtype=float)
        made = scale(known)
        room = 0.06 * (made.high - made.low)
        return Scale(made.low - room, made.high + room)

    def _across(self, value: float) -> float:
        return float(_SIDE + self._scale.place(np.array(value)) * (WIDTH - 2 * _SIDE))

    def _head(self, attributes: str = "") -> str:
        means = ", ".join(
            f"{group} {mean_std([value for _, value in values])}" for group, values in self.groups.items()
        )
        alt = escape(f"{self.title}, {self.axis}, mean over seeds: {means}")
        return f'<svg {attributes}viewBox="0 0 {WIDTH} {self._height}" role="img" aria-label="{alt}">'

    def _parts(self) -> Iterator[str]:
        bottom = self._height - _AXIS
        for tick in self._scale.ticks(5):
            at, half = self._across(tick.value), LETTER * len(tick.text) / 2
            yield f'<path class="grid" d="M{at:.1f} 4V{bottom}"/>'
            yield text(min(max(at, half), WIDTH - half), bottom + 16, tick.text, "middle")
        yield f'<path class="axis" d="M{_SIDE} {bottom}H{WIDTH - _SIDE}"/>'
        yield text(WIDTH / 2, bottom + 34, self.axis, "middle")
        for place, (group, values) in enumerate(self.groups.items()):
            yield from self._row(group, values, _ROW * place, f"s{place % COLOURS + 1}")

    def _row(self, group: str, values: Sequence[tuple[str, float]], top: float, colour: str) -> Iterator[str]:
        yield text(_SIDE, top + 16, group, most=WIDTH - 2 * _SIDE)
        if values:
            mean = self._across(float(np.mean([value for _, value in values])))
            yield f'<path class="mean" d="M{mean:.1f} {top + 21}v18"/>'
        beside: list[float] = []  # dots that would cover each other stand above and below the line
        for name, value in values:
            at = self._across(value)
            shift = _SHIFTS[sum(abs(at - other) < 2 * _RADIUS for other in beside) % len(_SHIFTS)]
            beside.append(at)
            said = f"<title>{escape(f'{group}, seed {name}: {value:.2f}')}</title>"
            place = f'cx="{at:.1f}" cy="{top + 30 + shift}" r="{_RADIUS}"'
            yield f'<circle class="dot seed {colour}" {place}>{said}</circle>'
