"""The log of a run, `metrics.jsonl`: one line for each round, with its digest. Damage costs a line, never the log."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from idarts.digests import with_digest
from idarts.engine.entries import parse_entry
from idarts.errors import InputError, WriteError
from idarts.files import open_safely, sync, write_whole

METRICS, DAMAGED = "metrics.jsonl", "metrics.damaged"


@dataclass(frozen=True)
class Line:
    """A line of the log: the entry of a round, or None where it is damaged."""

    place: int
    text: bytes
    entry: dict[str, Any] | None


@dataclass(frozen=True)
class Lines:
    """The lines of a log. `cut`: a kill cut off the last one, which is not counted as damage."""

    every: list[Line]
    cut: bool = False

    @property
    def rounds(self) -> list[dict[str, Any]]:
        """Each round once, by number, as it was logged last: a round may have run again after a kill."""
        by_number = {line.entry["number"]: line.entry for line in self.every if line.entry}
        return [by_number[number] for number in sorted(by_number)]

    @property
    def damaged(self) -> list[Line]:
        """The lines that are not the entry of a round."""
        return [line for line in self.every if line.entry is None]

    def problems(self, last: int = 0) -> list[str]:
        """What is wrong with the log of a run that has done `last` rounds, in sentences without a full stop."""
        places = [line.place for line in self.damaged]
        missing = _missing([entry["number"] for entry in self.rounds], last)
        damaged = f"{METRICS} has damaged lines, which are left out: {_ranges(places)}"
        return [*([damaged] if places else []), *([f"{METRICS} lacks rounds: {_ranges(missing)}"] if missing else [])]


def read_lines(path: Path) -> Lines:
    """The log in a run folder; an empty one if there is none."""
    file = path / METRICS
    if not file.is_file():
        return Lines([])
    try:
        *whole, last = file.read_bytes().split(b"\n")
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror}") from None
    every = [Line(place, text, _entry(text)) for place, text in enumerate(whole, start=1) if text.strip()]
    entry = _entry(last)
    if entry is not None:  # complete, but for the end of the line
        every.append(Line(len(whole) + 1, last, entry))
    return Lines(every, cut=entry is None and bool(last))


def _entry(text: bytes) -> dict[str, Any] | None:
    try:
        return parse_entry(METRICS, text)
    except InputError:  # not text in UTF-8, not JSON, not as it was written, or not a round
        return None


def read_rounds(path: Path) -> list[dict[str, Any]]:
    """The log's rounds by number, without damaged lines."""
    return read_lines(path).rounds


@contextmanager
def round_log(path: Path) -> Iterator[Callable[[Mapping[str, Any]], None]]:
    """A function that appends the entry of one round to the log; a kill cannot lose it when the function returns."""
    with _writing(path / METRICS):
        file = open_safely(path / METRICS, "a")

    def append(entry: Mapping[str, Any]) -> None:
        with _writing(path / METRICS):
            file.write(json.dumps(with_digest(entry)) + "\n")
            file.flush()

    try:
        yield append
    finally:
        with suppress(OSError):  # a full disk fails a second time here
            file.close()


def sync_log(path: Path) -> None:
    """Wait until the log is on the disk: a checkpoint must not survive a power cut that its rounds do not."""
    file = path / METRICS
    if file.is_file():
        with _writing(file), open_safely(file, "a") as log:
            sync(log)


@contextmanager
def _writing(file: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise WriteError(f"cannot write {file}: {error.strerror}") from None


def drop_rounds(path: Path, after: int) -> list[str]:
    """Delete the rounds after a number from the log, because a resumed run computes them again.

    Damaged lines move to `metrics.damaged`. The result says what is wrong with the rest of the log.
    """
    lines = read_lines(path)
    problems = []
    if lines.damaged:
        before = (path / DAMAGED).read_bytes() if (path / DAMAGED).is_file() else b""
        write_whole(path / DAMAGED, before + b"".join(line.text + b"\n" for line in lines.damaged))
        problems.append(f"{len(lines.damaged)} damaged lines of {path / METRICS} were moved to {DAMAGED}")
    kept = [line for line in lines.every if line.entry and line.entry["number"] <= after]
    write_whole(path / METRICS, b"".join(line.text + b"\n" for line in kept))
    missing = _missing([line.entry["number"] for line in kept if line.entry], after)
    return problems + ([f"{path / METRICS} lacks rounds: {_ranges(missing)}"] if missing else [])


def _missing(numbers: Sequence[int], last: int = 0) -> list[int]:
    """The rounds up to the last one that are not there; a damaged number may be huge, so few of them are listed."""
    known, end = set(numbers), max([last, *numbers])
    return [number for number in range(1, end + 1) if number not in known] if end < len(known) + 10**6 else [end]


def _ranges(numbers: Sequence[int]) -> str:
    """
    >>> _ranges([2, 3, 4, 7])
    '2 to 4, 7'
    """
    starts = [number for number in numbers if number - 1 not in numbers]
    ends = [number for number in numbers if number + 1 not in numbers]
    pairs = [str(a) if a == b else f"{a} to {b}" for a, b in zip(starts, ends, strict=True)]
    return ", ".join(pairs[:5]) + (f" and {len(pairs) - 5} more" if len(pairs) > 5 else "")
