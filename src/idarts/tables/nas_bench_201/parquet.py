"""The table of NAS-Bench-201 in Parquet: nasbench201_tss.parquet."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idarts.errors import InputError
from idarts.tables.nas_bench_201.table import ACCURACIES, COUNTS, DATASETS, RUNS, SIZE, SPLITS, official_strings
from idarts.tables.storage.columns import warn_if_incomplete
from idarts.tables.storage.parquet import numbers

NAMES = {  # our column → theirs, after the name of the data set
    "valid": "valid_200ep_mean",
    "test": "test_200ep_mean",
    "valid_12": "valid_12ep",
    "test_12": "test_12ep",
    "params": "params",
    "flops": "flops",
    "latency": "latency_s",
    "train_time": "train_time_200ep_s",
}
COLUMNS = frozenset(
    ["arch_str", "n_runs_200ep", *(f"{dataset}_{name}" for dataset in DATASETS for name in NAMES.values())]
)


def read(table: Any, file: Path) -> dict[str, NDArray[Any]]:
    """Our columns from a pyarrow table with theirs. Rows are in the order of the official index."""
    if table.num_rows != SIZE:
        raise InputError(f"{file} has {table.num_rows} rows, expected the {SIZE} of NAS-Bench-201")
    for index, (text, expected) in enumerate(zip(table["arch_str"].to_pylist(), official_strings(), strict=True)):
        if text != expected:
            raise InputError(f"{file} row {index} is {text}, expected {expected}: rows must follow the official index")
    columns: dict[str, NDArray[Any]] = {}
    for dataset in DATASETS:
        for name, stored in NAMES.items():
            column = f"{dataset}_{stored}"
            if name in ACCURACIES:
                values = numbers(table, column, file, np.float32, 100, missing=True)
                _require_percent(values, column, file, needed=name in SPLITS)
            elif name in COUNTS:
                values = numbers(table, column, file, np.int32, 2**31 - 1)
            else:
                values = numbers(table, column, file, np.float32, 1e9, missing=True)
            columns[f"{dataset}_{name}"] = values
    columns[RUNS] = numbers(table, "n_runs_200ep", file, np.uint8, 255)
    warn_if_incomplete(int((~np.isnan(columns["cifar10_test"])).sum()), SIZE, file)
    return columns


def _require_percent(values: NDArray[Any], name: str, file: Path, needed: bool) -> None:
    known = values[~np.isnan(values)]
    if needed and not len(known):
        raise InputError(f"{file}: {name} has no known value; get the table again")
    if len(known) and known.max() <= 1:
        raise InputError(f"{file}: {name} goes up to {known.max():.4g}, expected percent; multiply it by 100")
