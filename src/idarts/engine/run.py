"""Some work, from its first round to its result: logged, checkpointed, stopped by signals, gone on with."""

import json
import signal
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType
from typing import Any, Protocol, TypedDict, Unpack

from idarts.engine import checkpoint
from idarts.engine.events import watch_events
from idarts.engine.folder import as_json, claimed, clear, finite, read_config, read_log
from idarts.engine.ranks import any_of, joined, on_first, rank, restarted, wait_for_all, world
from idarts.errors import IdartsError, InputError, NotFiniteError
from idarts.files import write_whole


class Work(Protocol):
    """What goes round by round, with a state that can be saved between them: a search, a training."""

    number: int  # of the round it stands at
    tell: "Tell"  # to be called now and then in what takes long and is no round; it may end the work

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
Tell = Callable[[str], None]


class Options(TypedDict, total=False):
    """How a run is gone about."""

    resume: bool  # the run in the folder is to be gone on with
    overwrite: bool  # it may go: no run is overwritten unasked
    watch: Watch | None  # is told of every round, with the work
    tell: Tell | None  # hears in a few words how that goes which is no round: a warm-up, a selection


def conduct(prepare: Callable[[], Job], settings: Any, out: Path, **options: Unpack[Options]) -> list[dict[str, Any]]:
    """Do a job in a folder, which is its own before it is prepared. Gives the log.

    SIGINT and SIGTERM end the round, write a checkpoint, and raise `Interrupted`.
    """
    resume, overwrite = options.get("resume", False), options.get("overwrite", False)
    watch, tell = options.get("watch"), options.get("tell")
    with joined(), _owned(out, resume, overwrite) as begun, _asked_to_stop(tell) as asked:
        job = prepare()
        wait_for_all()
        if begun:
            _go_on(job, out, settings)
        else:
            on_first(lambda: _begin(out, {**asdict(settings), **(job.facts or {})}))
        job.work.tell = _pulse(job, out, asked, tell)
        _rounds(job, settings, out, asked, watch)
        log, ended = on_first(lambda: read_log(out)), time.monotonic()
        found = job.result(log)  # which may take a while, too: a selection, a last look at the test images
        found["seconds"] = round((float(log[-1]["seconds"]) if log else 0.0) + time.monotonic() - ended, 3)
        on_first(lambda: write_whole(out / "result.json", as_json(found)))
        return log


def _begin(out: Path, facts: dict[str, Any]) -> None:
    """Only now, when the new run is known to be possible, an old one goes."""
    clear(out)
    write_whole(out / "config.json", as_json(facts))


@contextmanager
def _owned(out: Path, resume: bool, overwrite: bool) -> Iterator[bool]:
    """The folder, of which files are the first rank's affair, and whether there is a run in it to go on with.

    A job that `torchrun` has begun again goes on with what it did before, without being asked to.
    """
    with ExitStack() as stack:

        def claim() -> bool:
            begun = resume or (restarted() and (out / "config.json").exists())
            stack.enter_context(claimed(out, begun, overwrite and not begun))
            return begun

        yield on_first(claim)


def _pulse(job: Job, out: Path, asked: list[int], tell: Tell | None) -> Tell:
    """What work calls between rounds. Before the first one it is worth a checkpoint; after the last, there is one."""

    def pulse(said: str) -> None:
        if any(any_of(bool(asked))):
            if not job.work.number:
                _save(job, out)
            raise Interrupted(job.work.number)
        if tell and rank() == 0:
            tell(said)

    return pulse


def _rounds(job: Job, settings: Settings, out: Path, asked: list[int], watch: Watch | None) -> None:
    """The rounds that remain, each of them put on record."""
    saved = time.monotonic()
    with _on_record(job, out) if rank() == 0 else nullcontext() as record, _pointing_back(out, job.kind):
        for found in job.work.rounds():
            if record:
                record(found)
                if watch:
                    watch(found, job.work)
            late = time.monotonic() - saved >= 60 * settings.checkpoint_minutes
            stop, due = any_of(bool(asked), late)
            if (stop or due or found.number % settings.checkpoint_rounds == 0) and job.work.sound:
                _save(job, out)
                saved = time.monotonic()
            if stop:
                raise Interrupted(found.number)
        if job.work.sound:  # a run that is killed while its result is made need not go back
            _save(job, out)


@contextmanager
def _on_record(job: Job, out: Path) -> Iterator[Callable[[Any], None]]:
    """What is called after every round: a line of the log, and events."""
    log = read_log(out)
    started = time.monotonic() - (float(log[-1]["seconds"]) if log else 0.0)
    with (out / "metrics.jsonl").open("a") as file, watch_events(out) as events:

        def record(found: Any) -> None:
            entry = finite(job.entry(found))
            file.write(json.dumps({**entry, "seconds": round(time.monotonic() - started, 3)}) + "\n")
            file.flush()
            events(found, job.work)

        yield record


def _save(job: Job, out: Path) -> None:
    """The first rank's state is everybody's; `ranks` is how many they are."""
    number, state = job.work.number, {**job.work.state_dict(), "ranks": world()}
    on_first(lambda: _write(job, out, number, state))


def _write(job: Job, out: Path, number: int, state: dict[str, Any]) -> None:
    try:
        checkpoint.save(out / "checkpoints", number, state, job.kind)
    except OSError as error:
        raise IdartsError(
            f"the checkpoint of round {number} could not be written to {out} ({error.strerror}); "
            "the one before it is whole: make room, then continue with --resume"
        ) from error


def _go_on(job: Job, out: Path, settings: Any) -> None:
    """Load the last good checkpoint, and forget what the log says of later rounds."""
    number, state, problems = on_first(lambda: _last(out, settings, job.kind))
    ranks = world() if state is None else state.pop("ranks", 1)
    if ranks != world():
        problems.append(f"until round {number} there were {ranks} ranks, now {world()}: equal, but not to the bit")
    if state is not None:
        job.work.load_state_dict(state)
    for problem in problems:
        warnings.warn(f"{problem}; going on from round {number}", UserWarning, stacklevel=2)


def _last(out: Path, settings: Any, kind: str) -> tuple[int, dict[str, Any] | None, list[str]]:
    before = read_config(out)
    given = {name: json.loads(json.dumps(value)) for name, value in asdict(settings).items()}
    changed = sorted(name for name, value in given.items() if value != before.get(name, value))
    if changed:
        raise InputError(f"{out} was begun with another {changed[0]}; resume with the settings of its config.json")
    number, state, problems = checkpoint.latest(out / "checkpoints", kind) or (0, None, [])
    kept = [json.dumps(line) + "\n" for line in read_log(out) if line["number"] <= number]
    write_whole(out / "metrics.jsonl", "".join(kept).encode())
    return number, state, problems


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
def _asked_to_stop(tell: Tell | None) -> Iterator[list[int]]:
    """A list that is no longer empty once SIGINT or SIGTERM came; a second one is not waited with."""
    asked: list[int] = []

    def note(number: int, _frame: FrameType | None) -> None:
        asked.append(number)
        signal.signal(number, before[signal.Signals(number)] or signal.SIG_DFL)
        if tell and rank() == 0:
            tell("stopping after this round; the same signal again ends at once")

    try:
        before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    except ValueError:  # not in the main thread: whoever is there handles signals
        before = {}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
