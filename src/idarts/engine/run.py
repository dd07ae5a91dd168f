"""Run a job in its folder, from the first round to the result: log, checkpoints, signals, resume."""

import logging
import time
import warnings
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeAlias, TypedDict, TypeVar, Unpack

import torch

from idarts._version import __version__
from idarts.engine import checkpoint, folder
from idarts.engine.log import RunLog, run_log
from idarts.engine.loggers import Logger, Started, make_logger
from idarts.engine.origin import changes, made_with, plain
from idarts.engine.ranks import on_first, process_group, rank, require_equal, restarted
from idarts.engine.saving import Interrupted, Saving, load_newest, naming_checkpoint
from idarts.engine.settings import dotted
from idarts.engine.signals import listening
from idarts.errors import InputError
from idarts.files import dump_json, write_whole

__all__ = ["Entry", "Interrupted", "Job", "OnMessage", "OnRound", "Options", "Work"]
__all__ += ["run_job", "run_to_end", "start_job"]

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
    def healthy(self) -> bool: ...  # False while numbers are not finite, or the state is incomplete: it is not saved

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
    data: str | None = None  # a digest of the data, if it is known
    files: dict[str, bytes] = field(default_factory=dict)  # written at the start, by name
    upgrade: Callable[[dict[str, Any]], dict[str, Any]] = (
        dict  # settings as older versions wrote them → in today's names
    )
    growing: tuple[str, ...] = ()  # settings of which a resumed run may have more: its budgets
    finished: Callable[[], bool] = lambda: False  # whether the loaded work has no use for a larger budget


class Options(TypedDict, total=False):
    """How a run starts, and who is informed about it."""

    resume: bool  # continue the run in the folder
    overwrite: bool  # replace the run in the folder
    accept_changed_data: bool  # resume although the data has changed
    on_round: OnRound | None
    on_message: OnMessage | None


