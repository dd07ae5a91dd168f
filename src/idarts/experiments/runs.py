"""Run folders as experiments see them: the only module here that reads them."""

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from idarts.engine.entries import Floats, as_float
from idarts.engine.folder import CONFIG, RESULT, Run, is_finished, read_config, read_run
from idarts.engine.lock import wait_until_free
from idarts.engine.paths import with_absolute_paths
from idarts.engine.settings import dotted
from idarts.errors import IdartsError, InputError
from idarts.searching import RunConfig, upgrade

__all__ = ["ELSEWHERE", "Floats", "Run", "as_float", "finished_run", "is_finished", "is_started", "last_cost"]
__all__ += ["other_setting", "read_run", "started_runs", "table_accuracies", "wait_until_free"]

PATIENCE = 60.0  # seconds for a run whose parent was killed to notice that, write a checkpoint and leave its folder
# Settings that say where and how a search ran, not what it was.
ELSEWHERE = ("data_root", "tables", "device", "checkpoint_rounds", "checkpoint_minutes", "log")
_SPLITS = ("train", "valid", "test")


def is_started(folder: Path) -> bool:
    """Whether a folder holds a run, finished or not."""
    return (folder / CONFIG).exists()


def started_runs(folder: Path) -> list[Path]:
    """The folders of the runs directly below a folder."""
    return sorted(file.parent for file in folder.glob(f"*/{CONFIG}"))


def finished_run(folder: Path) -> Run:
    """The finished search in a folder."""
    with suppress(InputError):
        run = read_run(folder)
        if run.result and isinstance(run.result.get("config"), dict) and run.result.get("architecture"):
            return run
    raise IdartsError(f"{folder / RESULT} cannot be read; delete {folder}, and the search runs again")


def last_cost(folder: Path, whole: bool = False) -> float:
    """The gradient evaluations that the rounds of a finished search took; with its selection, if `whole`."""
    result = finished_run(folder).result or {}
    return float((result if whole else result["metrics"])["gradient_evaluations"])


def other_setting(folder: Path, config: RunConfig) -> str | None:
    """The first setting in which the run in a folder differs from `config`, or None.

    An older version may not have known a setting: it then had today's default.
    """
    if not is_started(folder):
        return None
    before: dict[str, Any] = {}
    with suppress(InputError):
        before = upgrade(read_config(folder))
    if not before:
        raise IdartsError(f"{folder / CONFIG} cannot be read; delete {folder}, and the search runs again")
    known = _plain(asdict(RunConfig())) | _plain(before)
    typed, placed = _plain(asdict(config)), _plain(asdict(with_absolute_paths(config, folder)[0]))
    return next((name for name, value in typed.items() if known[name] not in (value, placed[name])), None)


def _plain(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings by their dotted names, as JSON has them."""
    return dotted(json.loads(json.dumps(settings)))


def table_accuracies(result: Mapping[str, Any]) -> dict[str, float]:
    """The accuracies that a benchmark's table gives, in percent, by data set and split.

    >>> table_accuracies({"table": {"index": 3, "cifar10": {"valid": 90.0, "test": None}}})
    {'cifar10_valid': 90.0}
    >>> table_accuracies({"table": {"hash": "ab", "test": 93.5, "params": 7}})
    {'cifar10_test': 93.5}
    """
    table = result.get("table") or {}
    nested = {name: value for name, value in table.items() if isinstance(value, Mapping) and name != "architecture"}
    sets = nested or {"cifar10": table}  # a table of one data set does not name it
    values = {f"{data}_{split}": known.get(split) for data, known in sets.items() for split in _SPLITS}
    return {name: float(value) for name, value in values.items() if value is not None}
