"""What the experiments on NAS-Bench-201 share: the accuracies that the table gives for a cell."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from idarts.experiments.paper.published import COLUMNS, DATASETS, SPLITS
from idarts.experiments.store import Row
from idarts.pages.experiment import column
from idarts.pages.numbers import mean_std
from idarts.tables import RowTable, Table, row_table

SPACE = "nas-bench-201"
HEADER = tuple(f"{title} {split}" for title in DATASETS.values() for split in SPLITS)


def cell_table(tables: Path | None) -> RowTable:
    """The benchmark's table."""
    return row_table(SPACE, tables)


def accuracies(known: Table, architecture: Any) -> Row:
    """The accuracies that Table 1 prints, for a cell."""
    answer = known.query(architecture)
    values = {f"{dataset}_{split}": answer[dataset][split] for dataset in DATASETS for split in SPLITS}
    return {name: values[name] for name in COLUMNS}


def means(rows: Sequence[Row]) -> list[str]:
    """Mean and standard deviation of each accuracy over some rows."""
    return [mean_std(column(list(rows), name)) for name in COLUMNS]
