"""Tables in Parquet, with the columns of nasbench201_tss.parquet and nasbench101_108ep_test.parquet."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from reprlib import repr as short
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idarts.errors import InputError
from idarts.spaces import nas_bench_101, nas_bench_201
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
    name = _benchmark(file)
    wanted, read = _BENCHMARKS[name]
    with _reading(file) as parquet:
        return name, read(parquet.read_table(file, columns=sorted(wanted)), file)


def require_benchmark(name: str, file: Path) -> None:
    """Refuse a file of another benchmark, by the names of its columns.

    >>> require_benchmark("nas-bench-201", Path("nothing.parquet"))
    Traceback (most recent call last):
    idarts.errors.InputError: nothing.parquet cannot be read as Parquet (FileNotFoundError); is it complete?
    """
    found = _benchmark(file)
    if found != name:
        raise InputError(f"{file} holds {found}, expected {name}; give the file its right name")


def _benchmark(file: Path) -> str:
    with _reading(file) as parquet:
        names = set(parquet.read_schema(file).names)
    for name, (wanted, _) in _BENCHMARKS.items():
        if wanted <= names:
            return name
    raise InputError(
        f"{file} is no known table: its columns are neither those of {' nor of '.join(_BENCHMARKS)} (arch_str, "
        "cifar10_test_200ep_mean, … or hash, adj_bits, ops, test_acc_108ep_mean, …)"
    )


@contextmanager
def _reading(file: Path) -> Iterator[Any]:
    """pyarrow's reader, and one line for all that it and numpy may raise."""
    try:
        parquet: Any = import_module("pyarrow.parquet")
    except ImportError:
        raise InputError(f"reading {file} needs pyarrow: pip install 'idarts[tables]'") from None
    try:
        yield parquet
    except InputError:
        raise
    except (OSError, import_module("pyarrow").ArrowException) as error:
        raise InputError(f"{file} cannot be read as Parquet ({type(error).__name__}); is it complete?") from None
    except (TypeError, ValueError, OverflowError) as error:
        problem = f"{type(error).__name__}: {' '.join(str(error).split())}"
        raise InputError(f"{file} is not as the benchmark's tables are ({problem}); get it again") from None


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
            column = f"{dataset}_{stored}"
            if name in table_201.ACCURACIES:
                values = _numbers(table, column, file, np.float32, 100, unknown=True)
                _require_percent(values, column, file, needed=name in table_201.SPLITS)
            elif name in table_201.COUNTS:
                values = _numbers(table, column, file, np.int32, 2**31 - 1)
            else:
                values = _numbers(table, column, file, np.float32, 1e9, unknown=True)
            columns[f"{dataset}_{name}"] = values
    columns[table_201.RUNS] = _numbers(table, "n_runs_200ep", file, np.uint8, 255)
    _warn_of_missing(int((~np.isnan(columns["cifar10_test"])).sum()), nas_bench_201.SIZE, file)
    return columns


def _require_percent(values: NDArray[Any], name: str, file: Path, needed: bool) -> None:
    known = values[~np.isnan(values)]
    if needed and not len(known):
        raise InputError(f"{file}: {name} has no known value; get the table again")
    if len(known) and known.max() <= 1:
        raise InputError(f"{file}: {name} goes up to {known.max():.4g}, expected percent; multiply it by 100")


def _read_101(table: Any, file: Path) -> dict[str, NDArray[Any]]:
    if not table.num_rows:
        raise InputError(f"{file} has no rows; get the table again")
    test = _numbers(table, "test_acc_108ep_mean", file, np.float32, 1, unknown=True)
    if np.isnan(test).all():
        raise InputError(f"{file}: test_acc_108ep_mean has no known value; get the table again")
    _warn_of_missing(len(test), table_101.SIZE, file)
    halves = _halves(table["hash"].to_pylist(), file)
    vertices = _numbers(table, "n_vertices", file, np.uint8, nas_bench_101.VERTICES, low=2)
    flags = [_numbers(table, f"in_1shot1_ss{number}", file, np.uint8, 1) for number in (1, 2, 3)]
    columns = {
        "hash_high": halves[:, 0].astype("<u8"),
        "hash_low": halves[:, 1].astype("<u8"),
        "vertices": vertices,
        "edges": _numbers(table, "adj_bits", file, np.uint32, 2**21 - 1),
        "ops": _ops(table["ops"].to_pylist(), vertices, file),
        "params": _numbers(table, "params", file, np.int32, 2**31 - 1),
        "spaces": flags[0] | flags[1] << 1 | flags[2] << 2,
        "test_108": test,
    }
    order = np.lexsort((halves[:, 1], halves[:, 0]))
    in_order = halves[order]
    if (in_order[1:] == in_order[:-1]).all(axis=1).any():
        raise InputError(f"{file} has two rows of the same hash; get the table again")
    return {name: column[order] for name, column in columns.items()}


def _halves(hashes: list[Any], file: Path) -> NDArray[Any]:
    for row, value in enumerate(hashes):
        if not isinstance(value, bytes) or len(value) != 16:
            raise InputError(f"{file}: hash is {short(value)} in row {row}, expected 16 bytes")
    return np.frombuffer(b"".join(hashes), ">u8").reshape(-1, 2)


def _ops(words: list[Any], vertices: NDArray[Any], file: Path) -> NDArray[Any]:
    """The digits of each word, vertex 1 first, as one number of base 3."""
    for word, count in set(zip(words, vertices.tolist(), strict=True)):
        if not isinstance(word, str) or set(word) - set("012") or len(word) != count - 2:
            raise InputError(
                f"{file}: ops is {short(word)} in a cell of {count} vertices, expected {count - 2} digits from 0 to 2"
            )
    numbers = {word: sum(int(digit) * 3**place for place, digit in enumerate(word)) for word in set(words)}
    return np.array([numbers[word] for word in words], np.uint8)


def _warn_of_missing(found: int, size: int, file: Path) -> None:
    if found < size:
        warnings.warn(f"{file} holds {found} of {size} cells; the others stay unknown", stacklevel=2)


def _numbers(
    table: Any, name: str, file: Path, kind: Any, high: float, *, low: float = 0, unknown: bool = False
) -> NDArray[Any]:
    """A column, checked; what is `unknown` is NaN, where that is allowed."""
    column = table[name]
    if column.null_count and not unknown:
        raise InputError(f"{file}: {name} has {column.null_count} rows without a value; get the table again")
    values: NDArray[Any] = column.to_numpy()
    if values.dtype.kind not in "buif":
        raise InputError(f"{file}: {name} holds {column.type}, expected numbers")
    known = values[~np.isnan(values)] if unknown else values
    whole = np.dtype(kind).kind in "iu"
    if len(known) and not (low <= known.min() and known.max() <= high and not (whole and (known % 1).any())):
        what = "whole numbers " if whole else ""
        raise InputError(
            f"{file}: {name} goes from {known.min():.6g} to {known.max():.6g}, expected {what}from {low} to {high:.10g}"
        )
    return values.astype(kind)


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
