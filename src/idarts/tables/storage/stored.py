"""A benchmark whose table is one .npz file of columns, which is imported from official files.

A folder with the benchmark's Parquet file works as it is: the file is converted into the user's cache, once for each
version of it, and the folder itself is never written to.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from idarts.errors import InputError, command
from idarts.tables.lookup import NoTableError, RowTable
from idarts.tables.registry import Benchmark, Folder, Progress
from idarts.tables.storage.columns import Columns, write_columns
from idarts.tables.storage.places import cache_folder, folders, make_folder

if TYPE_CHECKING:
    from numpy.typing import NDArray

_FORMAT = 1  # increase it when the columns change, so that cached conversions are made again


class Importers(NamedTuple):
    """The columns in official files. `read` returns None for a file that is not one of the benchmark's."""

    read: "Callable[[Path, Progress | None], Mapping[str, NDArray[Any]] | None]"
    parquet_columns: frozenset[str]
    read_parquet: "Callable[[Any, Path], Mapping[str, NDArray[Any]]]"


@dataclass(frozen=True)
class Stored(Benchmark):
    """A table by its files. `importers` imports its module only when it is called, because look-ups avoid numpy."""

    name: str  # also of the .npz file
    open_columns: Callable[[str, Columns], RowTable]
    importers: Callable[[], Importers]
    download: tuple[str, str]  # the official file to get, and its address
    parquet: str  # the file that works as it is
    official: tuple[str, ...]

    def open(self, name: str, folder: Folder = None) -> RowTable:
        return self.open_columns(name, Columns(self.locate(folder)))

    def locate(self, folder: Folder = None) -> Path:
        file = self._given_file(folder)
        return file if file.suffix == ".npz" else self._converted(file)

    def check(self) -> Path:
        """Parquet that was never used is not converted here, which takes seconds: only its column names are checked."""
        file = self._given_file(None)
        if file.suffix == ".parquet" and not self._conversion(file).is_file():
            self._require_own(file)
        else:
            self.open(self.name).check()
        return file

    def import_file(self, file: Path, folder: Folder, progress: Progress | None) -> Path | None:
        if file.suffix == ".parquet":
            columns = self._read_parquet(file) if self._is_own(file) else None
        else:
            columns = self.importers().read(file, progress)
        if columns is None:
            return None
        target = make_folder(Path(folder) if folder is not None else cache_folder()) / f"{self.name}.npz"
        write_columns(target, columns)
        return target

    def _given_file(self, folder: Folder) -> Path:
        places = list(folders(folder))
        for place in places:
            for file in (place / f"{self.name}.npz", place / self.parquet):
                if file.is_file():
                    return file
        official, address = self.download
        target = ["--tables", folder] if folder is not None else []
        raise NoTableError(
            f"there is no table of {self.name} in {' or '.join(map(str, places))}; get {official} ({address}) and run: "
            f"{command('table', 'import', official, *target)}"
        )

    def _conversion(self, parquet: Path) -> Path:
        """Where the .npz file of a Parquet file is, or will be."""
        state = parquet.stat()
        origin = sha256(str(parquet.resolve()).encode()).hexdigest()[:16]
        version = sha256(f"{_FORMAT} {state.st_size} {state.st_mtime_ns}".encode()).hexdigest()[:16]
        return cache_folder() / "converted" / f"{self.name}-{origin}-{version}.npz"

    def _converted(self, parquet: Path) -> Path:
        file = self._conversion(parquet)
        if not file.is_file():
            make_folder(file.parent)
            self._require_own(parquet)
            write_columns(file, self._read_parquet(parquet))
            for old in file.parent.glob(f"{file.stem.rpartition('-')[0]}-*.npz"):  # of an older version
                if old != file:
                    old.unlink(missing_ok=True)
        return file

    def _is_own(self, parquet: Path) -> bool:
        from idarts.tables.storage.parquet import column_names  # noqa: PLC0415 (needs numpy)

        return self.importers().parquet_columns <= column_names(parquet)

    def _require_own(self, parquet: Path) -> None:
        if not self._is_own(parquet):
            raise InputError(f"{parquet} does not have the columns of {self.name}; get the right file")

    def _read_parquet(self, parquet: Path) -> "Mapping[str, NDArray[Any]]":
        from idarts.tables.storage.parquet import read_columns  # noqa: PLC0415 (needs numpy)

        importers = self.importers()
        return read_columns(parquet, importers.parquet_columns, importers.read_parquet)
