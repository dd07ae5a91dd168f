"""How pages and the console write numbers, shares and durations."""

import math
from collections.abc import Sequence

import numpy as np

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
