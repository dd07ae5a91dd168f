"""Run a job in its folder, from the first round to the result: log, checkpoints, signals, resume."""

import json
import logging
import signal
import time
import warnings
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, Protocol, TypeAlias, TypedDict, TypeVar, Unpack

from idarts.engine import checkpoint, folder
from idarts.engine.log import RunLog, run_log
from idarts.engine.loggers import Logger, Started, make_logger
from idarts.engine.ranks import any_of, on_first, process_group, rank, restarted, wait_for_all, world
from idarts.engine.settings import dotted
from idarts.errors import IdartsError, InputError, NotFiniteError

_diagnostics = logging.getLogger(__name__)

OnRound: TypeAlias = Callable[[Any, Any], None]  # called after every round, with its record and the work
OnMessage: TypeAlias = Callable[[str], None]  # receives status messages outside rounds, e.g. during warm-up
Entry: TypeAlias = dict[str, Any]  # one line of the log


class Work(Protocol):
    """What runs round by round, with a state that can be saved between rounds: a search, a training."""

    on_message: OnMessage  # to be called now and then in a long phase that is not a round; it may raise `Interrupted`

    @property
    def number(self) -> int: ...  # of the last round

    @property
    def healthy(self) -> bool: ...  # False while numbers are not finite: such a state is not saved

    def rounds(self) -> Iterator[Any]: ...  # the rounds that remain, as records with a `number`

    def state_dict(self) -> dict[str, Any]: ...

    def load_state_dict(self, state: dict[str, Any]) -> None: ...


@dataclass(frozen=True)
class Job:
    """Work, and what is written about it."""

    work: Work
    entry: Callable[[Any], Entry]  # a round's record → its line in the log
    result: Callable[[list[Entry]], dict[str, Any]]  # the whole log → the content of result.json
    kind: str = "search"  # checkpoints of another kind are refused
    facts: dict[str, Any] = field(default_factory=dict)  # written beside the settings
    files: dict[str, bytes] = field(default_factory=dict)  # written at the start, by name
    upgrade: Callable[[dict[str, Any]], dict[str, Any]] = (
        dict  # settings as older versions wrote them → in today's names
    )
    growing: tuple[str, ...] = ()  # settings of which a resumed run may have more: its budgets


class Interrupted(KeyboardInterrupt):
    """A signal stopped the run, after it wrote a checkpoint. The argument is the number of the last round."""


class Options(TypedDict, total=False):
    """How a run starts, and who is informed about it."""

    resume: bool  # continue the run in the folder
    overwrite: bool  # replace the run in the folder
    on_round: OnRound | None
    on_message: OnMessage | None


def run_job(prepare: Callable[[], Job], settings: Any, path: Path, **options: Unpack[Options]) -> list[Entry]:
    """Run a job in a folder and return its log. The folder is locked first, then the job is prepared.

    `settings` is a dataclass with at least `checkpoint_rounds`, `checkpoint_minutes` and `log`.
    On SIGINT or SIGTERM the run finishes its round, writes a checkpoint and raises `Interrupted`.
    """
    return run_to_end(start_job(prepare, settings, path, **options))


Result = TypeVar("Result")


def run_to_end(running: Generator[Any, None, Result]) -> Result:
    """The value of a generator; what it yields on the way is left out.

    >>> run_to_end((lambda: (yield))())
    """
    while True:
        try:
            next(running)
        except StopIteration as end:
            result: Result = end.value
            return result


