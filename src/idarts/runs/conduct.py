"""Some work, from its first round to its result: logged, checkpointed, stopped by signals, gone on with."""

import json
import signal
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType
from typing import Any, Protocol

from idarts.arch.files import write_whole
from idarts.errors import IdartsError, InputError, NotFiniteError
from idarts.runs import checkpoint
from idarts.runs.events import watch_events
from idarts.runs.folder import as_json, claimed, read_config, read_log


class Work(Protocol):
    """What goes round by round, with a state that can be saved between them: a search, a training."""

    number: int  # of the round it stands at

    @property
    def sound(self) -> bool: ...  # else its state is not worth a checkpoint

    def rounds(self) -> Iterator[Any]: ...  # records with a `number`

    def state_dict(self) -> dict[str, Any]: ...

    def load_state_dict(self, state: dict[str, Any]) -> None: ...


class Settings(Protocol):
    """What a run must know of its settings, which are a dataclass."""

    @property
    def checkpoint_rounds(self) -> int: ...

    @property
    def checkpoint_minutes(self) -> float: ...


@dataclass(frozen=True)
class Job:
    """Work, and what is written down of it."""

    work: Work
    entry: Callable[[Any], dict[str, Any]]  # what the log says of a round
    result: Callable[[list[dict[str, Any]]], dict[str, Any]]  # what remains at the end, from the whole log
    kind: str = "search"
    facts: dict[str, Any] | None = None  # beside the settings in config.json


class Interrupted(KeyboardInterrupt):
    """The run was asked to stop, and wrote a checkpoint first."""


Watch = Callable[[Any, Any], None]


def conduct(
    prepare: Callable[[], Job],
    settings: Any,
    out: Path,
    *,
    resume: bool = False,
    overwrite: bool = False,
    watch: Watch | None = None,
) -> list[dict[str, Any]]:
    """Do a job in a folder, which is its own before it is prepared; `watch` is told of every round. Gives the log.

    SIGINT and SIGTERM end the round, write a checkpoint, and raise `Interrupted`.
    """
    with claimed(out, resume, overwrite), _asked_to_stop() as asked:
        job = prepare()
        if resume:
            _go_on(job, out, settings)
        else:
            write_whole(out / "config.json", as_json({**asdict(settings), **(job.facts or {})}))
        _rounds(job, settings, out, asked, watch)
        log = read_log(out)
        spent = float(log[-1]["seconds"]) if log else 0.0
        write_whole(out / "result.json", as_json({**job.result(log), "seconds": spent}))
        return log


def _rounds(job: Job, settings: Settings, out: Path, asked: list[int], watch: Watch | None) -> None:
    """The rounds that remain, each of them put on record."""
    log, saved = read_log(out), time.monotonic()
    started = saved - (float(log[-1]["seconds"]) if log else 0.0)
    with (out / "metrics.jsonl").open("a") as file, watch_events(out) as events, _pointing_back(out, job.kind):
        for found in job.work.rounds():
            file.write(json.dumps({**job.entry(found), "seconds": round(time.monotonic() - started, 3)}) + "\n")
            file.flush()
            events(found, job.work)
            if watch:
                watch(found, job.work)
            late = time.monotonic() - saved >= 60 * settings.checkpoint_minutes
            due = late or asked or found.number % settings.checkpoint_rounds == 0
            if due and job.work.sound:
                _save(job, out)
                saved = time.monotonic()
            if asked:
                raise Interrupted(found.number)


def _save(job: Job, out: Path) -> None:
    number = job.work.number
    try:
        checkpoint.save(out / "checkpoints", number, job.work.state_dict(), job.kind)
    except OSError as error:
        raise IdartsError(
            f"the checkpoint of round {number} could not be written to {out} ({error.strerror}); "
            "the one before it is whole: make room, then continue with --resume"
        ) from error


def _go_on(job: Job, out: Path, settings: Any) -> None:
    """Load the last good checkpoint, and forget what the log says of later rounds."""
    before = read_config(out)
    changed = sorted(
        name for name, value in asdict(settings).items() if json.loads(json.dumps(value)) != before.get(name)
    )
    if changed:
        raise InputError(f"{out} was begun with another {changed[0]}; resume with the settings of its config.json")
    found = checkpoint.latest(out / "checkpoints", job.kind)
    number = 0
    if found is not None:
        number, state, problems = found
        job.work.load_state_dict(state)
        for problem in problems:
            warnings.warn(f"{problem}; going on from round {number}", UserWarning, stacklevel=2)
    kept = [json.dumps(line) + "\n" for line in read_log(out) if line["number"] <= number]
    write_whole(out / "metrics.jsonl", "".join(kept).encode())


@contextmanager
def _pointing_back(out: Path, kind: str) -> Iterator[None]:
    """A run that ends in numbers that are not finite says which of its states is good."""
    try:
        yield
    except NotFiniteError as error:
        good = checkpoint.latest(out / "checkpoints", kind)
        where = f"the last good checkpoint is that of round {good[0]}" if good else "there is no checkpoint yet"
        raise NotFiniteError(f"{error}; {where}, in {out}") from error


@contextmanager
def _asked_to_stop() -> Iterator[list[int]]:
    """A list that is no longer empty once SIGINT or SIGTERM came."""
    asked: list[int] = []

    def note(number: int, _frame: FrameType | None) -> None:
        asked.append(number)

    try:
        before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    except ValueError:  # not in the main thread: whoever is there handles signals
        before = {}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
