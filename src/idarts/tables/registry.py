"""Tables by name: how to open them, find the one of a space, and import official files."""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

from idarts.errors import InputError
from idarts.registry import Registry
from idarts.tables.lookup import NoTableError, RowTable, Table
from idarts.tables.storage.places import require_folder

Folder: TypeAlias = "str | os.PathLike[str] | None"
Progress: TypeAlias = Callable[[int, int], None]  # done, of how many


class Benchmark(ABC):
    """A table that can be opened. A module adds it to `TABLES` under each name that it covers."""

    name: str
    official: tuple[str, ...] = ()  # the files that `import_file` takes, for people to read

    @abstractmethod
    def open(self, name: str, folder: Folder = None) -> Table:
        """The table under one of its names, from `folder`, the folder in IDARTS_TABLES, or the user's cache."""

    @abstractmethod
    def locate(self, folder: Folder = None) -> Path:
        """The file that look-ups use; a NoTableError if there is none."""

    def check(self) -> Path:
        """The file that look-ups use, or the error that they raise."""
        self.open(self.name).check()
        return self.locate()

    def fit(self, folder: Folder = None, progress: Progress | None = None) -> tuple[Path, dict[str, float]]:
        """Fit the model that answers for architectures without a row; its file, and its error on held-out rows."""
        raise InputError(f"{self.name} has a row for every architecture, so it needs no fitted model")

    def import_file(self, file: Path, folder: Folder, progress: Progress | None) -> Path | None:
        """Make the table from an official file and return its path; None if the file is not one of this table's."""
        return None


# Beside benchmarks, a user's own table: any object with `query`, or a class of such objects.
TABLES: Registry[Any] = Registry("table", "idarts.tables")


def table(name: str, folder: Folder = None) -> Table:
    """A table by name, from `folder`, the folder in IDARTS_TABLES, or the user's cache.

    >>> table("nas-bench-210")
    Traceback (most recent call last):
    idarts.errors.InputError: unknown table 'nas-bench-210'; did you mean nas-bench-201?
    """
    entry = TABLES[name]
    return entry.open(name, folder) if isinstance(entry, Benchmark) else _own(entry, name)


def row_table(name: str, folder: Folder = None) -> RowTable:
    """A table by name that must have rows, so that architectures can be ranked."""
    opened = table(name, folder)
    if not isinstance(opened, RowTable):
        raise InputError(f"the table {name} has no rows, so it cannot rank architectures; use query")
    return opened


def find(space: str, tables: Any = None) -> Table | None:
    """The table of a space if there is one, else None. Its files must not be damaged.

    `tables` is a folder, which must exist and hold the table of a space that has one; or a user's own table: an object
    with `query`, or the name of one in `TABLES`, such as `package.module:name`.

    >>> find("choice") is None
    True
    """
    if hasattr(tables, "query"):
        return _own(tables, space)
    if isinstance(tables, str) and ":" in tables and not Path(tables).is_dir():
        return table(tables)
    if space not in TABLES:
        if tables is not None:
            require_folder(tables)
        return None
    try:
        opened = table(space, tables)
        opened.check()
    except NoTableError:
        if tables is not None:
            raise
        return None
    return opened


def load_typed(text: str) -> None:
    """Import a user's own table that was typed as `package.module:name`; other names and folders need no import.

    >>> load_typed("nas-bench-201")
    """
    if ":" in text and not Path(text).is_dir():
        TABLES.load(text)


def fit_table(name: str, folder: Folder = None, progress: Progress | None = None) -> tuple[Path, dict[str, float]]:
    """Fit the model with which a table answers for architectures that it has no row for, and write it to the cache.

    >>> fit_table("nas-bench-201")
    Traceback (most recent call last):
    idarts.errors.InputError: nas-bench-201 has a row for every architecture, so it needs no fitted model
    """
    entry = TABLES[name]
    if not isinstance(entry, Benchmark):
        raise InputError(f"{name} is your own table; only tables of this package have a model to fit")
    return entry.fit(folder, progress)


def import_table(file: "str | os.PathLike[str]", folder: Folder = None, progress: Progress | None = None) -> Path:
    """Make a table from an official file, in `folder` or in the user's cache, and return its path.

    `progress` is called now and then with the work done and the work in total.

    >>> import_table("notes.txt")
    Traceback (most recent call last):
    idarts.errors.InputError: there is no notes.txt; give the path of nasbench_only108.tfrecord, ...
    """
    source = Path(file)
    if not source.exists():
        raise InputError(f"there is no {source}; give the path of {importable_files()}")
    for benchmark in benchmarks():
        written = benchmark.import_file(source, folder, progress)
        if written is not None:
            return written
    raise InputError(f"{source} is not a file that can be imported; give the path of {importable_files()}")


def importable_files() -> str:
    """The files that `import_table` takes, in words.

    >>> importable_files().startswith("nasbench_only108.tfrecord, ")
    True
    """
    files = [file for benchmark in benchmarks() for file in benchmark.official]
    return f"{', '.join(files[:-1])} or {files[-1]}"


def benchmarks() -> list[Benchmark]:
    """The tables of the package, each once, by name.

    >>> [benchmark.name for benchmark in benchmarks()]
    ['nas-bench-101', 'nas-bench-201', 'nas-bench-301']
    """
    entries = {id(entry): entry for name in TABLES if isinstance(entry := TABLES[name], Benchmark)}
    return sorted(entries.values(), key=lambda entry: entry.name)


def _own(entry: Any, name: str) -> Table:
    """A user's own table: a `Table`, an object with `query`, or a class of them that needs no arguments."""
    entry = entry() if isinstance(entry, type) else entry
    if isinstance(entry, Table):
        return entry
    if not callable(getattr(entry, "query", None)):
        raise InputError(f"the table {name} is a {type(entry).__name__}, expected an object with query(architecture)")
    return _Own(entry, name)


class _Own(Table):
    """A user's object with `query`, and `accuracy` if it has that, too."""

    def __init__(self, entry: Any, name: str) -> None:
        self._entry, self.benchmark = entry, name

    def query(self, architecture: Any) -> dict[str, Any]:
        return dict(self._entry.query(architecture))

    def accuracy(self, architecture: Any, dataset: str = "cifar10", split: str | None = None) -> float:
        if hasattr(self._entry, "accuracy"):
            return float(self._entry.accuracy(architecture, dataset, split or self.split))
        return super().accuracy(architecture, dataset, split)
