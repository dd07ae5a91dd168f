"""Tables in Parquet, with the columns of nasbench201_tss.parquet and nasbench101_108ep_test.parquet."""

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idarts.arch import nas_bench_201
from idarts.errors import InputError
from idarts.tables import table_101, table_201

_NAMES_201 = {
    "valid": "valid_200ep_mean",
    "test": "test_200ep_mean",
    "valid_12": "valid_12ep",
    "test_12": "test_12ep",
    "params": "params",
    "flops": "flops",
    "latency": "latency_s",
    "train_time": "train_time_200ep_s",
}


def from_parquet(file: Path) -> tuple[str, dict[str, NDArray[Any]]]:
    """The benchmark that a file holds, and its columns as they are stored.

    >>> from_parquet(Path("nothing.parquet"))
    Traceback (most recent call last):
    idarts.errors.InputError: nothing.parquet cannot be read as Parquet (FileNotFoundError); is it complete?
    """
    try:
        parquet: Any = import_module("pyarrow.parquet")
    except ImportError:
        raise InputError(f"reading {file} needs pyarrow: pip install 'idarts[tables]'") from None
    try:
        names = set(parquet.read_schema(file).names)
        for name, (wanted, read) in _BENCHMARKS.items():
            if wanted <= names:
                return name, read(parquet.read_table(file, columns=sorted(wanted)), file)
    except (OSError, import_module("pyarrow").ArrowException) as error:
        raise InputError(f"{file} cannot be read as Parquet ({type(error).__name__}); is it complete?") from None
    raise InputError(
        f"{file} is no known table: its columns are neither those of {' nor of '.join(_BENCHMARKS)} (arch_str, "
        "cifar10_test_200ep_mean, … or hash, adj_bits, ops, test_acc_108ep_mean, …)"
    )


def _read_201(table: Any, file: Path) -> dict[str, NDArray[Any]]:
    if table.num_rows != nas_bench_201.SIZE:
        raise InputError(f"{file} has {table.num_rows} rows, expected the {nas_bench_201.SIZE} of NAS-Bench-201")
    for index, (text, expected) in enumerate(
        zip(table["arch_str"].to_pylist(), table_201.official_strings(), strict=True)
    ):
        if text != expected:
            raise InputError(f"{file} row {index} is {text}, expected {expected}: rows go by official index")
    columns: dict[str, NDArray[Any]] = {}
    for dataset in table_201.DATASETS:
        for name, stored in _NAMES_201.items():
            kind = np.int32 if name in table_201.COUNTS else np.float32
            columns[f"{dataset}_{name}"] = table[f"{dataset}_{stored}"].to_numpy().astype(kind)
    return {**columns, table_201.RUNS: table["n_runs_200ep"].to_numpy().astype(np.uint8)}


def _read_101(table: Any, file: Path) -> dict[str, NDArray[Any]]:
    hashes = table["hash"].to_pylist()
    if any(len(value) != 16 for value in hashes):
        raise InputError(f"{file}: a hash is not of 16 bytes")
    halves = np.frombuffer(b"".join(hashes), ">u8").reshape(-1, 2)
    order = np.lexsort((halves[:, 1], halves[:, 0]))
    words = table["ops"].to_pylist()
    ops = {word: sum(int(digit) * 3**place for place, digit in enumerate(word)) for word in set(words)}
    flags = [table[f"in_1shot1_ss{number}"].to_numpy().astype(np.uint8) for number in (1, 2, 3)]
    columns = {
        "hash_high": halves[:, 0].astype("<u8"),
        "hash_low": halves[:, 1].astype("<u8"),
        "vertices": table["n_vertices"].to_numpy().astype(np.uint8),
        "edges": table["adj_bits"].to_numpy().astype(np.uint32),
        "ops": np.array([ops[word] for word in words], np.uint8),
        "params": table["params"].to_numpy().astype(np.int32),
        "spaces": flags[0] | flags[1] << 1 | flags[2] << 2,
        "test_108": table["test_acc_108ep_mean"].to_numpy().astype(np.float32),
    }
    return {name: column[order] for name, column in columns.items()}


# benchmark → (columns that it needs, how they are read)
_BENCHMARKS = {
    table_201.NAME: (
        {"arch_str", "n_runs_200ep", *(f"{d}_{name}" for d in table_201.DATASETS for name in _NAMES_201.values())},
        _read_201,
    ),
    table_101.NAME: (
        {"hash", "n_vertices", "adj_bits", "ops", "params", "test_acc_108ep_mean"}
        | {f"in_1shot1_ss{number}" for number in (1, 2, 3)},
        _read_101,
    ),
}
