"""The table of NAS-Bench-201: a cell's row is its official index."""

from collections.abc import Iterable
from functools import cache
from math import isnan
from numbers import Integral
from typing import Any

from idarts.arch import parse
from idarts.errors import InputError
from idarts.spaces import nas_bench_201
from idarts.tables.lookup import RowTable, decimal
from idarts.tables.storage.columns import Columns

DATASETS = ("cifar10", "cifar100", "imagenet16")
SPLITS = ("valid", "test")
# Columns: the name of a data set and one of these. Accuracies are means over seeds, in percent.
ACCURACIES = ("valid", "test", "valid_12", "test_12")  # after 200 epochs, and after 12
COUNTS = ("params", "flops")
SECONDS = ("latency", "train_time")  # for a batch of 256 images; for 200 epochs (CIFAR-10: on 25,000 images)
RUNS = "runs"  # the number of seeds in the means after 200 epochs


class Table201(RowTable):
    """Valid and test accuracies on CIFAR-10, CIFAR-100 and ImageNet16-120."""

    measure = "cifar10_test"
    _needed = frozenset((RUNS, *(f"{d}_{name}" for d in DATASETS for name in (*ACCURACIES, *COUNTS, *SECONDS))))

    def __init__(self, benchmark: str, columns: Columns) -> None:
        super().__init__(benchmark, columns)
        if len(columns) != nas_bench_201.SIZE:
            counts = f"{len(columns)} rows, expected {nas_bench_201.SIZE}"
            raise InputError(f"{columns.file} cannot be read as a table ({counts}); import it again")

    @property
    def splits(self) -> dict[str, tuple[str, ...]]:
        return dict.fromkeys(DATASETS, SPLITS)

    def details(self, architecture: Any) -> dict[str, Any]:
        """`query` plus, for each data set, `valid_12` and `test_12` (accuracies after 12 epochs), `params`, `flops`,
        `latency` (seconds for a batch of 256) and `train_time` (seconds for 200 epochs; CIFAR-10: on 25,000 images);
        and `runs`, the number of seeds in the means. A value is None if the imported file does not have it.
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
        cell = nas_bench_201.from_index(int(text)) if _is_index(text) else parse(architecture)
        row = nas_bench_201.to_index(cell)
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
