"""Who won: a paired test of two networks on the same test images."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

LEVEL = 0.05  # of the paired test
Winner = Literal["found", "fixed", "undecided"]


@dataclass(frozen=True)
class Verdict:
    """The outcome of a comparison: the winner, the p-value, and the images that only one network classified right."""

    winner: Winner
    p: float
    only_found: int
    only_fixed: int


def mcnemar(only_first: int, only_second: int) -> float:
    """The exact two-sided p-value of McNemar's test: only images on which the two differ count, each like a coin.

    >>> mcnemar(1, 9), mcnemar(0, 0)
    (0.021484375, 1.0)
    """
    tosses, fewer = only_first + only_second, min(only_first, only_second)
    term = total = 1  # binomial coefficients as whole numbers: exact for any number of images
    for heads in range(fewer):
        term = term * (tosses - heads) // (heads + 1)
        total += term
    return min(1.0, 2 * total / (1 << tosses))


def verdict(found: Sequence[bool], fixed: Sequence[bool]) -> Verdict:
    """Compare two networks image by image; `undecided` where chance alone explains the difference.

    >>> verdict([True] * 9 + [False], [False] * 9 + [False]).winner, verdict([True, False], [False, True]).winner
    ('found', 'undecided')
    """
    pairs = list(zip(found, fixed, strict=True))
    more, less = sum(a and not b for a, b in pairs), sum(b and not a for a, b in pairs)
    p = mcnemar(more, less)
    winner: Winner = "undecided" if p >= LEVEL else "found" if more > less else "fixed"
    return Verdict(winner, p, more, less)
