"""The folders with tables: the one that a person names, the one in IDARTS_TABLES, the user's cache."""

import os
from collections.abc import Iterator
from pathlib import Path

from idarts.errors import InputError

VARIABLE = "IDARTS_TABLES"


def folders(folder: "str | os.PathLike[str] | None") -> Iterator[Path]:
    """Where to look for a table: in `folder`, or else in IDARTS_TABLES and in the cache.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     list(folders(folder)) == [Path(folder)]
    True
    """
    named = folder if folder is not None else os.environ.get(VARIABLE) or None
    if named is not None:
        yield require_folder(named)
    if folder is None:
        yield cache_folder()


def require_folder(folder: "str | os.PathLike[str]") -> Path:
    """The folder that a person named, which must exist.

    >>> require_folder("no such folder")
    Traceback (most recent call last):
    idarts.errors.InputError: the folder of tables no such folder does not exist; correct --tables or IDARTS_TABLES
    """
    if not Path(folder).is_dir():
        raise InputError(f"the folder of tables {folder} does not exist; correct --tables or {VARIABLE}")
    return Path(folder)


def cache_folder() -> Path:
    """Where imported tables are kept: `idarts/tables` in XDG_CACHE_HOME or ~/.cache.

    >>> cache_folder().parts[-2:]
    ('idarts', 'tables')
    """
    root = os.environ.get("XDG_CACHE_HOME")
    return (Path(root) if root else Path.home() / ".cache") / "idarts" / "tables"


def make_folder(folder: Path) -> Path:
    """A folder to write to, created if needed.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     make_folder(Path(place, "a", "b")).is_dir()
    True
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot create the folder {folder}: {error.strerror}; name another one") from None
    return folder
