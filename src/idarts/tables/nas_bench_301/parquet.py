"""The trained cells of NAS-Bench-301 in Parquet: nasbench301_real.parquet."""

from pathlib import Path
from reprlib import repr as short
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idarts.errors import InputError
from idarts.spaces.darts import INPUTS
from idarts.tables.nas_bench_301.codes import CELLS, EDGES, OPS, code_of
from idarts.tables.storage.parquet import numbers

_TEXTS = tuple(f"{cell}_{part}" for cell in CELLS for part in ("inputs", "ops"))
COLUMNS = frozenset([*_TEXTS, "val_accuracy"])


def read(table: Any, file: Path) -> dict[str, NDArray[Any]]:
    """Our columns from a pyarrow table with theirs, sorted by the codes of the cells."""
    valid = numbers(table, "val_accuracy", file, np.float32, 100, missing=True)
    if np.isnan(valid).all():
        raise InputError(f"{file}: val_accuracy has no known value; get the table again")
    texts = {name: table[name].to_pylist() for name in _TEXTS}
    codes = [
        [_code(texts[f"{cell}_inputs"][row], texts[f"{cell}_ops"][row], f"{file}: row {row}") for cell in CELLS]
        for row in range(len(valid))
    ]
    return columns_of(codes, {"valid": valid}, file)


def columns_of(codes: list[list[int]], accuracies: dict[str, NDArray[Any]], file: Path) -> dict[str, NDArray[Any]]:
    """The columns of a table, sorted; a cell that stands twice is refused."""
    pairs = np.array(codes, np.uint64).reshape(-1, 2)
    order = np.lexsort((pairs[:, 1], pairs[:, 0]))
    pairs = pairs[order]
    if (pairs[1:] == pairs[:-1]).all(axis=1).any():
        raise InputError(f"{file} has the same cell twice; get the table again")
    rest = {name: values[order].astype(np.float32) for name, values in accuracies.items()}
    return {"normal": pairs[:, 0].astype("<u8"), "reduce": pairs[:, 1].astype("<u8"), **rest}


def _code(inputs: Any, ops: Any, where: str) -> int:
    for text, limit in ((inputs, INPUTS + 3), (ops, len(OPS))):
        if not isinstance(text, str) or len(text) != EDGES or not all("0" <= digit < str(limit) for digit in text):
            raise InputError(f"{where} has {short(text)}, expected {EDGES} digits from 0 to {limit - 1}")
    sources = [int(digit) for digit in inputs]
    for place in range(0, EDGES, 2):
        first, second = sources[place : place + 2]
        if first == second or max(first, second) >= INPUTS + place // 2:
            raise InputError(f"{where}: node {place // 2} has the inputs {first} and {second}, expected two before it")
    return code_of(sources, [int(digit) for digit in ops])