def start_job(
    prepare: Callable[[], Job], settings: Any, path: Path, **options: Unpack[Options]
) -> Generator[Work, None, list[Entry]]:
    """As `run_job`, but one step at a time, so that several jobs can take turns.

    It yields the work once before the first round, and then after every round; its value is the log. `close()` stops
    the job between two rounds, with a checkpoint. Jobs that take turns must end in the reverse order of their start,
    because each of them handles signals until it ends.
    """
    on_message = options.get("on_message")
    with (
        process_group(),
        _claim(path, options.get("resume", False), options.get("overwrite", False)) as resuming,
        _stop_signals(on_message) as stop,
    ):
        loggers: list[Logger] = []
        on_first(lambda: loggers.append(make_logger(settings.log)))  # nothing is written if its package is missing
        job = prepare()
        wait_for_all()
        if resuming:
            _load_checkpoint(job, settings, path)
        else:
            on_first(lambda: folder.start(path, {**asdict(settings), **job.facts}, job.files))
        if rank() == 0:
            _diagnostics.info("%s in %s starts with round %d", job.kind, path, job.work.number + 1)
        job.work.on_message = _between_rounds(job, path, stop, on_message)
        with _log(loggers, job, settings, path) as log:
            yield from _run_rounds(job, settings, path, stop, options.get("on_round"), log)
            return _finish(job, path, log)


@contextmanager
def _claim(path: Path, resume: bool, overwrite: bool) -> Iterator[bool]:
    """Lock the folder, on the first rank; whether the run in it is to be resumed.

    A job that `torchrun` has restarted resumes, whatever its options say.
    """
    with ExitStack() as stack:

        def claim() -> bool:
            resuming = resume or (restarted() and folder.is_run(path))
            stack.enter_context(folder.claim(path, resuming, overwrite and not resuming))
            return resuming

        yield on_first(claim)


@dataclass
class _Stop:
    requested: bool = False


@contextmanager
def _stop_signals(on_message: OnMessage | None) -> Iterator[_Stop]:
    """Let SIGINT and SIGTERM request a stop after the round. The same signal again acts at once, as usual."""
    stop = _Stop()

    def request(number: int, _frame: FrameType | None) -> None:
        stop.requested = True
        signal.signal(number, before[signal.Signals(number)] or signal.SIG_DFL)
        if on_message and rank() == 0:
            on_message("stopping after this round; the same signal again stops at once")

    try:
        before = {number: signal.signal(number, request) for number in (signal.SIGINT, signal.SIGTERM)}
    except ValueError:  # only the main thread can handle signals
        before = {}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _between_rounds(job: Job, path: Path, stop: _Stop, on_message: OnMessage | None) -> OnMessage:
    """The function that the work calls outside rounds: it passes messages on, and stops the run if requested.

    Before the first round a stop writes a checkpoint; after the last one there is a checkpoint already.
    """

    def send(message: str) -> None:
        if any(any_of(stop.requested)):
            if not job.work.number:
                _save_checkpoint(job, path)
            raise Interrupted(job.work.number)
        if rank() == 0:
            _diagnostics.debug("%s", message)
            if on_message:
                on_message(message)

    return send


def _run_rounds(
    job: Job, settings: Any, path: Path, stop: _Stop, on_round: OnRound | None, log: RunLog | None
) -> Generator[Work, None, None]:
    """Run the rounds that remain, log each, and write checkpoints. It yields between rounds."""
    saved = time.monotonic()
    with _naming_checkpoint(job, path):
        yield from _saved_on_close(job, path)
        for record in job.work.rounds():
            if log:
                log.round(job.entry(record))
                if on_round:
                    on_round(record, job.work)
            late = time.monotonic() - saved >= 60 * settings.checkpoint_minutes
            stopping, due = any_of(stop.requested, late)
            if (stopping or due or record.number % settings.checkpoint_rounds == 0) and job.work.healthy:
                _save_checkpoint(job, path)
                saved = time.monotonic()
            if stopping:
                raise Interrupted(record.number)
            yield from _saved_on_close(job, path)
        if job.work.healthy:  # a kill while the result is computed loses no round
            _save_checkpoint(job, path)


def _saved_on_close(job: Job, path: Path) -> Generator[Work, None, None]:
    """Yield the work; a job that is closed here writes a checkpoint first."""
    try:
        yield job.work
    except GeneratorExit:
        if job.work.healthy:
            _save_checkpoint(job, path)
        raise


