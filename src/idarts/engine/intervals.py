"""The uncertainty of an accuracy."""

import math

CONFIDENCE = 1.959963984540054  # standard deviations: 95 %


def wilson(right: float, total: float, deviations: float = CONFIDENCE) -> tuple[float, float]:
    """Wilson's interval for a share: with 95 % confidence the true accuracy lies in it (Wilson, 1927).

    Unlike mean ± deviation it is sensible for few images and at 0 and 100 %.

    >>> [round(limit, 4) for limit in wilson(9, 10)], wilson(0, 0)
    ([0.5958, 0.9821], (0.0, 1.0))
    """
    if not total:
        return 0.0, 1.0
    share, square = right / total, deviations**2
    centre = (share + square / (2 * total)) / (1 + square / total)
    half = deviations / (1 + square / total) * math.sqrt(share * (1 - share) / total + square / (4 * total**2))
    return (0.0 if right == 0 else centre - half), (1.0 if right == total else centre + half)
