"""A search in a run folder: what `idarts search` does."""

import platform
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Unpack

import torch

from idarts._version import __version__
from idarts.arch import Architecture, as_text, to_data
from idarts.data import Batches
from idarts.data.content import used
from idarts.engine.folder import SPLIT
from idarts.engine.run import Job, Options, run_job
from idarts.searching.log import Log
from idarts.searching.loop import Search
from idarts.searching.prepare import named_parts, prepare
from idarts.searching.settings import RunConfig, upgrade
from idarts.searching.task import Task
from idarts.tables import find


@dataclass(frozen=True)
class SearchResult:
    """The selected architecture, the rounds of the search, and its run folder."""

    architecture: Architecture
    rounds: list[dict[str, Any]]
    path: Path


def run(settings: RunConfig, out: Path, **options: Unpack[Options]) -> SearchResult:
    """Search as the settings say, or resume a search, in the folder `out`.

    SIGINT and SIGTERM end the round, write a checkpoint, and raise `Interrupted`.
    """
    return run_search(lambda: task_of(settings), settings, out, **options)


def task_of(settings: RunConfig) -> tuple[Task, dict[str, Any]]:
    """The task that the settings name, and a description of its data.

    >>> task, _ = task_of(RunConfig(data="digits", depth=1, channels=4))
    >>> task.search().total
    100
    """
    table = find(settings.space, settings.tables)
    parts = named_parts(settings)
    return prepare(settings.space, parts, settings, table=table), parts.description


def run_search(
    start: Callable[[], tuple[Task, dict[str, Any]]], settings: RunConfig, out: Path, **options: Unpack[Options]
) -> SearchResult:
    """Give a search a folder; the search is prepared, seeded, once the folder is its own."""
    selected: list[Architecture] = []

    def job() -> Job:
        torch.manual_seed(settings.seed)
        task, description = start()
        search = task.search()

        def result(log: list[dict[str, Any]]) -> dict[str, Any]:
            selected.append(search.select())
            return _result(settings, search, selected[0], log, description)

        facts = {"choices": task.labels}
        return Job(search, Log(search).entry, result, facts=facts, files=_split(task), upgrade=upgrade)

    log = run_job(job, settings, out, **options)
    return SearchResult(selected[0], log, out)


def _split(task: Task) -> dict[str, bytes]:
    """The record of the images that the search uses, so that they are test images of no training after it."""
    parts = [stream.part for stream in (task.train, task.valid) if isinstance(stream, Batches)]
    split = used(parts[0], parts[1]) if len(parts) == 2 else None
    return {} if split is None else {SPLIT: split.to_bytes()}


def _result(
    settings: RunConfig,
    search: Search,
    architecture: Architecture,
    log: list[dict[str, Any]],
    description: dict[str, Any],
) -> dict[str, Any]:
    alphas = search.net.alpha.items() if search.shares_weights else ()
    streams = {"batches of train": len(search.task.train), "batches of valid": len(search.task.valid)}
    return {
        "space": settings.space,
        "method": settings.method,
        "seed": settings.seed,
        "architecture": to_data(architecture),
        "argmax": as_text(search.current()),  # what α alone stands for
        "trials": [tried._asdict() | {"architecture": as_text(tried.architecture)} for tried in search.tried],
        "alpha": {name: alpha.tolist() for name, alpha in alphas},
        "table": search.task.table.query(architecture) if search.task.table else None,
        "cost": search.cost.outcome(architecture, search.current()) if search.cost else None,
        "metrics": log[-1] if log else {},
        "gradient_evaluations": search.gradient_evaluations,
        "config": asdict(settings),
        "data": description or streams,
        "device": str(search.device),
        "versions": {"idarts": __version__, "python": platform.python_version(), "torch": torch.__version__},
    }