@contextmanager
def _log(loggers: list[Logger], job: Job, settings: Any, path: Path) -> Iterator[RunLog | None]:
    """The log of the run, on the first rank."""
    with ExitStack() as stack:
        logs: list[RunLog] = []

        def start() -> None:
            run = Started(path, job.kind, asdict(settings), job.work.number + 1, folder.read_logger_id(path))
            logs.append(stack.enter_context(run_log(loggers[0], run)))

        on_first(start)
        yield logs[0] if logs else None


@contextmanager
def _naming_checkpoint(job: Job, path: Path) -> Iterator[None]:
    """Name the last good checkpoint when a run ends because its numbers are not finite."""
    try:
        yield
    except NotFiniteError as error:
        good = checkpoint.latest(path / folder.CHECKPOINTS, job.kind)
        where = f"the last good checkpoint is that of round {good[0]}" if good else "there is no checkpoint yet"
        raise NotFiniteError(f"{error}; {where}, in {path}") from error


def _save_checkpoint(job: Job, path: Path) -> None:
    """Write the state of the first rank, which all ranks share, with the number of ranks."""
    number, state = job.work.number, {**job.work.state_dict(), "ranks": world()}

    def write() -> None:
        try:
            checkpoint.save(path / folder.CHECKPOINTS, number, state, job.kind)
            _diagnostics.info("checkpoint of round %d written to %s", number, path)
        except OSError as error:
            before = checkpoint.latest(path / folder.CHECKPOINTS, job.kind)
            whole = f"that of round {before[0]} is intact" if before else "there is no earlier one"
            raise IdartsError(
                f"the checkpoint of round {number} could not be written to {path} ({error.strerror}); "
                f"{whole}: make room, then continue with --resume"
            ) from error

    on_first(write)


def _load_checkpoint(job: Job, settings: Any, path: Path) -> None:
    """Load the last checkpoint that can be read, and delete later rounds from the log."""

    def read() -> tuple[int, dict[str, Any] | None, list[str]]:
        grown = _grown_settings(job, settings, path)
        latest = checkpoint.latest(path / folder.CHECKPOINTS, job.kind) or (0, None, [])
        folder.drop_rounds(path, after=latest[0])
        if grown:
            folder.extend(path, {name: now for name, (_, now) in grown.items()}, {"round": latest[0], **grown})
        return latest

    number, state, problems = on_first(read)
    ranks = world() if state is None else state.pop("ranks", 1)
    if ranks != world():
        problems.append(f"until round {number} there were {ranks} ranks, now {world()}: equal, but not bit for bit")
    if state is not None:
        job.work.load_state_dict(state)
    for problem in problems:
        warnings.warn(f"{problem}; resuming from round {number}", UserWarning, stacklevel=2)


def _grown_settings(job: Job, settings: Any, path: Path) -> dict[str, tuple[Any, Any]]:
    """The budgets that have grown since the run started, with both values; any other change is refused.

    A setting that the folder does not have is newer than the run.
    """
    before = dotted(job.upgrade(folder.read_config(path)))
    now = dotted(json.loads(json.dumps(asdict(settings))))
    changed = {name: (before[name], now[name]) for name in sorted(now) if now[name] != before.get(name, now[name])}
    for name, values in changed.items():
        if name not in job.growing:
            raise InputError(f"{path} was started with another {name}; resume with the settings of its {folder.CONFIG}")
        if not _grows(*values):
            raise InputError(f"{path} was started with {name} {values[0]}, which can only grow; {values[1]} is less")
    return changed


def _grows(before: Any, now: Any) -> bool:
    """Whether a limit has grown; None is no limit."""
    return before is not None and (now is None or now > before)


def _finish(job: Job, path: Path, log: RunLog | None) -> list[Entry]:
    """Compute and write the result, which may take a while: a selection, a pass over the test images."""
    rounds, started = on_first(lambda: folder.read_rounds(path)), time.monotonic()
    result = job.result(rounds)
    before = float(rounds[-1]["seconds"]) if rounds else 0.0
    result["seconds"] = round(before + time.monotonic() - started, 3)
    on_first(lambda: folder.write_result(path, result))
    if log:
        _diagnostics.info("result written to %s", path / folder.RESULT)
        log.send("result", result)
    return rounds
