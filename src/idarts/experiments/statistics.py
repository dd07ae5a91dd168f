"""Paired tests: two methods on the same seeds. Every p-value is two-sided."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from idarts.engine.folder import Floats

EXACT = 16  # pairs up to which all changes of signs are counted; of more, as many are drawn


@dataclass(frozen=True)
class Paired:
    """How the first differs from the second over their common seeds; a p-value is None where there is none."""

    pairs: int
    mean: float
    deviation: float | None
    permutation: float | None
    t_test: float | None


def paired(first: Sequence[float], second: Sequence[float]) -> Paired:
    """Compare measurements that belong together, place by place; a pair that is not finite is none.

    >>> found = paired([3.0, 4.0, 5.0, float("nan")], [1.0, 3.0, 2.0, 0.0])
    >>> found.pairs, found.mean, found.permutation, round(found.t_test, 4)
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
    """How often a mean as far from 0 comes about if every difference had its sign by chance.

    >>> permutation(np.array([1.0, 2.0, 3.0]))
    0.25
    """
    number = len(differences)
    if number <= EXACT:
        codes = np.arange(2**number)[:, None]
        signs = 1 - 2 * (codes >> np.arange(number) & 1)
    else:
        signs = np.random.default_rng(0).choice([-1, 1], (2**EXACT, number))
        signs[0] = 1  # what was seen is one of them, so that p is never 0
    sums = np.abs(signs @ differences)
    return float((sums >= abs(differences.sum()) * (1 - 1e-9)).mean())


def t_test(differences: Floats) -> float | None:
    """Student's test that the mean is 0; None where all differences are the same, and it has nothing to go by.

    >>> round(t_test(np.array([1.0, 2.0, 3.0])), 4), t_test(np.zeros(3))
    (0.0742, None)
    """
    from scipy.special import stdtr  # noqa: PLC0415 (scikit-learn brings it)

    deviation = differences.std(ddof=1)
    if not deviation > 1e-12 * abs(differences).max():
        return None
    t = differences.mean() / deviation * len(differences) ** 0.5
    return float(2 * stdtr(len(differences) - 1, -abs(t)))


def holm(values: Sequence[float | None]) -> list[float | None]:
    """P-values that may be read side by side: Holm's correction for how many there are.

    >>> holm([0.01, None, 0.04, 0.03])
    [0.03, None, 0.06, 0.06]
    """
    known = sorted((value, place) for place, value in enumerate(values) if value is not None)
    result: list[float | None] = [None] * len(values)
    largest = 0.0
    for rank, (value, place) in enumerate(known):
        largest = max(largest, min(1.0, (len(known) - rank) * value))
        result[place] = largest
    return result
