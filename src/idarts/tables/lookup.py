"""What a benchmark's table answers: an architecture's accuracies, the best ones, an architecture's rank."""

import heapq
from abc import ABC, abstractmethod
from array import array
from collections.abc import Iterable
from math import isnan
from operator import eq
from typing import Any, NamedTuple

from idarts.errors import InputError
from idarts.tables.columns import Columns


class Rank(NamedTuple):
    """Place 1 is the best; equal accuracies share a place.

    >>> Rank(place=3, of=15625)
    Rank(place=3, of=15625)
    """

    place: int
    of: int


class Table(ABC):
    """A benchmark's true accuracies, in percent. An architecture may come in any form that `idarts.arch.parse` reads.

    Nothing but the columns that an answer needs is read, and each only once.
    """

    _scale = 1  # from a stored accuracy to percent
    _needed: frozenset[str]  # columns

    def __init__(self, benchmark: str, columns: Columns) -> None:
        missing = [name for name in sorted(self._needed) if name not in columns]
        if missing:
            raise InputError(f"{columns.file} cannot be read as a table (no column {missing[0]}); import it again")
        self.benchmark = benchmark
        self.columns = columns

    def query(self, architecture: Any) -> dict[str, Any]:
        """Name and accuracies of an architecture after full training: what `idarts table query --json` prints."""
        return self._answer(self.row(architecture))

    @abstractmethod
    def details(self, architecture: Any) -> dict[str, Any]:
        """As `query`, and all else the table has: shorter trainings, parameters, FLOPs, latency, training time."""

    @property
    @abstractmethod
    def splits(self) -> dict[str, tuple[str, ...]]:
        """Data sets, and of each the splits whose accuracy the table has."""

    def accuracy(self, architecture: Any, dataset: str = "cifar10", split: str = "test") -> float:
        """One accuracy in percent."""
        return float(f"{self._scale * self._known(architecture, dataset, split):.7g}")

    def best(self, dataset: str = "cifar10", split: str = "test") -> dict[str, Any]:
        """The answer of `query` for the best architecture."""
        return self.top(1, dataset, split)[0]

    def top(self, number: int, dataset: str = "cifar10", split: str = "test") -> list[dict[str, Any]]:
        """The answers of `query` for the best architectures, best first."""
        if number < 1:
            raise InputError(f"top is {number}, expected at least 1")
        values = self._values(dataset, split)
        known = (row for row in self._rows() if not isnan(values[row]))
        return [self._answer(row) for row in heapq.nlargest(number, known, key=values.__getitem__)]

    def rank(self, architecture: Any, dataset: str = "cifar10", split: str = "test") -> Rank:
        """An architecture's place among all of the benchmark."""
        value = self._known(architecture, dataset, split)
        values = self._values(dataset, split)
        others = [values[row] for row in self._rows()]
        return Rank(1 + sum(map(value.__lt__, others)), sum(map(eq, others, others)))  # an unknown one equals nothing

    @abstractmethod
    def row(self, architecture: Any) -> int:
        """Where in the columns an architecture stands."""

    @abstractmethod
    def _answer(self, row: int) -> dict[str, Any]:
        """`query` for a row."""

    @abstractmethod
    def _rows(self) -> Iterable[int]:
        """All rows of the benchmark."""

    @abstractmethod
    def _column(self, dataset: str, split: str) -> str:
        """The column that holds an accuracy."""

    def _known(self, architecture: Any, dataset: str, split: str) -> float:
        values, row = self._values(dataset, split), self.row(architecture)
        if isnan(values[row]):
            raise InputError(f"the table {self.columns.file} has no {split} accuracy on {dataset} for row {row}")
        return values[row]

    def _values(self, dataset: str, split: str) -> "array[float]":
        splits = self.splits
        if dataset not in splits:
            raise InputError(f"{self.benchmark} has no data set {dataset!r}, expected {' or '.join(splits)}")
        if split not in splits[dataset]:
            known = " or ".join(splits[dataset])
            raise InputError(f"the table {self.columns.file} has no split {split!r} of {dataset}, expected {known}")
        return self.columns[self._column(dataset, split)]


def decimal(value: float) -> float | None:
    """A stored single-precision number as the short decimal that it stands for; None where it is not known.

    >>> decimal(91.60666656494140625), decimal(float("nan"))
    (91.60667, None)
    """
    return None if isnan(value) else float(f"{value:.7g}")
