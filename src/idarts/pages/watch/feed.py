"""What has changed on a page since a browser asked last.

Every text and every point of a curve has the tick at which it changed last. A browser says which tick it has, and gets
what is newer. Because `chart.thinned` leaves all but the last point as they are, that is little.
"""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idarts.engine.entries import Floats
from idarts.pages.chart import Chart, Curve, plain


class Feed:
    """Texts and charts by name, with the tick of each change.

    >>> feed = Feed()
    >>> feed.put({"tiles": "round 1", "notes": ""}, {})
    >>> feed.put({"tiles": "round 2", "notes": ""}, {})
    >>> feed.tick, feed.since(1), feed.since(2)
    (2, {'texts': {'tiles': 'round 2'}}, {})
    """

    def __init__(self) -> None:
        self.tick = 0
        self._texts: dict[str, tuple[int, str]] = {}
        self._charts: dict[str, _Chart] = {}

    def put(self, texts: Mapping[str, str], charts: Mapping[str, Chart]) -> None:
        """Replace the content; what is as before keeps its tick."""
        now = self.tick + 1
        before = self._texts
        self._texts = {name: _kept(before.get(name), text, now) for name, text in texts.items()}
        self._charts = {name: _Chart(chart, self._charts.get(name), now) for name, chart in charts.items()}
        newest = [tick for tick, _ in self._texts.values()] + [chart.newest for chart in self._charts.values()]
        self.tick = max([self.tick, *newest])

    def since(self, tick: int) -> dict[str, Any]:
        """What changed after a tick."""
        texts = {name: text for name, (changed, text) in self._texts.items() if changed > tick}
        charts = {name: chart.since(tick) for name, chart in self._charts.items() if chart.newest > tick}
        return {name: value for name, value in (("texts", texts), ("charts", charts)) if value}


class _Chart:
    """A chart whose head and points know when they changed."""

    def __init__(self, chart: Chart, before: "_Chart | None", now: int) -> None:
        self.chart = chart
        self.head: tuple[int, str] = _kept(before.head if before else None, json.dumps(chart.head), now)
        old = before.ticks if before and len(before.ticks) == len(chart.curves) else None
        self.ticks: list[NDArray[np.int64]] = [
            _ticks(curve, before.chart.curves[place], old[place], now)
            if before and old
            else np.full(len(curve.x), now, dtype=np.int64)
            for place, curve in enumerate(chart.curves)
        ]
        self.newest = max([self.head[0], *(int(ticks.max(initial=0)) for ticks in self.ticks)])

    def since(self, tick: int) -> dict[str, Any]:
        """The head if it changed, and each curve from its first changed point on."""
        starts = [int(np.argmax(ticks > tick)) if (ticks > tick).any() else len(ticks) for ticks in self.ticks]
        curves = [
            {"from": start, **plain(curve, start)} for curve, start in zip(self.chart.curves, starts, strict=True)
        ]
        return {"curves": curves, **({"head": json.loads(self.head[1])} if self.head[0] > tick else {})}


def _kept(before: tuple[int, str] | None, text: str, now: int) -> tuple[int, str]:
    return before if before and before[1] == text else (now, text)


def _ticks(curve: Curve, before: Curve, ticks: NDArray[np.int64], now: int) -> NDArray[np.int64]:
    """The ticks of a curve's points: the old ones where nothing changed, and `now` elsewhere."""
    new, old = _table(curve), _table(before)
    made = np.full(len(new), now, dtype=np.int64)
    if new.shape[1] != old.shape[1]:  # points have become means, with a band
        return made
    both = min(len(new), len(old))
    same = ((new[:both] == old[:both]) | (np.isnan(new[:both]) & np.isnan(old[:both]))).all(axis=1)
    made[:both] = np.where(same, ticks[:both], now)
    if len(new) < len(old) and len(new):
        made[-1] = now  # a browser has to drop what followed
    return made


def _table(curve: Curve) -> Floats:
    sides = [side for side in (curve.x, curve.y, curve.low, curve.high) if side is not None]
    return np.stack(sides, axis=1)
