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
    places = list(_places(folder))
    for place in places:
        if (place / f"{name}.npz").is_file():
            return place / f"{name}.npz"
        if (place / PARQUET[name]).is_file():
            return _converted(name, place / PARQUET[name])
    what, where = _DOWNLOADS[name]
    looked = " or ".join(map(str, places))
    target = f" --tables {folder}" if folder is not None else ""
    raise InputError(
        f"no table of {name} in {looked}; get {what} ({where}) and run: idarts table import {what}{target}"
    )


def _places(folder: "str | os.PathLike[str] | None") -> Iterable[Path]:
    named = folder if folder is not None else os.environ.get(VARIABLE) or None
    if named is not None:
        if not Path(named).is_dir():
            raise InputError(f"the tables' folder {named} is no folder; name the right one with --tables or {VARIABLE}")
        yield Path(named)
    if folder is None:
        yield cache_folder()


def _converted(name: str, parquet: Path) -> Path:
    state = parquet.stat()
    origin = sha256(str(parquet.resolve()).encode()).hexdigest()[:16]
    version = sha256(f"{_FORMAT} {state.st_size} {state.st_mtime_ns}".encode()).hexdigest()[:16]
    folder = cache_folder() / "converted"
    file = folder / f"{name}-{origin}-{version}.npz"
    if not file.is_file():
        _convert(name, parquet, made(folder) / file.name)
        for old in folder.glob(f"{name}-{origin}-*.npz"):
            if old != file:
                old.unlink(missing_ok=True)
    return file


def _convert(name: str, parquet: Path, file: Path) -> None:
    from idarts.tables.parquet import from_parquet  # noqa: PLC0415 (needs numpy, which a look-up does without)

    found, columns = from_parquet(parquet)
    if found != name:
        raise InputError(f"{parquet} holds {found}, expected {name}; give the file its right name")
    write_columns(file, columns)
