"""True accuracies of architectures from benchmark tables, offline and in milliseconds.

>>> from idarts.tables import TABLES, find
>>> "nas-bench-201" in TABLES
True
>>> find("choice") is None  # no table covers that space
True

One table is one module or folder here, which adds itself to `TABLES` under the names of the spaces that it covers.
"""

from idarts.tables.lookup import NoTableError, Rank, RowTable, Table
from idarts.tables.registry import (
    TABLES,
    Benchmark,
    Progress,
    benchmarks,
    find,
    fit_table,
    import_table,
    importable_files,
    load_typed,
    row_table,
    table,
)

__all__ = [
    "TABLES",
    "Benchmark",
    "NoTableError",
    "Progress",
    "Rank",
    "RowTable",
    "Table",
    "benchmarks",
    "find",
    "fit_table",
    "import_table",
    "importable_files",
    "load_typed",
    "row_table",
    "table",
]
