"""A search in a run folder: what `idarts search` does."""

import platform
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Unpack

import torch

from idarts._version import __version__
from idarts.arch import Architecture, as_text, to_data
from idarts.data import Batches, streams_digest
from idarts.data.content import used
from idarts.engine.folder import SPLIT, is_run, read_config
from idarts.engine.paths import with_absolute_paths
from idarts.engine.run import Job, Options, run_job
from idarts.searching.legacy import upgrade
from idarts.searching.log import Log
from idarts.searching.loop import Search
from idarts.searching.prepare import named_parts, prepare
from idarts.searching.round import spread
from idarts.searching.settings import RunConfig
from idarts.searching.strategies.gradient import Stepping
from idarts.searching.task import Task
from idarts.searching.verdict import Verdict, verdict
from idarts.tables import find

BUDGETS = ("rounds", "epochs", "minutes", "gradient_evaluations")  # a resumed search may have more of them


@dataclass(frozen=True)
class SearchResult:
    """The selected architecture, the rounds of the search, its run folder, and whether α decided."""

    architecture: Architecture
    rounds: list[dict[str, Any]]
    path: Path
    verdict: Verdict | None = None  # None for a strategy that does not step α


def run(settings: RunConfig, out: Path, **options: Unpack[Options]) -> SearchResult:
    """Search as the settings say, or resume a search, in the folder `out`.

    SIGINT and SIGTERM end the round, write a checkpoint, and raise `Interrupted`.
    """
    placed, typed = with_absolute_paths(settings, out, options.get("resume", False))
    facts = {"typed": typed} if typed else {}
    return run_search(lambda recorded: task_of(placed, recorded), placed, out, facts, **options)


def task_of(settings: RunConfig, recorded: Mapping[str, Any] | None = None) -> tuple[Task, dict[str, Any]]:
    """The task that the settings name, and a description of its data.

    >>> task, _ = task_of(RunConfig(data="digits", depth=1, channels=4))
    >>> task.search().total
    100
    """
    table = find(settings.space, settings.tables)
    parts = named_parts(settings)
    return prepare(settings.space, parts, settings, table=table, recorded=recorded), parts.description


Start = Callable[[Mapping[str, Any]], tuple[Task, dict[str, Any]]]


def run_search(
    start: Start, settings: RunConfig, out: Path, facts: Mapping[str, Any] | None = None, **options: Unpack[Options]
) -> SearchResult:
    """Give a search a folder; the search is prepared, seeded, once the folder is its own.

    `start` gets the sizes that the run in the folder has recorded, if there is one; `facts` are written beside the
    settings.
    """
    selected: list[tuple[Architecture, Verdict | None]] = []

    def job() -> Job:
        torch.manual_seed(settings.seed)
        before = {} if options.get("overwrite") or not is_run(out) else read_config(out)
        task, description = start(before.get("resolved") or {})
        search = task.search()

        def result(log: list[dict[str, Any]]) -> dict[str, Any]:
            architecture, judged = search.select(), _verdict(search, log)
            selected.append((architecture, judged))
            return {**_result(settings, search, architecture, log, description), "verdict": judged and judged.to_data()}

        written = {**(facts or {}), "choices": task.labels, "resolved": _resolved(search)}
        written |= {"table_measure": task.table.measure} if task.table else {}
        return Job(
            search,
            Log(search).entry,
            result,
            facts=written,
            data=streams_digest(task.train, task.valid),
            files=_split(task),
            upgrade=upgrade,
            growing=_growing(settings, search),
            finished=lambda: search.finished,
        )

    log = run_job(job, settings, out, **options)
    architecture, judged = selected[0]
    return SearchResult(architecture, log, out, judged)


def _resolved(search: Search) -> dict[str, Any]:
    """What `auto` became, for config.json."""
    strategy, sizes = search.strategy, search.task.sizes
    if isinstance(strategy, Stepping) and strategy.automatic:
        return {**sizes, "alpha.rate": strategy.alpha_rate()}
    return dict(sizes)


def _verdict(search: Search, log: list[dict[str, Any]]) -> Verdict | None:
    """Whether α decided, by its path since it started afresh, among the options that the last stage began with.

    A rule that lets options leave has none to compare at the end.
    """
    if not search.strategy.steps_alpha:
        return None
    first = search.stage
    while first and search.stages[first].keep_alpha:
        first -= 1
    path = [entry["alpha"] for entry in log if entry.get("alpha") and (entry.get("stage") or 1) > first]
    tried = len({as_text(tried.architecture) for tried in search.tried})
    return verdict(*spread(dict(search.net.alpha.items()), search.entered), path, search.entered, tried)


def _growing(settings: RunConfig, search: Search) -> tuple[str, ...]:
    """The budgets that a resume may extend: with epochs, rounds have no effect; a stage that has ended cannot grow."""
    if len(search.stages) > 1:
        return ()
    return BUDGETS if settings.epochs is None else BUDGETS[1:]


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
        "argmax": as_text(search.current()),  # what α alone selects
        "trials": [tried._asdict() | {"architecture": as_text(tried.architecture)} for tried in search.tried],
        "alpha": {name: alpha.tolist() for name, alpha in alphas},
        "table": search.task.table.query(architecture) if search.task.table else None,
        "table_accuracy": search.task.table_accuracy(architecture),  # the one of its accuracies that every round logs
        "cost": search.cost.outcome(architecture, search.current()) if search.cost else None,
        "metrics": log[-1] if log else {},
        "gradient_evaluations": search.gradient_evaluations,
        "config": asdict(settings),
        "data": description or streams,
        "device": str(search.device),
        "versions": {"idarts": __version__, "python": platform.python_version(), "torch": torch.__version__},
    }
