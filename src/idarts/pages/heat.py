"""α over time: for each decision a small picture, with a row for each option and a column for each round."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from idarts.engine.entries import Floats
from idarts.engine.folder import Run
from idarts.pages.images import data_url, shaded
from idarts.pages.labels import names, taking_part, title
from idarts.pages.numbers import percent

COLUMNS = 120  # of a picture at most
ROUNDS = 5  # of a table at most
_SHADES = 24  # few, so that pictures stay small
USUAL = "softmax"  # the relaxation whose weights are the softmax
SPAN = 4  # full colour at so many times the equal share: the same on every page, so that a weak α looks weak
_TINY = 1e-30  # in place of a weight that the softmax rounded to 0
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_UNKNOWN = (128, 128, 128, 150)


@dataclass(frozen=True)
class Option:
    """One option of a decision: its weight at the end, at some rounds for the table, and at all columns."""

    name: str
    share: str  # in percent, or "dropped"
    largest: bool
    some: list[str]
    packed: str


@dataclass(frozen=True)
class Decision:
    """One row of α over time."""

    name: str
    options: list[Option]
    picture: str  # a data URL
    alt: str


@dataclass(frozen=True)
class Group:
    """Decisions under one heading."""

    title: str
    decisions: list[Decision]


@dataclass(frozen=True)
class Heat:
    """All groups on one scale: full colour at `SPAN` times the equal share, or at that part of it."""

    groups: list[Group]
    rounds: list[int]  # of the columns
    some: list[int]  # of the tables
    unknown: bool  # some weights are not numbers
    dropped: bool  # some options left before the end
    relaxation: str  # the name of one that may weight the options otherwise than by the softmax, or empty


def heat(run: Run) -> Heat | None:
    """The softmax of α over time, or None for a run without α.

    >>> from pathlib import Path
    >>> rounds = [{"number": 1, "alpha": {"mine": np.array([[0.0, 1.0]])}}]
    >>> heat(Run(Path("run"), {}, rounds)).groups[0].decisions[0].alt
    'mine, rounds 1 to 1; at the end option 1 26.9 %, option 2 73.1 %'
    """
    known = run.alphas()
    if not known:
        return None
    known = [known[place] for place in _even(len(known), COLUMNS)]
    weights = {
        name: _over_time(
            [alpha.get(name) for _, alpha in known], matrix.shape, taking_part(run.config, name, matrix.shape)
        )
        for name, matrix in known[-1][1].items()
    }
    numbers = [number for number, _ in known]
    groups: dict[str, list[Decision]] = {}
    for name, shares in weights.items():
        rows, columns = names(run.config, name, shape := known[-1][1][name].shape)
        labels = rows, [columns[column] for column in taking_part(run.config, name, shape)]
        groups.setdefault(title(run.config, name), []).extend(_decisions(labels, shares, numbers))
    return Heat(
        [Group(heading, decisions) for heading, decisions in groups.items()],
        numbers,
        [numbers[place] for place in _even(len(numbers), ROUNDS)],
        unknown=any((np.isnan(shares) & ~_dropped(shares)).any() for shares in weights.values()),
        dropped=any(_dropped(shares).any() for shares in weights.values()),
        relaxation="" if (relaxation := str(run.config.get("relaxation", USUAL))) == USUAL else relaxation,
    )


def _even(count: int, most: int) -> NDArray[np.int64]:
    """At most `most` places at even distances, the first and the last among them."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).round().astype(np.int64))


def _over_time(matrices: Sequence[Floats | None], shape: tuple[int, ...], columns: list[int]) -> Floats:
    """Softmax by rows among some columns, (times, decisions, options).

    It is NaN where α is missing or had another shape, and for options that were dropped: these have no α any more.
    """
    blank = np.full(shape, np.nan)
    alpha = np.stack([blank if matrix is None or matrix.shape != shape else matrix for matrix in matrices])[
        ..., columns
    ]
    alpha[~np.isfinite(alpha)] = np.nan
    dropped = _dropped(alpha)
    alpha[(np.isnan(alpha) & ~dropped).any(axis=2)] = np.nan
    raised = np.where(dropped, 0, np.exp(alpha - np.fmax.reduce(alpha, axis=2, keepdims=True)))
    shares: Floats = np.where(dropped, np.nan, raised / raised.sum(axis=2, keepdims=True))
    return shares


def _dropped(values: Floats) -> NDArray[np.bool_]:
    """Which options have no number from a time on to the end, while others of their decision have one."""
    missing = np.isnan(values)
    to_the_end = np.logical_and.accumulate(missing[::-1])[::-1]
    dropped: NDArray[np.bool_] = to_the_end & ~missing.all(axis=2, keepdims=True)
    return dropped


def _away(weights: Floats) -> Floats:
    """Logarithm of the ratio to the equal share: twice as much and half as much are equally far away."""
    ratio: Floats = np.log(weights.clip(min=_TINY) * weights.shape[-1])
    return ratio


def _decisions(labels: tuple[list[str], list[str]], weights: Floats, numbers: list[int]) -> Iterator[Decision]:
    rows, columns = labels
    gone = _dropped(weights)[-1]
    for position, row in enumerate(rows):
        largest = np.fmax.reduce(weights[-1, position])
        options = [
            Option(
                column,
                "dropped" if left else percent(share[-1]),
                bool(share[-1] == largest),
                _some_of(share),
                _packed(share),
            )
            for column, share, left in zip(columns, weights[:, position].T, gone[position], strict=True)
        ]
        ends = ", ".join(f"{option.name} {option.share}" for option in options)
        alt = f"{row}, rounds {numbers[0]} to {numbers[-1]}; at the end {ends}"
        yield Decision(row, options, _picture(weights[:, position]), alt)


def _some_of(shares: Floats) -> list[str]:
    """The weights in percent at the rounds of a table."""
    return [percent(shares[place]).removesuffix(" %") for place in _even(len(shares), ROUNDS)]


def _packed(shares: Floats) -> str:
    """Weights in thousandths, two digits of base 36 for each: what a browser shows under the pointer.

    >>> _packed(np.array([0.2, 1.0, np.nan]))
    '5krs--'
    """
    thousandths = [round(1000 * share) if np.isfinite(share) else None for share in shares.tolist()]
    return "".join("--" if one is None else _DIGITS[one // 36] + _DIGITS[one % 36] for one in thousandths)


def _picture(weights: Floats) -> str:
    """One pixel for each option and time; the page stretches it. The equal share is transparent."""
    away = _away(weights).T / np.log(SPAN)
    strength = np.round(np.abs(np.nan_to_num(away)).clip(max=1) * _SHADES) / _SHADES
    pixels = shaded(away > 0, strength)
    pixels[np.isnan(away)] = _UNKNOWN
    return data_url(pixels)
