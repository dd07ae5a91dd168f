"""Where a table's file is: the folder that a person names, the one in IDARTS_TABLES, the user's cache.

A folder with the Parquet files of `PARQUET` works as it is: they are converted into the cache, once for each version of
them, and the folder itself is never written to.
"""

import os
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path

from idarts.errors import InputError
from idarts.tables import table_101, table_201
from idarts.tables.columns import write_columns

VARIABLE = "IDARTS_TABLES"
PARQUET = {table_201.NAME: "nasbench201_tss.parquet", table_101.NAME: "nasbench101_108ep_test.parquet"}
FILES = (  # what can be imported
    "the unpacked folder NATS-tss-v1_0-3ffb9-simple, NAS-Bench-201-v1_1-096897.pth, nasbench_only108.tfrecord, "
    "nasbench_full.tfrecord, or a .parquet table"
)
_FORMAT = 1  # goes up when the columns change, so that cached conversions are made anew
_DOWNLOADS = {
    table_201.NAME: ("NATS-tss-v1_0-3ffb9-simple", "https://github.com/D-X-Y/NATS-Bench"),
    table_101.NAME: ("nasbench_only108.tfrecord", "https://storage.googleapis.com/nasbench/nasbench_only108.tfrecord"),
}


class NoTableError(InputError):
    """There is no table, as against one that cannot be read."""


def cache_folder() -> Path:
    """Where imported tables are kept: `idarts/tables` in XDG_CACHE_HOME or ~/.cache.

    >>> cache_folder().parts[-2:]
    ('idarts', 'tables')
    """
    root = os.environ.get("XDG_CACHE_HOME")
    return (Path(root) if root else Path.home() / ".cache") / "idarts" / "tables"


def made(folder: Path) -> Path:
    """A folder to write into, made where it is not there yet.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     made(Path(place, "a", "b")).is_dir()
    True
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot make the folder {folder}: {error.strerror}; name another one") from None
    return folder


def table_file(name: str, folder: "str | os.PathLike[str] | None" = None) -> Path:
    """The .npz file of nas-bench-201 or nas-bench-101, converted first where there is only Parquet.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "nas-bench-201.npz").touch()
    ...     table_file("nas-bench-201", folder).name
    'nas-bench-201.npz'
    """
    file = given_file(name, folder)
    return file if file.suffix == ".npz" else _converted(name, file)


def given_file(name: str, folder: "str | os.PathLike[str] | None" = None) -> Path:
    """The file of a table as it was given: .npz or Parquet.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "nasbench201_tss.parquet").touch()
    ...     given_file("nas-bench-201", folder).name
    'nasbench201_tss.parquet'
    """
    places = list(_places(folder))
    for place in places:
        for file in (place / f"{name}.npz", place / PARQUET[name]):
            if file.is_file():
                return file
    what, where = _DOWNLOADS[name]
    looked = " or ".join(map(str, places))
    target = f" --tables {folder}" if folder is not None else ""
    raise NoTableError(
        f"no table of {name} in {looked}; get {what} ({where}) and run: idarts table import {what}{target}"
    )


def require_folder(folder: "str | os.PathLike[str]") -> Path:
    """The folder that a person named, which must be there.

    >>> require_folder("no such folder")
    Traceback (most recent call last):
    idarts.errors.InputError: the tables' folder no such folder is no folder; name the right one with --tables or \
IDARTS_TABLES
    """
    if not Path(folder).is_dir():
        raise InputError(f"the tables' folder {folder} is no folder; name the right one with --tables or {VARIABLE}")
    return Path(folder)


def conversion(name: str, parquet: Path) -> Path:
    """Where the .npz file of a Parquet file is, or will be."""
    state = parquet.stat()
    origin = sha256(str(parquet.resolve()).encode()).hexdigest()[:16]
    version = sha256(f"{_FORMAT} {state.st_size} {state.st_mtime_ns}".encode()).hexdigest()[:16]
    return cache_folder() / "converted" / f"{name}-{origin}-{version}.npz"


def _places(folder: "str | os.PathLike[str] | None") -> Iterable[Path]:
    named = folder if folder is not None else os.environ.get(VARIABLE) or None
    if named is not None:
        yield require_folder(named)
    if folder is None:
        yield cache_folder()


def _converted(name: str, parquet: Path) -> Path:
    file = conversion(name, parquet)
    if not file.is_file():
        made(file.parent)
        _convert(name, parquet, file)
        for old in file.parent.glob(f"{file.stem.rpartition('-')[0]}-*.npz"):  # of an older version
            if old != file:
                old.unlink(missing_ok=True)
    return file


def _convert(name: str, parquet: Path, file: Path) -> None:
    from idarts.tables.parquet import from_parquet, require_benchmark  # noqa: PLC0415 (numpy: look-ups do without)

    require_benchmark(name, parquet)
    write_columns(file, from_parquet(parquet)[1])
