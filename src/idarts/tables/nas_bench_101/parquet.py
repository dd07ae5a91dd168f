"""The table of NAS-Bench-101 in Parquet: nasbench101_108ep_test.parquet."""

from pathlib import Path
from reprlib import repr as short
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idarts.errors import InputError
from idarts.tables.nas_bench_101.table import SIZE, VERTICES
from idarts.tables.storage.columns import warn_if_incomplete
from idarts.tables.storage.parquet import numbers

_SPACES = ("in_1shot1_ss1", "in_1shot1_ss2", "in_1shot1_ss3")
COLUMNS = frozenset(["hash", "n_vertices", "adj_bits", "ops", "params", "test_acc_108ep_mean", *_SPACES])


def read(table: Any, file: Path) -> dict[str, NDArray[Any]]:
    """Our columns from a pyarrow table with theirs, sorted by fingerprint."""
    if not table.num_rows:
        raise InputError(f"{file} has no rows; get the table again")
    test = numbers(table, "test_acc_108ep_mean", file, np.float32, 1, missing=True)
    if np.isnan(test).all():
        raise InputError(f"{file}: test_acc_108ep_mean has no known value; get the table again")
    warn_if_incomplete(len(test), SIZE, file)
    halves = _halves(table["hash"].to_pylist(), file)
    vertices = numbers(table, "n_vertices", file, np.uint8, VERTICES, low=2)
    flags = [numbers(table, name, file, np.uint8, 1) for name in _SPACES]
    columns = {
        "hash_high": halves[:, 0].astype("<u8"),
        "hash_low": halves[:, 1].astype("<u8"),
        "vertices": vertices,
        "edges": numbers(table, "adj_bits", file, np.uint32, 2**21 - 1),
        "ops": _ops(table["ops"].to_pylist(), vertices, file),
        "params": numbers(table, "params", file, np.int32, 2**31 - 1),
        "spaces": flags[0] | flags[1] << 1 | flags[2] << 2,
        "test_108": test,
    }
    order = np.lexsort((halves[:, 1], halves[:, 0]))
    in_order = halves[order]
    if (in_order[1:] == in_order[:-1]).all(axis=1).any():
        raise InputError(f"{file} has two rows with the same hash; get the table again")
    return {name: column[order] for name, column in columns.items()}


def _halves(hashes: list[Any], file: Path) -> NDArray[Any]:
    for row, value in enumerate(hashes):
        if not isinstance(value, bytes) or len(value) != 16:
            raise InputError(f"{file}: hash is {short(value)} in row {row}, expected 16 bytes")
    return np.frombuffer(b"".join(hashes), ">u8").reshape(-1, 2)


def _ops(words: list[Any], vertices: NDArray[Any], file: Path) -> NDArray[Any]:
    """The digits of each word, vertex 1 first, as one number in base 3."""
    for word, count in set(zip(words, vertices.tolist(), strict=True)):
        if not isinstance(word, str) or set(word) - set("012") or len(word) != count - 2:
            raise InputError(
                f"{file}: ops is {short(word)} in a cell of {count} vertices, expected {count - 2} digits from 0 to 2"
            )
    values = {word: sum(int(digit) * 3**place for place, digit in enumerate(word)) for word in set(words)}
    return np.array([values[word] for word in words], np.uint8)
