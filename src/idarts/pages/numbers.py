"""How pages and the console write numbers, shares and durations."""

import math
from collections.abc import Sequence

import numpy as np

from idarts.engine.intervals import wilson

MISSING = "–"


def number(value: float | None) -> str:
    """A number with three digits.

    >>> number(0.0249123), number(1234567.0), number(math.nan), number(None)
    ('0.0249', '1.23e+06', '–', '–')
    """
    return MISSING if value is None or math.isnan(value) else f"{value:.3g}"


def percent(share: float | None) -> str:
    """A share in percent.

    >>> percent(0.97125), percent(None)
    ('97.1 %', '–')
    """
    return MISSING if share is None or math.isnan(share) else f"{100 * share:.1f} %"


def interval(share: float | None, count: float | None) -> str:
    """The 95 % interval of a share that was measured on so many images, by Wilson's formula; empty if unknown.

    >>> interval(0.97, 359), interval(1.0, 10), interval(0.5, None)
    ('94.7–98.3 %', '72.2–100.0 %', '')
    """
    if share is None or not count or math.isnan(count) or not 0 <= share <= 1:
        return ""
    low, high = wilson(share * count, count)
    return f"{100 * low:.1f}–{100 * high:.1f} %"


def with_interval(share: float | None, count: float | None) -> str:
    """A share in percent, with its interval if the number of images is known.

    >>> with_interval(0.97, 359), with_interval(0.97, None)
    ('97.0 % (94.7–98.3 %)', '97.0 %')
    """
    known = interval(share, count)
    return f"{percent(share)} ({known})" if known else percent(share)


def mean_std(values: Sequence[float]) -> str:
    """Mean ± standard deviation, as papers print them; a single value has no deviation.

    >>> mean_std([93.0, 94.0]), mean_std([93.5]), mean_std([])
    ('93.50±0.71', '93.50', '–')
    """
    if not len(values):
        return MISSING
    mean = f"{np.mean(values):.2f}"
    return f"{mean}±{np.std(values, ddof=1):.2f}" if len(values) > 1 else mean


def duration(seconds: float) -> str:
    """A time in the units that suit its length.

    >>> duration(7.25), duration(125), duration(7325), duration(math.nan)
    ('7.2 s', '2 min 5 s', '2 h 2 min', 'not recorded')
    """
    if not seconds >= 0:
        return "not recorded"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
