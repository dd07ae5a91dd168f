"""Curves: the data of a chart's lines and of the bands around them."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from idarts.pages.chart.scale import LARGEST, SMALLEST, Floats

POINTS = 200  # of a drawn line at most: two for each pixel column of a narrow chart
KEPT = 500  # of the data of a curve at most, and at least half as many: a chart that is zoomed in shows more of them


@dataclass(frozen=True)
class Curve:
    """A line through points, perhaps with a band around it. A value that is not finite is a gap.

    `each` is how many measured values a point stands for: 1, or more where the curve was thinned.
    """

    name: str
    x: Floats
    y: Floats
    low: Floats | None = None
    high: Floats | None = None
    each: int = 1
    end: float | None = None  # the last measured value, where the last point is a mean

    def drawable(self, log_x: bool, log_y: bool) -> "Curve":
        """The same curve with NaN for all that axes of these kinds cannot show."""
        keep = np.isfinite(_tidy(self.x, log_x))
        x, y = _tidy(self.x, log_x)[keep], _tidy(self.y, log_y)[keep]
        if self.low is None or self.high is None:
            return Curve(self.name, x, y, each=self.each, end=self.end)
        low, high = _tidy(self.low, False)[keep], _tidy(self.high, log_y)[keep]
        if log_y:
            low = np.maximum(low, y / 10)  # a band that reaches below zero has to end somewhere
        return Curve(self.name, x, y, low, high, self.each, self.end)

    def thinned(self, most: int) -> "Curve":
        """The same curve with at most `most` points: means of neighbours, and a band that keeps all extremes.

        >>> curve = Curve("loss", np.arange(1000.0), np.tile([0.0, 1.0], 500)).thinned(200)
        >>> len(curve.x), set(curve.y.tolist()), set(curve.high.tolist()), curve.each
        (200, {0.4, 0.6}, {1.0}, 5)
        """
        count = len(self.x)
        if count <= most:
            return self
        parts = np.array_split(np.arange(count), most)
        known = [part[np.isfinite(self.y[part])] for part in parts]
        low, high = (self.y, self.y) if self.low is None or self.high is None else (self.low, self.high)
        mean, least, largest = (
            np.array([float(summary(values[part])) if part.size else np.nan for part in known])
            for summary, values in ((np.mean, self.y), (np.min, low), (np.max, high))
        )
        x = np.array([self.x[part].mean() for part in parts])
        return Curve(self.name, x, mean, least, largest, -(-self.each * count // most), self.last())

    def values(self) -> Floats:
        """All values that the vertical axis has to hold."""
        return np.concatenate([part for part in (self.y, self.low, self.high) if part is not None])

    def pieces(self) -> Iterator[NDArray[np.int64]]:
        """The places of the points between gaps.

        >>> [piece.tolist() for piece in Curve("a", np.arange(4.0), np.array([1, 2, np.nan, 4])).pieces()]
        [[0, 1], [3]]
        """
        there = np.flatnonzero(np.isfinite(self.y))
        yield from (piece for piece in np.split(there, np.flatnonzero(np.diff(there) > 1) + 1) if piece.size)

    def last(self) -> float:
        """The last value, NaN if there is none.

        >>> Curve("a", np.arange(3.0), np.array([1, 2, np.nan])).last()
        2.0
        """
        if self.end is not None:
            return self.end
        finite = self.y[np.isfinite(self.y)]
        return float(finite[-1]) if finite.size else float("nan")


def thinned(name: str, x: Floats, values: Floats, gaps: bool = True) -> Curve:
    """A series as a curve; a long one as means of neighbours, with a band from their smallest to their largest value.

    Without `gaps`, missing values are skipped: for a series that is measured only now and then.

    Each point stands for the same power of two of neighbours, so that a series that grows changes only its last point.

    >>> curve = thinned("loss", np.arange(50_000.0), np.zeros(50_000))
    >>> len(curve.x), curve.each
    (391, 128)
    """
    if not gaps:
        x, values = x[np.isfinite(values)], values[np.isfinite(values)]
    each = 1
    while len(x) > KEPT * each:
        each *= 2
    if each == 1:
        return Curve(name, x, values)
    starts, known = np.arange(0, len(x), each), np.isfinite(values)
    counts = np.add.reduceat(known.astype(float), starts)
    gap = np.where(counts > 0, 0.0, np.nan)  # added to a summary of no values, it makes a gap
    low = np.minimum.reduceat(np.where(known, values, np.inf), starts) + gap
    high = np.maximum.reduceat(np.where(known, values, -np.inf), starts) + gap
    mean = np.add.reduceat(np.where(known, values, 0.0), starts) / np.maximum(counts, 1) + gap
    places = np.add.reduceat(x, starts) / np.diff(np.append(starts, len(x)))
    return Curve(name, places, mean, low, high, each, Curve(name, x, values).last())


def banded(name: str, x: Floats, values: Floats) -> Curve:
    """The mean over the first axis (seeds) with a band of one standard deviation.

    >>> banded("a", np.array([0.0]), np.array([[1.0], [3.0]])).y.tolist()
    [2.0]
    """
    mean = values.mean(axis=0)
    if len(values) == 1:
        return Curve(name, x, mean)
    deviation = values.std(axis=0, ddof=1)
    return Curve(name, x, mean, mean - deviation, mean + deviation)


def _tidy(values: Floats, log: bool) -> Floats:
    """NaN for what cannot be drawn; numbers too small to divide by are 0."""
    values = np.where(np.abs(values) < LARGEST, values, np.nan).astype(float)
    values = np.where(np.abs(values) < SMALLEST, 0.0, values)
    return np.where(values > 0, values, np.nan) if log else values
