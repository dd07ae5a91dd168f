"""The results of an experiment: one CSV file, written whole after every job, so that a kill loses no finished one."""

import csv
import io
import json
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from idarts.errors import IdartsError, InputError
from idarts.files import write_whole

Value = str | int | float
Row = dict[str, Value]
_KEYS = ("job", "settings")  # first columns of every file: which job made the row, and with what


class Store:
    """Rows by job. A job's rows are all there or none of them.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = Store(Path(folder, "results.csv"), ("seed", "test"))
    ...     store.add("idarts-1", {"rounds": 3}, [{"seed": 1, "test": 93.58}])
    ...     again = Store(Path(folder, "results.csv"), ("seed", "test"))
    >>> again.has("idarts-1", {"rounds": 3}), again.rows
    (True, [{'job': 'idarts-1', 'settings': '6bfe1d77', 'seed': 1, 'test': 93.58}])
    """

    def __init__(self, path: Path, columns: Sequence[str]) -> None:
        self.path, self.columns = path, [*_KEYS, *columns]
        self.rows = self._read() if path.exists() else []

    def has(self, job: str, settings: Mapping[str, object]) -> bool:
        """Whether the job is done. The same job done with other settings is an error, not a result."""
        found = next((row for row in self.rows if row["job"] == job), None)
        if found is not None and found["settings"] != _digest(settings):
            raise InputError(f"{self.path} has {job} with other settings than now; name a new folder with --out")
        return found is not None

    def add(self, job: str, settings: Mapping[str, object], rows: Sequence[Row]) -> None:
        """Put a finished job on record, once: its rows are seeds to whoever counts them."""
        if self.has(job, settings):
            raise IdartsError(f"{self.path} has {job} already; no two jobs of an experiment may have one name")
        head: Row = {**dict.fromkeys(self.columns, ""), "job": job, "settings": _digest(settings)}
        self.rows += [{**head, **row} for row in rows]
        text = io.StringIO()
        writer = csv.DictWriter(text, self.columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.rows)
        write_whole(self.path, text.getvalue().encode())

    def _read(self) -> list[Row]:
        try:
            lines = list(csv.reader(io.StringIO(self.path.read_text(encoding="utf-8"))))
        except (OSError, UnicodeDecodeError, csv.Error) as error:
            raise InputError(f"{self.path} cannot be read ({error}); name a new folder with --out") from None
        if not lines or lines[0] != self.columns or any(len(line) != len(self.columns) for line in lines):
            raise InputError(f"{self.path} is not of this experiment; name a new folder with --out")
        return [
            {name: text if name in _KEYS else _value(text) for name, text in zip(self.columns, line, strict=True)}
            for line in lines[1:]
        ]


def _value(text: str) -> Value:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _digest(settings: Mapping[str, object]) -> str:
    return f"{zlib.crc32(json.dumps(settings, sort_keys=True, default=str).encode()):08x}"
