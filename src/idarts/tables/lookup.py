"""What a table answers: accuracies of architectures and, if it has rows, ranks and the best ones."""

import heapq
from abc import ABC, abstractmethod
from array import array
from collections.abc import Iterable, Mapping
from math import isnan
from operator import eq
from typing import Any, NamedTuple

from idarts.errors import InputError
from idarts.tables.storage.columns import Columns


class NoTableError(InputError):
    """The files of a table are missing. Damaged files raise a plain InputError."""


class Rank(NamedTuple):
    """Place 1 is the best; equal accuracies share a place.

    >>> Rank(place=3, of=15625)
    Rank(place=3, of=15625)
    """

    place: int
    of: int


class Table(ABC):
    """Answers for the architectures of a space, in any form that `idarts.arch.parse` reads.

    One method is enough for a new table. Accuracies are in percent, as one group or one group for each data set:

    >>> class Constant(Table):
    ...     def query(self, architecture):
    ...         return {"architecture": architecture, "cifar10": {"valid": 90.0, "test": 89.5}}
    >>> Constant().accuracy("anything")
    89.5
    """

    benchmark: str = ""  # the name under which it was opened
    split: str = "test"  # whose accuracy is meant unless another is named
    measure: str = ""  # what `accuracy` then gives, by data set and split, for the titles of charts

    @abstractmethod
    def query(self, architecture: Any) -> dict[str, Any]:
        """The accuracies of an architecture after full training: what `idarts table query --json` prints."""

    def accuracy(self, architecture: Any, dataset: str = "cifar10", split: str | None = None) -> float:
        """One accuracy in percent."""
        split = split or self.split
        answer = self.query(architecture)
        group = answer.get(dataset, answer)
        value = group.get(split) if isinstance(group, Mapping) else None
        if value is None:
            raise InputError(f"the table {self.benchmark} has no {split} accuracy on {dataset} for this architecture")
        return float(value)

    def check(self) -> None:  # noqa: B027 (a table may have nothing to check)
        """Raise an InputError if the files of the table are damaged."""


class RowTable(Table):
    """A table with one row for each architecture. It reads only the columns that an answer needs, each once."""

    _scale = 1  # from a stored accuracy to percent
    _needed: frozenset[str]  # columns

    def __init__(self, benchmark: str, columns: Columns) -> None:
        missing = [name for name in sorted(self._needed) if name not in columns]
        if missing:
            raise InputError(f"{columns.file} cannot be read as a table (no column {missing[0]}); import it again")
        self.benchmark = benchmark
        self.columns = columns

    def query(self, architecture: Any) -> dict[str, Any]:
        return self._answer(self.row(architecture))

    @abstractmethod
    def details(self, architecture: Any) -> dict[str, Any]:
        """`query` plus everything else in the table: shorter trainings, parameters, FLOPs, latency, training time."""

    @property
    @abstractmethod
    def splits(self) -> dict[str, tuple[str, ...]]:
        """The splits with an accuracy, by data set."""

    def accuracy(self, architecture: Any, dataset: str = "cifar10", split: str | None = None) -> float:
        return float(f"{self._scale * self._value(architecture, dataset, split):.7g}")

    def best(self, dataset: str = "cifar10", split: str | None = None) -> dict[str, Any]:
        """The answer of `query` for the best architecture."""
        return self.top(1, dataset, split)[0]

    def top(self, number: int, dataset: str = "cifar10", split: str | None = None) -> list[dict[str, Any]]:
        """The answers of `query` for the best architectures, best first."""
        if number < 1:
            raise InputError(f"top is {number}, expected at least 1")
        values = self._values(dataset, split)
        known = (row for row in self._rows() if not isnan(values[row]))
        return [self._answer(row) for row in heapq.nlargest(number, known, key=values.__getitem__)]

    def rank(self, architecture: Any, dataset: str = "cifar10", split: str | None = None) -> Rank:
        """The place of an architecture among all rows."""
        value = self._value(architecture, dataset, split)
        values = self._values(dataset, split)
        others = [values[row] for row in self._rows()]
        return Rank(1 + sum(map(value.__lt__, others)), sum(map(eq, others, others)))  # NaN equals nothing

    def check(self) -> None:
        self.columns.check()

    @abstractmethod
    def row(self, architecture: Any) -> int:
        """The row of an architecture."""

    @abstractmethod
    def _answer(self, row: int) -> dict[str, Any]:
        """`query` for a row."""

    @abstractmethod
    def _rows(self) -> Iterable[int]:
        """All rows that belong to the benchmark."""

    @abstractmethod
    def _column(self, dataset: str, split: str) -> str:
        """The name of the column with an accuracy."""

    def _value(self, architecture: Any, dataset: str, split: str | None) -> float:
        split = split or self.split
        values, row = self._values(dataset, split), self.row(architecture)
        if isnan(values[row]):
            raise InputError(f"the table {self.columns.file} has no {split} accuracy on {dataset} for row {row}")
        return values[row]

    def _values(self, dataset: str, split: str | None) -> "array[float]":
        split = split or self.split
        splits = self.splits
        if dataset not in splits:
            raise InputError(f"{self.benchmark} has no data set {dataset!r}, expected {' or '.join(splits)}")
        if split not in splits[dataset]:
            known = " or ".join(splits[dataset])
            raise InputError(f"the table {self.columns.file} has no split {split!r} of {dataset}, expected {known}")
        return self.columns[self._column(dataset, split)]


def decimal(value: float) -> float | None:
    """The shortest decimal of a single-precision number; None for NaN, which marks a missing value.

    >>> decimal(91.60666656494140625), decimal(float("nan"))
    (91.60667, None)
    """
    return None if isnan(value) else float(f"{value:.7g}")
