"""The runner of every experiment: it runs the jobs that are not done, and writes the table and the page.

A job is done when its rows are in the table. The same call therefore continues an experiment that was stopped, killed
or failed in part, and no job runs twice.
"""

import re
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from idarts._version import __version__
from idarts.errors import IdartsError, InputError
from idarts.experiments.engines import Call, Engine, EngineError, StoppedError, slots, threads_each
from idarts.experiments.experiment import Experiment, Request
from idarts.experiments.jobs import Job, Outcome, SearchJob, Task, attempt, failed, work
from idarts.experiments.record import claimed, write_record
from idarts.experiments.runs import finished_run, is_finished
from idarts.experiments.store import RESULTS, Store
from idarts.files import make_parents
from idarts.pages.experiment import PAGE, write_page
from idarts.pages.template import require_jinja

LOGS = "logs"
RETRIES = 2
MEANINGLESS = "Preset smoke: a test that everything works. Its numbers mean nothing; do not compare or quote them."
_PAGES = 0.05  # share of the time, at most, for the pages before the last one

Tell = Callable[[str], None]
Watch = Callable[[], AbstractContextManager[Mapping[str, Any]]]  # the options of a search's `run`, such as `watch`
Ended = Iterator[tuple[Job, Outcome]]


class FailedJobsError(IdartsError):
    """Some jobs failed, for the reasons in `failures`; all others are done."""

    def __init__(self, failures: Mapping[str, Outcome], total: int, out: Path) -> None:
        self.failures = {name: str(outcome.failure) for name, outcome in failures.items()}
        first, reason = next(iter(self.failures.items()))
        super().__init__(
            f"{len(failures)} of {total} jobs failed, first {first} ({reason}); {out / LOGS} has the details, "
            "and the same command tries them again"
        )


def run_experiment(
    experiment: Experiment,
    request: Request,
    engine: Engine | None = None,
    *,
    jobs: int | None = None,
    threads: int | None = None,
    retries: int = RETRIES,
    tell: Tell = print,
    watch: Watch = lambda: nullcontext({}),
) -> Path:
    """Run the jobs of an experiment that are not done, and return its page. `tell` receives a line for each job.

    Without an engine the jobs run in this process, one after the other, and `watch` can show each search. With one, at
    most `jobs` run at a time (default: one for each core, or one on a GPU), each with `threads` (default: as
    `threads_each` says), and a job that dies is tried again `retries` times; a mistake in its settings is not. SIGTERM
    stops the experiment as Ctrl-C does. If jobs failed, a `FailedJobsError` at the end says which.
    """
    if experiment.show:
        require_jinja()
    plan = list(experiment.plan(request))  # checks the request, too, before anything is written
    book = _Book(experiment, request, plan)
    with claimed(experiment, request), _terminated_as_interrupted():
        todo = book.open()
        if len(todo) < len(plan):
            tell(f"{len(plan) - len(todo)} of {len(plan)} jobs are done already")
        if engine is None:
            book.take(_here(todo, request.out, tell, watch), len(todo), tell, announced=True)
        elif todo:
            jobs = jobs or min(slots(), len(plan))
            tell(f"jobs: {len(todo)}, {min(jobs, len(todo))} at a time; logs: {request.out / LOGS}")
            # The engine is left first: it stops the running jobs, and then the threads that wait for them end.
            with ThreadPoolExecutor(jobs) as pool, engine as call:
                attempts = _Attempts(call, request.out, threads or threads_each(jobs), retries, tell)
                book.take(_elsewhere(todo, pool, attempts), len(todo), tell)
        book.write_page()
    if book.warning:
        tell(book.warning)
    failures = list(book.failures.values())
    if len(failures) == len(plan) and not failures[0].again and len(set(failures)) == 1:
        raise InputError(failures[0].failure)  # the same mistake in all jobs is one of the request
    if failures:
        raise FailedJobsError(book.failures, len(plan), request.out)
    return request.out / PAGE