def run_job(prepare: Callable[[], Job], settings: Any, path: Path, **options: Unpack[Options]) -> list[Entry]:
    """Run a job in a folder and return its log. The folder is locked first, then the job is prepared.

    `settings` is a dataclass with at least `checkpoint_rounds`, `checkpoint_minutes` and `log`.
    On SIGINT, SIGTERM or SIGHUP the run finishes its round, writes a checkpoint and raises `Interrupted`. On SIGUSR1 it
    writes a checkpoint and continues.
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
    on_message = _by_first(options.get("on_message"))
    with (
        process_group(),
        _claim(path, options.get("resume", False), options.get("overwrite", False)) as resuming,
        listening(on_message) as requests,
    ):
        loggers: list[Logger] = []
        on_first(lambda: loggers.append(make_logger(settings.log)))  # nothing is written if its package is missing
        require_equal({**plain(settings), "idarts": __version__, "torch": str(torch.__version__)})
        job = prepare()
        require_equal({"data": job.data})
        with naming_checkpoint(job.kind, path):
            if resuming:
                _resume(job, settings, path, options.get("accept_changed_data", False))
            else:
                files = {folder.MADE_WITH: dump_json(made_with(settings, job.data)), **job.files}
                on_first(lambda: folder.start(path, {**asdict(settings), **job.facts}, files))
            often = (settings.checkpoint_rounds, settings.checkpoint_minutes)
            saving = Saving(job.work, job.kind, path, *often, requests)
            job.work.on_message = _between_rounds(saving, on_message)
            if rank() == 0:
                _diagnostics.info("%s in %s starts with round %d", job.kind, path, job.work.number + 1)
            with _log(loggers, job, settings, path) as log:
                yield from _run_rounds(job, log, saving, options.get("on_round"))
                return _finish(job, path, log)


@contextmanager
def _claim(path: Path, resume: bool, overwrite: bool) -> Iterator[bool]:
    """Lock the folder, on the first rank; whether the run in it is to be resumed.

    A job that `torchrun` has restarted resumes, even if its options say otherwise.
    """
    with ExitStack() as stack:

        def claim() -> bool:
            resuming = resume or (restarted() and folder.is_run(path))
            stack.enter_context(folder.claim(path, resuming, overwrite and not resuming))
            return resuming

        yield on_first(claim)


def _by_first(on_message: OnMessage | None) -> OnMessage:
    """A function that passes messages on from the first rank alone. After SIGHUP there may be no terminal any more."""

    def send(message: str) -> None:
        if on_message and rank() == 0:
            with suppress(OSError):
                on_message(message)

    return send


def _between_rounds(saving: Saving, on_message: OnMessage) -> OnMessage:
    """The function that the work calls outside rounds: it passes messages on, writes checkpoints, and stops the run."""

    def send(message: str) -> None:
        saving.between_rounds()
        if rank() == 0:
            _diagnostics.debug("%s", message)
        on_message(message)

    return send


def _run_rounds(job: Job, log: RunLog | None, saving: Saving, on_round: OnRound | None) -> Generator[Work, None, None]:
    """Run the rounds that remain, log each, and write checkpoints. It yields between rounds."""
    yield from _saved_on_close(job, saving)
    for record in job.work.rounds():
        if log:
            log.round(job.entry(record))
            if on_round:
                try:
                    on_round(record, job.work)
                except OSError:
                    if not saving.requests.stop:  # else SIGHUP came, perhaps just now, and the terminal is gone
                        raise
        saving.after_round()
        yield from _saved_on_close(job, saving)
    saving.save()  # a kill while the result is computed loses no round


def _saved_on_close(job: Job, saving: Saving) -> Generator[Work, None, None]:
    """Yield the work; a job that is closed here writes a checkpoint first."""
    try:
        yield job.work
    except GeneratorExit:
        saving.save()
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


def _resume(job: Job, settings: Any, path: Path, accept_changed_data: bool) -> None:
    """Load the newest checkpoint that can be used, and delete later rounds from the log."""
    now = made_with(settings, job.data)

    def compare() -> tuple[dict[str, tuple[Any, Any]], list[str]]:
        grown = _grown_settings(job, settings, path)
        started = any(checkpoint.newest_first(path / folder.CHECKPOINTS))
        return grown, changes(folder.read_made_with(path), now, accept_changed_data) if started else []

    grown, problems = on_first(compare)
    number, skipped = load_newest(job.work, job.kind, path)
    if grown and job.finished():
        raise InputError(
            f"{path} has nothing left to search, so a larger budget ({', '.join(grown)}) changes nothing; "
            "start a new run with it"
        )

    def tidy() -> list[str]:
        lost = folder.drop_rounds(path, after=number)
        if grown:
            folder.extend(path, {name: after for name, (_, after) in grown.items()}, {"round": number, **grown})
        for name, content in {folder.MADE_WITH: dump_json(now), **({} if number else job.files)}.items():
            write_whole(path / name, content)
        return lost

    for problem in [*problems, *skipped, *on_first(tidy)]:
        warnings.warn(f"{problem}; resuming from round {number}", UserWarning, stacklevel=2)


def _grown_settings(job: Job, settings: Any, path: Path) -> dict[str, tuple[Any, Any]]:
    """The budgets that have grown since the run started, with both values; any other change is refused.

    A setting that the folder does not have is newer than the run.
    """
    before = dotted(job.upgrade(folder.read_config(path)))
    now = plain(settings)
    changed = {name: (before[name], now[name]) for name in sorted(now) if now[name] != before.get(name, now[name])}
    for name, values in changed.items():
        if name not in job.growing:
            raise InputError(f"{path} was started with another {name}; resume with the settings of its {folder.CONFIG}")
        if not _grows(*values):
            raise InputError(f"{path} was started with {name} {values[0]}; it can only be raised, not to {values[1]}")
    return changed


def _grows(before: Any, now: Any) -> bool:
    """Whether a limit has grown; None is no limit."""
    return before is not None and (now is None or now > before)


def _finish(job: Job, path: Path, log: RunLog | None) -> list[Entry]:
    """Compute and write the result, which may take a while: a selection, a pass over the test images."""
    rounds, started = on_first(lambda: folder.read_rounds(path)), time.monotonic()
    result = job.result(rounds)
    before = float(rounds[-1]["seconds"]) if rounds else 0.0
    result["rounds"] = int(rounds[-1]["number"]) if rounds else 0
    result["seconds"] = round(before + time.monotonic() - started, 3)
    on_first(lambda: folder.write_result(path, result))
    if log:
        _diagnostics.info("result written to %s", path / folder.RESULT)
        log.send("result", result)
    return rounds
