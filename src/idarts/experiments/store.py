"""The results of an experiment: one CSV file, written whole after every job, so a kill loses no finished job.

The last column is a digest of all rows of a job. A job with damaged rows counts as not done, so it runs again.
"""

import csv
import io
import json
import warnings
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from idarts.digests import KEY, MARK
from idarts.digests import digest as content_digest
from idarts.errors import InputError
from idarts.files import csv_text, write_whole

RESULTS = "results.csv"
Value = str | int | float
Row = dict[str, Value]
_KEYS = ("job", "settings")  # columns of every file: which job made the row, and with which settings


class Store:
    """Rows by job: all rows of a job, or none of them. The file has them in the order of `jobs`.

    `columns` come first; rows may have others, too.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = Store(Path(folder, "results.csv"), ("seed", "test"))
    ...     store.add("idarts-1", "6bfe1d77", [{"seed": 1, "test": 93.58}])
    ...     again = Store(Path(folder, "results.csv"), ("seed", "test"))
    >>> again.settings("idarts-1"), again.rows
    ('6bfe1d77', [{'job': 'idarts-1', 'settings': '6bfe1d77', 'seed': 1, 'test': 93.58}])
    """

    def __init__(self, path: Path, columns: Sequence[str] = (), jobs: Sequence[str] = ()) -> None:
        self.path = path
        self.columns = [*_KEYS, *columns] if columns else []
        self.places = {job: place for place, job in enumerate(jobs)}
        self.rows = self._read() if path.exists() else []

    def settings(self, job: str) -> str | None:
        """The settings that a job's rows were made with; None if it has no rows."""
        return next((str(row["settings"]) for row in self.rows if row["job"] == job), None)

    def add(self, job: str, settings: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Write the rows of a finished job."""
        for row in rows:
            whole = {"job": job, "settings": settings, **row} if "settings" not in row else {"job": job, **row}
            self.columns += [name for name in whole if name not in self.columns]
            self.rows.append({name: "" if value is None else value for name, value in whole.items()})
        self.rows = [{**dict.fromkeys(self.columns, ""), **row} for row in self.rows]
        self.rows.sort(key=lambda row: self.places.get(str(row["job"]), -1))
        self._write()

    def keep(self, wanted: Callable[[str], bool]) -> None:
        """Forget the rows of all other jobs."""
        kept = [row for row in self.rows if wanted(str(row["job"]))]
        if len(kept) < len(self.rows):
            self.rows = kept
            self._write()

    def _write(self) -> None:
        header, *lines = csv.reader(io.StringIO(csv_text(self.columns, self.rows)))
        checked = _digests(header, lines)
        rows = [dict(zip([*header, KEY], [*line, checked[line[header.index("job")]]], strict=True)) for line in lines]
        write_whole(self.path, csv_text([*header, KEY], rows))

    def _read(self) -> list[Row]:
        try:
            header, *lines = list(csv.reader(io.StringIO(self.path.read_text(encoding="utf-8")))) or [[]]
        except (OSError, UnicodeDecodeError, csv.Error) as error:
            raise InputError(f"{self.path} cannot be read ({error}); name a new folder with --out") from None
        if (header and not set(_KEYS) <= set(header)) or any(len(line) != len(header) for line in lines):
            raise InputError(f"{self.path} is not the table of an experiment; name a new folder with --out")
        if not lines:
            header = []  # nothing depends on it, and it may be damaged
        elif header[-1] == KEY:
            kept = self._undamaged(header[:-1], lines)
            header, lines = (header[:-1], kept) if kept or not lines else (list(_KEYS), [])
        elif any(line[-1].startswith(MARK) for line in lines):
            raise InputError(
                f"{self.path} is damaged: its first line is not that of a table; name a new folder with --out"
            )
        self.columns = header + [name for name in self.columns if name not in header]
        return [
            {
                **dict.fromkeys(self.columns, ""),
                **{name: _value(name, text) for name, text in zip(header, line, strict=True)},
            }
            for line in lines
        ]

    def _undamaged(self, header: list[str], lines: list[list[str]]) -> list[list[str]]:
        """The lines of jobs that match their digest, without it."""
        place = header.index("job")
        checked = _digests(header, [line[:-1] for line in lines])
        damaged = {line[place] for line in lines if line[-1] != checked[line[place]]}
        if damaged:
            names = ", ".join(sorted(damaged)[:3])
            warnings.warn(f"{self.path} has damaged rows of {len(damaged)} jobs, {names}; they run again", stacklevel=2)
        return [line[:-1] for line in lines if line[place] not in damaged]


def _digests(header: list[str], lines: list[list[str]]) -> dict[str, str]:
    """The digest of the first line and of all lines of a job, by job."""
    of_job: dict[str, list[list[str]]] = {}
    for line in lines:
        of_job.setdefault(line[header.index("job")], []).append(line)
    return {job: content_digest(json.dumps([header, *rows]).encode()) for job, rows in of_job.items()}


def digest(settings: Mapping[str, object]) -> str:
    """Settings as a short text, which differs where they differ.

    >>> digest({"rounds": 3}), digest({"rounds": 4})
    ('6bfe1d77', '24bf8bb0')
    """
    return f"{zlib.crc32(json.dumps(settings, sort_keys=True, default=str).encode()):08x}"


def _value(name: str, text: str) -> Value:
    for kind in () if name in _KEYS else (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
