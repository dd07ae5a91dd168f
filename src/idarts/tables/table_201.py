"""NAS-Bench-201, which NATS-Bench calls its topology space: a cell's official index is its row."""

from collections.abc import Iterable
from functools import cache
from math import isnan
from numbers import Integral
from typing import Any

from idarts.arch import parse
from idarts.errors import InputError
from idarts.spaces import nas_bench_201
from idarts.tables.columns import Columns
from idarts.tables.lookup import Table, decimal

NAME = nas_bench_201.SPACE
DATASETS = ("cifar10", "cifar100", "imagenet16")
SPLITS = ("valid", "test")
# The columns of a data set: its name and one of these. Accuracies are means over seeds, in percent.
ACCURACIES = ("valid", "test", "valid_12", "test_12")  # after 200 epochs, and after 12
COUNTS = ("params", "flops")
SECONDS = ("latency", "train_time")  # of a batch of 256 images; of training for 200 epochs (CIFAR-10: on 25,000 images)
RUNS = "runs"  # seeds with which a cell was trained for 200 epochs


class Table201(Table):
    """Valid and test accuracies on CIFAR-10, CIFAR-100 and ImageNet16-120."""

    _needed = frozenset((RUNS, *(f"{d}_{name}" for d in DATASETS for name in (*ACCURACIES, *COUNTS, *SECONDS))))

    def __init__(self, benchmark: str, columns: Columns) -> None:
        super().__init__(benchmark, columns)
        if len(columns) != nas_bench_201.SIZE:
            told = f"{len(columns)} rows, expected {nas_bench_201.SIZE}"
            raise InputError(f"{columns.file} cannot be read as a table ({told}); import it again")

    @property
    def splits(self) -> dict[str, tuple[str, ...]]:
        return dict.fromkeys(DATASETS, SPLITS)

    def details(self, architecture: Any) -> dict[str, Any]:
        """As `query`; for each data set also `valid_12` and `test_12` (accuracies after 12 epochs), `params`, `flops`,
        `latency` (seconds for a batch of 256) and `train_time` (seconds for 200 epochs; CIFAR-10: on 25,000 images);
        and `runs`, the number of seeds behind the means. None is what the imported file did not have.
        """
        row = self.row(architecture)
        answer = self._answer(row)
        for dataset in DATASETS:
            for name in (*ACCURACIES, *COUNTS, *SECONDS):
                value = self.columns[f"{dataset}_{name}"][row]
                answer[dataset][name] = value if name in COUNTS else decimal(value)
        return {**answer, RUNS: self.columns[RUNS][row]}

    def row(self, architecture: Any) -> int:
        text = str(architecture).strip() if isinstance(architecture, (Integral, str)) else ""
        found = nas_bench_201.from_index(int(text)) if _is_index(text) else parse(architecture)
        row = nas_bench_201.to_index(found)
        if isnan(self.columns["cifar10_test"][row]):
            raise InputError(f"the table {self.columns.file} has no values for index {row}; import the whole benchmark")
        return row

    def _answer(self, row: int) -> dict[str, Any]:
        answer: dict[str, Any] = {"index": row, "architecture": nas_bench_201.to_string(nas_bench_201.from_index(row))}
        for dataset in DATASETS:
            answer[dataset] = {split: decimal(self.columns[self._column(dataset, split)][row]) for split in SPLITS}
        return answer

    def _rows(self) -> Iterable[int]:
        return range(nas_bench_201.SIZE)

    def _column(self, dataset: str, split: str) -> str:
        return f"{dataset}_{split}"


@cache
def official_strings() -> tuple[str, ...]:
    """All cells in the official order.

    >>> official_strings()[1651]
    '|none~0|+|none~0|none~1|+|none~0|none~1|none~2|'
    """
    return tuple(nas_bench_201.to_string(nas_bench_201.from_index(index)) for index in range(nas_bench_201.SIZE))


def _is_index(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 10
