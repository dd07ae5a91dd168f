"""A run folder while a run works in it: every look reads only what is new, and no file outside of the folder.

Settings and result are read again when their files change; the log is read on from the byte where the last look ended.
A file that is replaced (a resumed run, an overwritten one) is read anew. What is damaged becomes one line, `problem`.
"""

import os
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from idarts.engine.entries import LARGEST, Floats, as_alpha, as_float, parse_entry, parse_object
from idarts.engine.folder import CONFIG, METRICS, RESULT, Run
from idarts.engine.lock import holder_is_alive
from idarts.errors import InputError

CHUNK = 1 << 19  # bytes of a log that one look reads; a line must fit into it
_LARGEST_OBJECT = 64 << 20  # bytes of settings or of a result
_MARK = 64  # bytes before the place where reading continues: if they differ, the file was rewritten
_QUIET = 5.0  # seconds without a round after which a run whose process is not on this machine counts as stopped
_ALPHAS = 2000  # logged α that are kept; of more, every other one

Identity = tuple[int, int, int, int]  # of a file as it was written last


class Log:
    """Rounds as columns of floats, which take a tenth of the memory of dictionaries.

    >>> log = Log()
    >>> log.add([{"number": 1, "loss": 2.0}, {"number": 2, "loss": None}, {"number": 2, "loss": 1.0}])
    >>> log.count, log.column("loss").tolist()
    (2, [2.0, 1.0])
    """

    def __init__(self) -> None:
        self.count = 0
        self.alphas: list[tuple[int, dict[str, Floats]]] = []
        self.last: dict[str, Any] = {}  # of each field, the last value that is not null
        self.numbers: dict[str, None] = {}  # fields that hold numbers, in the order of the log
        self._columns: dict[str, Floats] = {}  # NaN: not logged; ∞: logged as null

    def add(self, entries: Iterable[dict[str, Any]]) -> None:
        """Append entries. A round that ran again, after a kill, replaces the old one and all that followed it."""
        rows = list[dict[str, Any]]()
        for entry in entries:
            number = entry["number"]
            if rows and number <= rows[-1]["number"]:
                rows = [row for row in rows if row["number"] < number]
            self._forget(number)
            if alpha := entry.pop("alpha", None):
                self.alphas.append((number, alpha))
            rows.append(entry)
        if len(self.alphas) > _ALPHAS:
            self.alphas = self.alphas[:-1:2] + self.alphas[-1:]
        self._fill(rows)

    def column(self, key: str) -> Floats:
        """A field over the rounds, as it is stored."""
        known = self._columns.get(key)
        return np.full(self.count, np.nan) if known is None else known[: self.count]

    def _forget(self, number: int) -> None:
        """Delete the rounds from a number on."""
        if self.count and number <= self.column("number")[-1]:
            self.count = int(np.searchsorted(self.column("number"), number))
        while self.alphas and self.alphas[-1][0] >= number:
            self.alphas.pop()

    def _fill(self, rows: list[dict[str, Any]]) -> None:
        new = {key: [np.nan] * len(rows) for key in dict.fromkeys(key for row in rows for key in row)}
        for place, row in enumerate(rows):
            for key, value in row.items():
                if value is None:
                    new[key][place] = np.inf
                    continue
                self.last[key] = value
                if type(value) is float or type(value) is int:
                    new[key][place] = value if type(value) is float else as_float(value)
                    self.numbers[key] = None
        end = self.count + len(rows)
        for key in {**self._columns, **new}:
            column = self._columns.get(key, np.empty(0))
            if len(column) < end:
                more = np.full(max(256, 2 * end) - len(column), np.nan)
                self._columns[key] = column = np.concatenate([column, more])
            column[self.count : end] = new.get(key, np.nan)
        self.count = end


@dataclass(frozen=True)
class FollowedRun(Run):
    """A run whose rounds are in columns; `rounds` is empty."""

    log: Log = field(default_factory=Log)

    @property
    def number(self) -> int:
        """The number of the last round."""
        return int(self.log.column("number")[-1])

    def fields(self) -> list[str]:
        """The names of all fields that hold numbers."""
        return list(self.log.numbers)

    def series(self, key: str) -> Floats:
        """A field over the rounds, NaN where it is missing or not finite."""
        column = self.log.column(key)
        return np.where(np.abs(column) < LARGEST, column, np.nan)

    def nulls(self, key: str) -> NDArray[np.bool_]:
        """In which rounds a field was logged as null."""
        return np.isinf(self.log.column(key))

    def last(self, key: str) -> Any:
        """The last value of a field, or None."""
        return self.log.last.get(key)

    def logged_alphas(self) -> list[tuple[int, dict[str, Floats]]]:
        """α of those rounds that logged it; of very many, some."""
        return self.log.alphas


