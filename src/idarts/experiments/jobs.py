"""Jobs as plain data that every engine can run: a search in its folder, or a call of a function."""

import traceback
from collections.abc import Callable, Iterable, Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import torch

from idarts.engine.settings import change, dotted, settings_of
from idarts.errors import InputError
from idarts.experiments.runs import PATIENCE, is_finished, is_started, last_cost, other_setting, wait_until_free
from idarts.experiments.store import digest
from idarts.files import open_safely
from idarts.searching import RunConfig, run

Task = dict[str, Any]  # plain data: a job as `work` needs it


@dataclass(frozen=True)
class Job:
    """One measurement of an experiment; a later `stage` starts when the jobs of the earlier ones have ended.

    `settings` is the text of that column: rows that were made with another one are not taken for this job's. Unless
    given, it is a digest of the search's settings, or of the function's arguments.
    """

    name: str
    settings: str = ""
    stage: int = 0
    facts: Mapping[str, Any] = field(default_factory=dict)  # for the experiment's own use, such as columns of the rows
    words: tuple[str, ...] = ()  # parts of the name, without the seed: `compare` names its groups by them

    def task(self, out: Path) -> Task:
        """The job as plain data; `out` is the experiment's folder."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class SearchJob(Job):
    """A search in a `folder` below the experiment's.

    `like` names the folder of a search of an earlier stage: this one's rounds end after as many gradient evaluations.
    Both pay for their selections on top of that: the cost of one selection must not give the other more rounds. With
    `whole`, the cost of the other's selection is part of the budget, for a search without a selection.
    """

    config: RunConfig
    folder: str
    like: str | None = None
    whole: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "settings", self.settings or digest(asdict(self.config)))

    def task(self, out: Path) -> Task:
        """Settings and folder; an error if the folder has a search with other settings."""
        folder = out / self.folder
        config = self.config if self.like is None else at_cost(self.config, last_cost(out / self.like, self.whole))
        other = other_setting(folder, config)
        if other:
            raise InputError(
                f"{folder} was searched with another {other}; name a new folder with --out, or delete that one"
            )
        return {"config": asdict(config), "folder": str(folder.resolve())}


@dataclass(frozen=True, kw_only=True)
class FunctionJob(Job):
    """A call of a module-level function with plain arguments, which returns rows."""

    function: Callable[..., Iterable[Mapping[str, Any]]]
    arguments: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "settings", self.settings or digest(self.arguments))

    def task(self, out: Path) -> Task:
        """The function and its arguments."""
        return {"function": self.function, "arguments": dict(self.arguments)}


def at_cost(config: RunConfig, gradient_evaluations: float) -> RunConfig:
    """The same search, but its rounds end by their gradient evaluations; a round costs at least one.

    >>> at_cost(RunConfig(), 250.5).rounds
    251
    """
    return replace(config, rounds=int(gradient_evaluations) + 1, gradient_evaluations=gradient_evaluations)


class Outcome(NamedTuple):
    """How a job ended: with the rows of a function, or with a `failure`; `again` says whether a retry may help."""

    failure: str | None = None
    again: bool = True
    rows: list[Mapping[str, Any]] | None = None


def work(task: Task) -> Outcome:
    """Run a task in a separate process: everything that it prints goes to the task's log."""
    torch.set_num_threads(task["threads"])
    with open_safely(Path(task["log"]), "a") as log, redirect_stdout(log), redirect_stderr(log):
        try:
            return attempt(task)
        except KeyboardInterrupt:
            return Outcome("it was stopped")


def attempt(task: Task, options: Mapping[str, Any] | None = None) -> Outcome:
    """Run a task; a failure goes to the task's log with its traceback. `options` are those of a search's `run`."""
    try:
        if "function" in task:
            return Outcome(rows=list(task["function"](**task["arguments"])))
        _search(task, options or {})
        return Outcome()
    except Exception as error:
        with open_safely(Path(task["log"]), "a") as log:
            traceback.print_exc(file=log)
        return failed(error)


def failed(error: Exception) -> Outcome:
    """A failure in one line; a mistake in the settings stays one, so it is not tried again."""
    reason = " ".join(str(error).split()) or type(error).__name__
    return Outcome(reason, again=not isinstance(error, InputError))


def _search(task: Task, options: Mapping[str, Any]) -> None:
    """Start a search, resume it, or find it finished."""
    folder = Path(task["folder"])
    if is_finished(folder):
        return
    wait_until_free(folder, PATIENCE)
    _load_parts(task["config"])
    run(change(RunConfig(), task["config"]), folder, resume=is_started(folder), **options)


def _load_parts(settings: Mapping[str, Any]) -> None:
    """Import a user's own parts in this process, too; the process that planned the job has accepted them."""
    values = dotted(settings)
    for setting in settings_of(RunConfig):
        value, registry = values.get(setting.name), setting.registry
        if registry is not None and isinstance(value, str) and ":" in value and value not in registry:
            registry.load(value)