@dataclass
class _Book:
    """The table of an experiment, its page, and the jobs that failed."""

    experiment: Experiment
    request: Request
    plan: Sequence[Job]
    failures: dict[str, Outcome] = field(default_factory=dict)
    due: float = 0.0  # when the next page may be written

    def __post_init__(self) -> None:
        names = Counter(job.name for job in self.plan)
        if names and max(names.values()) > 1:
            raise InputError(f"the plan has {max(names, key=names.__getitem__)} twice; give every job its own name")

    def open(self) -> list[Job]:
        """Read the table, and list the jobs that must run. Rows of searches that are finished already are added."""
        out = self.request.out
        self.store = Store(out / RESULTS, self.experiment.columns, [job.name for job in self.plan])
        if self.experiment.from_folders:
            self.store.keep(lambda name: is_finished(out / name))
        for job in self.plan:
            self._require_same(job)
        write_record(self.experiment, self.request, self.plan)
        make_parents(out / LOGS / "job.log")
        for job in self.plan:
            if self.store.settings(job.name) is None and self._is_searched(job):
                self._add(job, Outcome())
        self.failures.clear()  # a damaged result is reported in its turn
        return sorted((job for job in self.plan if self.store.settings(job.name) is None), key=lambda job: job.stage)

    def _is_searched(self, job: Job) -> bool:
        return isinstance(job, SearchJob) and is_finished(self.request.out / job.folder)

    def _require_same(self, job: Job) -> None:
        """Refuse a folder in which a job was done, or its search started, with other settings."""
        before = self.store.settings(job.name)
        if before == job.settings:
            return
        if before is not None and not self._is_searched(job):
            raise InputError(
                f"{self.store.path} has {job.name} with other settings than now; name a new folder with --out"
            )
        # Another version may write the same settings as another text: the run folder decides.
        outcome = _attempted(job, self.request.out, lambda _: Outcome())
        if outcome.failure and not outcome.again:  # a damaged run folder is a failure of its job alone
            raise InputError(outcome.failure)

    def take(self, ended: Ended, total: int, tell: Tell, announced: bool = False) -> None:
        """Write the rows of jobs as they end."""
        for number, (job, outcome) in enumerate(ended, start=1):
            self._add(job, outcome)
            failure = self.failures.get(job.name)
            if failure or not announced:
                tell(f"[{number}/{total}] {job.name}" + (f" failed: {failure.failure}" if failure else ""))
            if time.monotonic() >= self.due:
                self.write_page()

    def _add(self, job: Job, outcome: Outcome) -> None:
        rows = outcome.rows or []
        if outcome.failure is None and isinstance(job, SearchJob):
            try:
                rows = list(self.experiment.rows(job, finished_run(self.request.out / job.folder), self.request))
            except Exception as error:  # one job must not lose the time of the others
                outcome = failed(error)
        if outcome.failure is None:
            self.store.add(job.name, job.settings, rows)
        else:
            self.failures[job.name] = outcome

    def write_page(self) -> None:
        """Write the page of all rows so far."""
        if self.experiment.show is None:
            return
        started = time.monotonic()
        facts = [f"preset {self.request.preset}"] if "preset" in self.experiment.fixed else []
        facts += [f"written {time.strftime('%Y-%m-%d %H:%M')}", f"idarts {__version__}"]
        sections = self.experiment.show(self.store.rows, self.request)
        write_page(
            self.request.out, self.experiment.name, self.experiment.summary, ", ".join(facts), sections, self.warning
        )
        self.due = time.monotonic() + (time.monotonic() - started) / _PAGES

    @property
    def warning(self) -> str:
        """What a reader of the numbers must know first."""
        smoke = "preset" in self.experiment.fixed and self.request.preset == "smoke"
        return MEANINGLESS if smoke else ""


def _here(todo: Sequence[Job], out: Path, tell: Tell, watch: Watch) -> Ended:
    """Jobs and their outcomes, one after the other in this process."""
    for number, job in enumerate(todo, start=1):
        tell(f"[{number}/{len(todo)}] {job.name}")
        with watch() if isinstance(job, SearchJob) else nullcontext({}) as options:
            outcome = _attempted(job, out, lambda task, options=options: attempt(task, options))  # type: ignore[misc]
        yield job, outcome


def _elsewhere(todo: Sequence[Job], pool: ThreadPoolExecutor, attempts: Callable[[Job], Outcome]) -> Ended:
    """Jobs and their outcomes as they end on an engine; a stage waits for the one before it."""
    for stage in sorted({job.stage for job in todo}):
        futures = {pool.submit(attempts, job): job for job in todo if job.stage == stage}
        for future in as_completed(futures):
            yield futures[future], future.result()


@dataclass(frozen=True)
class _Attempts:
    """Runs a job on an engine, again where that may help."""

    call: Call
    out: Path
    threads: int
    retries: int
    tell: Tell

    def __call__(self, job: Job) -> Outcome:
        for number in range(self.retries + 1):
            outcome = _attempted(job, self.out, self._work)
            if isinstance(job, SearchJob) and is_finished(self.out / job.folder):
                return Outcome()  # even if the worker died after that
            if outcome.failure is None or not outcome.again or number == self.retries:
                break
            self.tell(f"{job.name}: {outcome.failure}; trying again ({number + 1} of {self.retries})")
        return outcome

    def _work(self, task: Task) -> Outcome:
        try:
            outcome: Outcome = self.call(work, {**task, "threads": self.threads})
        except EngineError as error:
            return Outcome(str(error), again=not isinstance(error, StoppedError))
        return outcome


def _attempted(job: Job, out: Path, run: Callable[[Task], Outcome]) -> Outcome:
    """The outcome of a job's task, or why it has none."""
    log = out / LOGS / (re.sub(r"[^\w.=+-]+", "_", job.name) + ".log")
    try:
        task = job.task(out)
    except IdartsError as error:
        return failed(error)
    return run({**task, "log": str(log.resolve())})


@contextmanager
def _terminated_as_interrupted() -> Iterator[None]:
    """Both signals raise KeyboardInterrupt; a shell ignores SIGINT for what it starts in the background."""

    def stop(_: int, __: FrameType | None) -> None:
        raise KeyboardInterrupt

    try:
        before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    except ValueError:  # not in the main thread, which handles signals
        yield
        return
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
