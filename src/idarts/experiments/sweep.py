"""A sweep from its plan to its table: every job done or reported, each in a folder of its own, none of them twice."""

import json
import os
import signal
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from types import FrameType
from typing import Any

import torch

from idarts._version import __version__
from idarts.arch.forms import RESULT
from idarts.engine.folder import read_config
from idarts.engine.lock import locked, require_own
from idarts.engine.settings import dotted
from idarts.errors import InputError
from idarts.experiments.engines import Call, Engine, EngineError, StoppedError, local
from idarts.experiments.job import Outcome, Task, work
from idarts.experiments.plan import Plan
from idarts.experiments.results import RECORD, write_results
from idarts.files import write_whole
from idarts.searching.run import RunConfig

LOGS = "logs"
RETRIES = 2

Tell = Callable[[str], None]


def sweep(
    plan: Plan,
    out: Path,
    engine: Engine | None = None,
    *,
    jobs: int | None = None,
    threads: int | None = None,
    retries: int = RETRIES,
    tell: Tell = print,
) -> dict[str, str]:
    """Run what is left of a plan, and give the jobs that failed with the reason; the others are in `results.csv`.

    At most `jobs` run at a time (default: one a core, or one on a GPU), each with `threads` (default: as
    `threads_each` says). A job that dies is tried again, `retries` times; a mistake in its settings is not. SIGTERM
    stops it as Ctrl-C does. Call it again, and it goes on.

    >>> import tempfile
    >>> from idarts.experiments import plan
    >>> two = plan({"preset": "smoke", "methods": ["random-nas", "darts-first-order"], "settings": {"rounds": 1}})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     failed = sweep(two, Path(folder), tell=lambda line: None)
    ...     len(Path(folder, "results.csv").read_text().splitlines())  # a line of names, and one for each
    3
    >>> failed
    {}
    """
    jobs = jobs or min(slots(), len(plan.jobs))
    threads = threads or threads_each(jobs)
    with _claimed(out):
        _require_same(out, plan.jobs)
        _record(out, plan)
        todo = {name: settings for name, settings in plan.jobs.items() if not (out / name / RESULT).exists()}
        if len(todo) < len(plan.jobs):
            tell(f"{len(plan.jobs) - len(todo)} of {len(plan.jobs)} jobs are done already")
        tasks = {name: _task(out, name, settings, threads) for name, settings in todo.items()}
        write_results(out)
        if not tasks:
            return {}
        tell(f"jobs: {len(tasks)}, {min(jobs, len(tasks))} at a time; logs: {out / LOGS}")
        return _run(tasks, out, engine or local(), jobs, retries, tell)


def cores() -> int:
    """Those that this process may use.

    >>> cores() >= 1
    True
    """
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def threads_each(jobs: int) -> int:
    """Those of each of some jobs side by side: a share of the cores, but no more than OMP_NUM_THREADS asks for.

    >>> threads_each(10**6)
    1
    """
    asked = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    most = int(asked) if asked.isascii() and asked.isdigit() else cores()
    return max(1, min(cores() // jobs, most))


def slots() -> int:
    """How many searches this machine runs side by side: one a core, but only one where they would share a GPU.

    >>> 1 <= slots() <= cores()
    True
    """
    return 1 if torch.accelerator.is_available() else cores()


def _run(tasks: Mapping[str, Task], out: Path, engine: Engine, jobs: int, retries: int, tell: Tell) -> dict[str, str]:
    failed: dict[str, str] = {}
    # The engine is left first: it stops what runs, and only then can the threads that wait for it end.
    with terminated_as_interrupted(), ThreadPoolExecutor(jobs) as pool, engine as call:
        futures: dict[Future[str | None], str] = {
            pool.submit(_tried, call, task, retries, tell): name for name, task in tasks.items()
        }
        for number, future in enumerate(as_completed(futures), start=1):
            name, failure = futures[future], future.result()
            if failure is None:
                write_results(out)
            else:
                failed[name] = failure
            tell(f"[{number}/{len(tasks)}] {name}" + (f" failed: {failure}" if failure else ""))
    return failed


def _tried(call: Call, task: Task, retries: int, tell: Tell) -> str | None:
    """Why a job failed at last, or None."""
    for attempt in range(retries + 1):
        try:
            outcome: Outcome = call(work, task)
        except EngineError as error:
            outcome = Outcome(str(error), again=not isinstance(error, StoppedError))
        # A worker may die after the last word was written.
        if outcome.failure is None or Path(task["folder"], RESULT).exists():
            return None
        if not outcome.again or attempt == retries:
            break
        tell(f"{Path(task['folder']).name}: {outcome.failure}; trying again ({attempt + 1} of {retries})")
    return outcome.failure


def _task(out: Path, name: str, settings: RunConfig, threads: int) -> Task:
    log = out / LOGS / f"{name}.log"
    paths = {"folder": str((out / name).resolve()), "log": str(log.resolve())}
    return {**paths, "settings": asdict(settings), "threads": threads}


def _require_same(out: Path, jobs: Mapping[str, RunConfig]) -> None:
    """A folder whose run was begun with other settings is not this plan's; one that it did not know stood as usual."""
    for name, settings in jobs.items():
        file = out / name / "config.json"
        if not file.exists():
            continue
        try:
            before = read_config(out / name)
        except InputError:
            raise InputError(f"{file} cannot be read; delete its folder") from None
        now, before = _settings(asdict(settings)), _settings(asdict(RunConfig())) | _settings(before)
        other = next((key for key, value in now.items() if before[key] != value), None)
        if other:
            raise InputError(
                f"{out / name} was begun with another {other}; name a new folder with --out, or delete that one"
            )


def _settings(found: Mapping[str, Any]) -> dict[str, Any]:
    """By dotted names, as JSON has them."""
    return dotted(json.loads(json.dumps(found)))


def _record(out: Path, plan: Plan) -> None:
    """What is planned: `compare` tells jobs that wait, and calls settings as the plan does."""
    (out / LOGS).mkdir(exist_ok=True)
    record = {"idarts": __version__, "jobs": {name: plan.parts.get(name) for name in plan.jobs}}
    write_whole(out / RECORD, f"{json.dumps(record, indent=1)}\n".encode())


@contextmanager
def _claimed(out: Path) -> Iterator[None]:
    """The folder, for this sweep alone."""
    require_own(out, RECORD, "sweep")
    with locked(out, "sweep"):
        yield


@contextmanager
def terminated_as_interrupted() -> Iterator[None]:
    """SIGINT, too: where a shell began the sweep in the background, it is ignored unless someone asks for it."""

    def stop(_: int, __: FrameType | None) -> None:
        raise KeyboardInterrupt

    try:
        before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    except ValueError:  # not in the main thread: whoever is there handles signals
        yield
        return
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
