"""From the files that people download to a table."""

import os
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from idarts.errors import InputError
from idarts.tables import table_101, table_201
from idarts.tables.columns import write_columns
from idarts.tables.official_101 import from_tfrecord
from idarts.tables.official_201 import META, from_nats_folder, from_one_file
from idarts.tables.parquet import from_parquet
from idarts.tables.pickles import Progress
from idarts.tables.places import FILES, cache_folder, made


def import_table(
    file: "str | os.PathLike[str]", folder: "str | os.PathLike[str] | None" = None, progress: Progress | None = None
) -> Path:
    """Make a table of an official file, in `folder` or in the user's cache, and say where it is.

    `progress` is told now and then how much is done, and of how much.

    >>> import_table("notes.txt")
    Traceback (most recent call last):
    idarts.errors.InputError: there is no notes.txt; give the path of the unpacked folder NATS-tss-v1_0-3ffb9-simple, \
NAS-Bench-201-v1_1-096897.pth, nasbench_only108.tfrecord, nasbench_full.tfrecord, or a .parquet table
    """
    source = Path(file)
    if not source.exists():
        raise InputError(f"there is no {source}; give the path of {FILES}")
    name, columns = _read(source, progress)
    target = made(Path(folder) if folder is not None else cache_folder()) / f"{name}.npz"
    write_columns(target, columns)
    return target


def _read(source: Path, progress: Progress | None) -> tuple[str, dict[str, NDArray[Any]]]:
    if source.is_dir():
        if not (source / META).is_file():
            raise InputError(f"{source} holds no {META}; expected {FILES}")
        return table_201.NAME, from_nats_folder(source, progress)
    if source.suffix in (".pth", ".pbz2"):
        return table_201.NAME, from_one_file(source, progress)
    if source.suffix == ".tfrecord":
        return table_101.NAME, from_tfrecord(source, progress)
    if source.suffix == ".parquet":
        return from_parquet(source)
    raise InputError(f"{source} is none of the files that can be imported: {FILES}")