class Follower:
    """One run folder, followed: call `look` now and then, then use `run`, `problem` and `stopped`.

    `run` is None before the first round; `changes` grows whenever any of them has changed.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.problem, self.stopped, self.changes, self.started, self._more = "", False, 0, 0.0, False
        self._config: dict[str, Any] = {}
        self._result: dict[str, Any] | None = None
        self._known: dict[str, Identity | None] = {}  # file → as it was read last
        self._problems = dict.fromkeys((CONFIG, RESULT, METRICS), "")
        self._restart()

    @property
    def run(self) -> FollowedRun | None:
        """The run so far."""
        if not self._log.count:
            return None
        cut = self._rest and (self.stopped or self._result is not None)  # otherwise a line is being written
        return FollowedRun(self.folder, self._config, [], self._result, cut, log=self._log)

    def look(self) -> bool:
        """Read what is new, at most `CHUNK` bytes of the log; whether there is more to read at once."""
        before, self._more = (self.problem, self.stopped), False
        for name, read in ((CONFIG, self._read_config), (RESULT, self._read_result), (METRICS, self._read_log)):
            try:
                self._problems[name] = read()
            except InputError as error:
                self._problems[name] = str(error)
        self.problem = next(filter(None, self._problems.values()), "" if self._log.count else "no rounds yet")
        self.stopped = self._is_stopped()
        self.changes += (self.problem, self.stopped) != before
        return self._more

    def _restart(self) -> None:
        """Forget the log."""
        self._log, self._offset, self._line, self._mark = Log(), 0, 0, b""
        self._rest, self._written, self._damage = False, 0.0, ""
        self.changes += 1

    def _read_config(self) -> str:
        """Read the settings if they have changed; what is wrong with them."""
        content = self._changed(CONFIG)
        identity = self._known[CONFIG]
        if identity is None:
            return f"{self.folder / CONFIG} does not exist: the run was deleted, or is being replaced"
        if content is None:
            return self._problems[CONFIG]
        config = parse_object(self.folder / CONFIG, content, "put it back, or start again with --overwrite")
        if config != self._config:
            self._restart()
        self._config, self.started = config, identity[2] / 1e9
        return ""

    def _read_result(self) -> str:
        content = self._changed(RESULT)
        if content is None and self._known[RESULT] is not None:
            return self._problems[RESULT]
        before, self._result = self._result, None
        if content is not None:
            self._result = parse_object(self.folder / RESULT, content, "delete it, and --resume writes it again")
        self.changes += self._result is not before
        return ""

    def _changed(self, name: str) -> bytes | None:
        """The content of a file that has changed since it was read last; None for one that has not, or is not there."""
        before = self._known.pop(name, None)  # a file that cannot be opened counts as changed when it can be
        with _opened(self.folder / name) as file:
            now = None if file is None else _identity(os.fstat(file.fileno()))
            content = file.read(_LARGEST_OBJECT + 1) if file is not None and now != before else None
        self._known[name] = now
        if content is not None and len(content) > _LARGEST_OBJECT:
            raise InputError(f"{self.folder / name} is larger than {_LARGEST_OBJECT >> 20} MB")
        return content

    def _read_log(self) -> str:
        with _opened(self.folder / METRICS) as file:
            if file is None:
                if self._offset:
                    self._restart()
                return ""
            status = os.fstat(file.fileno())
            file.seek(max(0, self._offset - len(self._mark)))
            if status.st_size < self._offset or file.read(len(self._mark)) != self._mark:
                self._restart()
                file.seek(0)
            content = file.read(CHUNK)
        self._written, self._more = status.st_mtime, len(content) == CHUNK
        self._take(content)
        return self._damage

    def _take(self, content: bytes) -> None:
        """Add the whole lines; the last one may be incomplete, and is read again."""
        end = content.rfind(b"\n") + 1
        self._rest = end < len(content)
        if not end and len(content) == CHUNK:  # skip a part of an endless line
            end = CHUNK
        if not end:
            return
        entries, file = [], str(self.folder / METRICS)
        for text in content[:end].splitlines():
            self._line += 1
            where = f"{file} line {self._line}"
            try:
                if text.strip():
                    entry = parse_entry(where, text)
                    entry["alpha"] = as_alpha(where, entry.get("alpha"))
                    entries.append(entry)
            except InputError as error:
                self._damage = str(error)
        self._log.add(entries)
        self._offset += end
        self._mark = (self._mark + content[max(0, end - _MARK) : end])[-_MARK:]
        self.changes += 1

    def _is_stopped(self) -> bool:
        """Whether a run without a result has no process any more; one on another machine is judged by its log."""
        if self._result is not None or not self._config:
            return False
        return not holder_is_alive(self.folder) and time.time() - max(self._written, self.started) > _QUIET


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes] | None]:
    """A regular file of a run; None if it is not there. Links are not followed, and a pipe does not block."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        descriptor = -1
    except OSError as error:
        reason = (
            "is a symbolic link; links are not followed" if path.is_symlink() else f"cannot be read: {error.strerror}"
        )
        raise InputError(f"{path} {reason}") from None
    if descriptor < 0:
        yield None
        return
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise InputError(f"{path} is not a regular file")
        yield file


def _identity(status: os.stat_result) -> Identity:
    return status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size
