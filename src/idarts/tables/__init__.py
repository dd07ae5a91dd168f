"""True accuracies from benchmark tables, offline and in milliseconds: NAS-Bench-201, NAS-Bench-101, NAS-Bench-1Shot1.

>>> from idarts.tables import find
>>> find("darts") is None  # no benchmark holds that space
True
"""

from typing import TYPE_CHECKING, Any

from idarts.tables.lookup import Rank, Table
from idarts.tables.opening import BENCHMARKS, find, table

if TYPE_CHECKING:
    from idarts.tables.importing import import_table

__all__ = ["BENCHMARKS", "Rank", "Table", "find", "import_table", "table"]


def __getattr__(name: str) -> Any:
    if name == "import_table":  # needs numpy, which takes longer to import than a look-up may
        from idarts.tables.importing import import_table  # noqa: PLC0415

        return import_table
    raise AttributeError(f"module 'idarts.tables' has no attribute {name!r}")
