"""The frame of every experiment: jobs that each leave rows in `results.csv`, and sections that show the rows.

A job whose rows are there is not run again, so an experiment that was killed goes on where it was.
"""

import json
import platform
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from idarts._version import __version__
from idarts.engine.lock import locked, require_own
from idarts.errors import IdartsError, InputError, require_known
from idarts.experiments.store import Row, Store
from idarts.files import write_whole
from idarts.pages.experiment import Section, write_page
from idarts.pages.template import require_jinja
from idarts.searching.run import RunConfig, run

PRESETS = ("paper", "cpu", "smoke")
RESULTS = "results.csv"
_RECORD = "experiment.json"

Search = Callable[[RunConfig, Path, bool], object]  # settings, run folder, whether to resume


def search_here(settings: RunConfig, folder: Path, resume: bool) -> object:
    """A search in this process."""
    return run(settings, folder, resume=resume)


@dataclass(frozen=True)
class Request:
    """What a person asked for."""

    out: Path
    preset: str = "cpu"
    seeds: tuple[int, ...] = (1, 2, 3)
    tables: Path | None = None  # folder of the benchmark tables, else IDARTS_TABLES
    methods: tuple[str, ...] | None = None  # rows of table-1, else all
    equal_cost: bool = False
    search: Search = search_here
    parallel: int = 1  # jobs at a time; more than one needs a `search` that runs elsewhere

    def __post_init__(self) -> None:
        require_known("preset", self.preset, PRESETS)
        if not self.seeds or len(set(self.seeds)) < len(self.seeds):
            raise InputError(f"seeds are {self.seeds}, expected at least one, and each once")
        if self.methods and len(set(self.methods)) < len(self.methods):
            raise InputError(f"methods are {', '.join(self.methods)}, expected each once")


@dataclass(frozen=True)
class Job:
    """One thing to measure: its name, what it is measured with, and how; a later `stage` needs earlier ones' runs."""

    name: str
    settings: Mapping[str, object]
    measure: Callable[[], Sequence[Row]]
    stage: int = 0


@dataclass(frozen=True)
class Experiment:
    """An experiment: its jobs, and its rows as a person reads them."""

    summary: str
    columns: tuple[str, ...]
    jobs: Callable[[Request], Iterable[Job]]
    show: Callable[[list[Row], Request], list[Section]]


def conduct(name: str, experiment: Experiment, request: Request, tell: Callable[[str], None] = print) -> Path:
    """Run what is still to run, write the results after every job, and return the page; `tell` hears how it goes."""
    require_jinja()
    jobs = list(experiment.jobs(request))  # asks for its tables before anything is written
    with _claimed(name, request):
        store = Store(request.out / RESULTS, experiment.columns)
        todo = [job for job in jobs if not store.has(job.name, job.settings)]
        if len(todo) < len(jobs):
            tell(f"{len(jobs) - len(todo)} of {len(jobs)} jobs are done already")
        failed: list[str] = []
        for number, (job, rows) in enumerate(_measured(todo, request, tell), start=1):
            if isinstance(rows, Exception):
                failed.append(f"{job.name} ({rows})")
                tell(f"[{number}/{len(todo)}] {job.name} failed: {rows}")
                continue
            store.add(job.name, job.settings, rows)
            if request.parallel > 1:  # else it was named when it began
                tell(f"[{number}/{len(todo)}] {job.name}")
            _write(name, experiment, request, store)
        page = _write(name, experiment, request, store)
    if failed:
        raise IdartsError(f"{len(failed)} of {len(jobs)} jobs failed, first {failed[0]}; the same command tries again")
    return page


def _write(name: str, experiment: Experiment, request: Request, store: Store) -> Path:
    facts = f"preset {request.preset}, written {time.strftime('%Y-%m-%d %H:%M')}, idarts {__version__}"
    return write_page(request.out, name, experiment.summary, facts, experiment.show(store.rows, request))


def _measured(
    jobs: Sequence[Job], request: Request, tell: Callable[[str], None]
) -> Iterable[tuple[Job, Sequence[Row] | Exception]]:
    """Jobs with their rows or their errors, as they finish; a stage waits for the one before it."""
    if request.parallel == 1:
        for number, job in enumerate(sorted(jobs, key=lambda job: job.stage), start=1):
            tell(f"[{number}/{len(jobs)}] {job.name}")
            yield job, _attempt(job)
        return
    pool = ThreadPoolExecutor(request.parallel)
    try:
        for stage in sorted({job.stage for job in jobs}):
            futures = {pool.submit(_attempt, job): job for job in jobs if job.stage == stage}
            for future in as_completed(futures):
                yield futures[future], future.result()
    finally:  # at an interrupt, whoever gave us `search` stops what runs: nobody waits for it here
        pool.shutdown(wait=False, cancel_futures=True)


def _attempt(job: Job) -> Sequence[Row] | Exception:
    """One failure must not lose the others' time; a mistake in the request is every job's, and stops at once."""
    try:
        return job.measure()
    except InputError:
        raise
    except Exception as error:
        return error


@contextmanager
def _claimed(name: str, request: Request) -> Iterator[None]:
    """The folder, for this experiment and this process alone."""
    record: dict[str, Any] = {"experiment": name, "preset": request.preset, "equal_cost": request.equal_cost}
    path, elsewhere = request.out / _RECORD, "name a new folder with --out"
    require_own(request.out, _RECORD, "experiment")
    with locked(request.out, "experiment"):
        if path.exists():
            before = _read(path)
            other = next((key for key, value in record.items() if before.get(key) != value), None)
            if other:
                said = f"{other} {before.get(other)}, not {record[other]}"
                raise InputError(f"{request.out} holds results of {said}; {elsewhere}")
        else:
            record |= {"idarts": __version__, "torch": torch.__version__, "python": platform.python_version()}
            write_whole(path, f"{json.dumps(record, indent=1)}\n".encode())
        yield


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read ({error}); name a new folder with --out") from None
    return found if isinstance(found, dict) else {}
