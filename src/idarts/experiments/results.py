"""A sweep's `results.csv`: made anew from the run folders after every job, so that nothing can be in it twice."""

import csv
import io
import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from idarts.arch import as_text, parse
from idarts.arch.forms import RESULT
from idarts.engine.settings import change, dotted
from idarts.errors import InputError
from idarts.files import write_whole
from idarts.searching.run import RunConfig
from idarts.searching.settings import METHODS

RECORD, RESULTS = "sweep.json", "results.csv"
METRICS = ("train_loss", "train_accuracy", "valid_loss", "valid_accuracy", "entropy")
# Settings that say where and how a search ran, not what it was.
ELSEWHERE = ("data_root", "tables", "device", "checkpoint_rounds", "checkpoint_minutes", "log")
NAMED = ("method", "space", "seed")
_SPLITS = ("train", "valid", "test")

Row = dict[str, Any]


def write_results(out: Path) -> list[Row]:
    """The rows of all finished runs in a sweep's folder, written to its `results.csv`."""
    rows = [row(file.parent.name, read_result(file)) for file in sorted(out.glob(f"*/{RESULT}"))]
    rows.sort(key=lambda found: (found["space"], found["method"], found["settings"], found["seed"]))
    columns = list(dict.fromkeys(name for found in rows for name in found))
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_whole(out / RESULTS, text.getvalue().encode())
    return rows


def read_result(file: Path) -> dict[str, Any]:
    """What a finished run left."""
    try:
        found = json.loads(file.read_text())
        if isinstance(found["config"], dict) and found["architecture"]:
            return dict(found)
    except (OSError, ValueError, KeyError, TypeError):
        pass
    raise InputError(f"{file} is no search's result; delete its folder, and the search is run again")


def row(job: str, result: Mapping[str, Any]) -> Row:
    """One line of the table.

    >>> result = {"method": "darts", "space": "nas-bench-201", "seed": 3, "config": {"method": "darts", "batch": 8},
    ...     "architecture": "nas-bench-201:0", "table": {"cifar10": {"test": 93.5}}, "seconds": 2}
    >>> found = row("a", result)
    >>> found["settings"], found["cifar10_test"], found["architecture"][:6]
    ('{"batch": 8}', 93.5, '|avg_p')
    """
    metrics = result.get("metrics") or {}
    return {
        "job": job,
        **{name: result.get(name) for name in NAMED},
        "settings": json.dumps(_own(result["config"]), sort_keys=True),
        "architecture": as_text(parse(result["architecture"])),
        **{name: metrics.get(name) for name in METRICS},
        **{name: round(float(result.get(name, 0)), 1) for name in ("gradient_evaluations", "seconds")},
        **table_accuracies(result),
    }


def table_accuracies(result: Mapping[str, Any]) -> dict[str, float]:
    """The accuracies that a benchmark's table gives, in percent, by data set and split.

    >>> table_accuracies({"table": {"index": 3, "cifar10": {"valid": 90.0, "test": None}}})
    {'cifar10_valid': 90.0}
    >>> table_accuracies({"table": {"hash": "ab", "test": 93.5, "params": 7}})
    {'cifar10_test': 93.5}
    """
    table = result.get("table") or {}
    nested = {name: value for name, value in table.items() if isinstance(value, Mapping) and name != "architecture"}
    sets = nested or {"cifar10": table}  # NAS-Bench-101 knows no other
    found = {f"{data}_{split}": values.get(split) for data, values in sets.items() for split in _SPLITS}
    return {name: float(value) for name, value in found.items() if value is not None}


def _own(config: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that are neither defaults nor the method's own."""
    usual = change(RunConfig(), METHODS.get(str(config.get("method")), {}))
    defaults = dotted(json.loads(json.dumps(asdict(usual))))
    left_out = (*NAMED, *ELSEWHERE)
    return {
        name: value
        for name, value in dotted(config).items()
        if name not in left_out and defaults.get(name, value) != value
    }
