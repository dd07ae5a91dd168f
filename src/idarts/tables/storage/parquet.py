"""Checked columns from Parquet files, with pyarrow. Every problem becomes one line."""

from collections.abc import Callable, Iterator, Mapping, Set
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idarts.errors import InputError


def column_names(file: Path) -> set[str]:
    """The names of a file's columns.

    >>> column_names(Path("nothing.parquet"))
    Traceback (most recent call last):
    idarts.errors.InputError: nothing.parquet cannot be read as Parquet (FileNotFoundError); is it complete?
    """
    with _reading(file) as parquet:
        return set(parquet.read_schema(file).names)


def read_columns(
    file: Path, names: Set[str], read: Callable[[Any, Path], Mapping[str, NDArray[Any]]]
) -> Mapping[str, NDArray[Any]]:
    """What `read` makes of the columns with these names, as a pyarrow table."""
    with _reading(file) as parquet:
        return read(parquet.read_table(file, columns=sorted(names)), file)


def numbers(
    table: Any, name: str, file: Path, kind: Any, high: float, *, low: float = 0, missing: bool = False
) -> NDArray[Any]:
    """A column of numbers from `low` to `high`, as type `kind`. Missing values become NaN, if they are allowed."""
    column = table[name]
    if column.null_count and not missing:
        raise InputError(f"{file}: {name} has {column.null_count} rows without a value; get the table again")
    values: NDArray[Any] = column.to_numpy()
    if values.dtype.kind not in "buif":
        raise InputError(f"{file}: {name} holds {column.type}, expected numbers")
    known = values[~np.isnan(values)] if missing else values
    whole = np.dtype(kind).kind in "iu"
    if len(known) and not (low <= known.min() and known.max() <= high and not (whole and (known % 1).any())):
        what = "whole numbers " if whole else ""
        raise InputError(
            f"{file}: {name} goes from {known.min():.6g} to {known.max():.6g}, expected {what}from {low} to {high:.10g}"
        )
    return values.astype(kind)


@contextmanager
def _reading(file: Path) -> Iterator[Any]:
    """pyarrow's reader, with one line for everything that it and numpy can raise."""
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
        raise InputError(f"{file} does not hold a table of the benchmark ({problem}); get it again") from None
