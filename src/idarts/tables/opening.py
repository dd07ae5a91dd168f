"""Tables by their benchmark's name."""

import os
from pathlib import Path

from idarts.errors import InputError
from idarts.tables import table_101, table_201
from idarts.tables.columns import Columns
from idarts.tables.lookup import Table
from idarts.tables.places import NoTableError, conversion, given_file, require_folder, table_file
from idarts.tables.table_101 import Table101
from idarts.tables.table_201 import Table201

# NAS-Bench-1Shot1 and its three spaces are views of NAS-Bench-101.
BENCHMARKS = (table_201.NAME, *table_101.VIEWS)


def table(benchmark: str, folder: "str | os.PathLike[str] | None" = None) -> Table:
    """The table of a benchmark, from `folder`, or from the one in IDARTS_TABLES, or from the user's cache.

    >>> table("nas-bench-301")
    Traceback (most recent call last):
    idarts.errors.InputError: there is no table 'nas-bench-301', expected nas-bench-201, nas-bench-101, \
nas-bench-1shot1, nas-bench-1shot1-s1, nas-bench-1shot1-s2 or nas-bench-1shot1-s3
    """
    if benchmark not in BENCHMARKS:
        known = f"{', '.join(BENCHMARKS[:-1])} or {BENCHMARKS[-1]}"
        raise InputError(f"there is no table {benchmark!r}, expected {known}")
    if benchmark == table_201.NAME:
        return Table201(benchmark, Columns(table_file(table_201.NAME, folder)))
    return Table101(benchmark, Columns(table_file(table_101.NAME, folder)))


def find(space: str, folder: "str | os.PathLike[str] | None" = None) -> Table | None:
    """The whole table of a search space where there is one at hand, else None: for those who can do without.

    A folder that was named must be there, and hold the table of a space that has one; a table must not be damaged.

    >>> find("darts") is None
    True
    """
    if space not in BENCHMARKS:
        if folder is not None:
            require_folder(folder)
        return None
    try:
        found = table(space, folder)
    except NoTableError:
        if folder is not None:
            raise
        return None
    found.columns.check()
    return found


def checked_file(name: str) -> Path:
    """The file that look-ups in nas-bench-201 or nas-bench-101 use, or the error that they would end with.

    Parquet that was never used is not converted here, which takes seconds: only its columns' names are looked at.
    """
    file = given_file(name)
    if file.suffix == ".parquet" and not conversion(name, file).is_file():
        from idarts.tables.parquet import require_benchmark  # noqa: PLC0415 (needs numpy, as above)

        require_benchmark(name, file)
    else:
        table(name).columns.check()
    return file
