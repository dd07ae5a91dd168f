"""Paired tests: two methods on the same seeds, by scipy. Every p-value is two-sided."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from idarts.errors import InputError
from idarts.experiments.runs import Floats

EXACT = 16  # pairs up to which all changes of signs are counted; with more pairs, as many changes are drawn


@dataclass(frozen=True)
class Paired:
    """The differences of two methods over their common seeds; a p-value is None where there is none."""

    pairs: int
    mean: float
    deviation: float | None
    permutation: float | None
    t_test: float | None


def paired(first: Sequence[float], second: Sequence[float]) -> Paired:
    """Compare measurements pair by pair; pairs that are not finite do not count.

    >>> test = paired([3.0, 4.0, 5.0, float("nan")], [1.0, 3.0, 2.0, 0.0])
    >>> test.pairs, test.mean, test.permutation, round(test.t_test, 4)
    (3, 2.0, 0.25, 0.0742)
    """
    differences = np.array(first, dtype=float) - np.array(second, dtype=float)
    differences = differences[np.isfinite(differences)]
    number = len(differences)
    if number < 2:
        return Paired(number, float(differences.mean()) if number else float("nan"), None, None, None)
    deviation = float(differences.std(ddof=1))
    return Paired(number, float(differences.mean()), deviation, permutation(differences), t_test(differences))


def permutation(differences: Floats) -> float:
    """The probability of a mean as far from 0 if the sign of every difference were random.

    >>> permutation(np.array([1.0, 2.0, 3.0]))
    0.25
    """
    return _permutation(tuple(map(float, differences)))


@cache  # it takes a third of a second for 16 pairs, and a table and a page may both ask for it
def _permutation(differences: tuple[float, ...]) -> float:
    test = _scipy_stats().permutation_test(
        (np.array(differences),),
        lambda signed, axis: signed.mean(axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=2**EXACT,
        rng=np.random.default_rng(0),
    )
    return float(test.pvalue)


def t_test(differences: Floats) -> float | None:
    """Student's test that the mean is 0; None where all differences are the same.

    >>> round(t_test(np.array([1.0, 2.0, 3.0])), 4), t_test(np.zeros(3))
    (0.0742, None)
    """
    if not differences.std(ddof=1) > 1e-12 * abs(differences).max():
        return None
    return float(_scipy_stats().ttest_1samp(differences, 0.0).pvalue)


def holm(values: Sequence[float | None]) -> list[float | None]:
    """P-values that may be read side by side, by Holm's correction for their number.

    >>> holm([0.01, None, 0.04, 0.03])
    [0.03, None, 0.06, 0.06]
    """
    known = sorted((value, place) for place, value in enumerate(values) if value is not None)
    corrected: list[float | None] = [None] * len(values)
    largest = 0.0
    for rank, (value, place) in enumerate(known):
        largest = max(largest, min(1.0, (len(known) - rank) * value))
        corrected[place] = largest
    return corrected


def require_scipy() -> None:
    """Raise an InputError if there can be no tests: call it before work that ends in them."""
    _scipy_stats()


def _scipy_stats() -> Any:
    try:
        from scipy import stats  # noqa: PLC0415 (an extra)
    except ImportError:
        raise InputError("paired tests need scipy: pip install 'idarts[experiments]'") from None
    return stats
