"""Searches as jobs of an experiment: settings from the presets, a run folder each, accuracies from the tables."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from idarts.arch import Architecture, parse
from idarts.arch.forms import RESULT
from idarts.engine.folder import read_config
from idarts.engine.settings import change
from idarts.errors import IdartsError, InputError
from idarts.experiments.frame import Job, Request
from idarts.experiments.paper.published import COLUMNS, DATASETS, SPLITS
from idarts.experiments.store import Row
from idarts.searching.presets import PRESETS
from idarts.searching.run import RunConfig
from idarts.searching.settings import METHODS
from idarts.tables import Table

NAS_BENCH_201, SPACE_3 = "nas-bench-201", "nas-bench-1shot1-s3"
COST = ("gradient_evaluations", "seconds")
_PAPERS = {NAS_BENCH_201: "nas-bench-201-paper", SPACE_3: "nas-bench-1shot1-paper"}
# Enough to see that everything fits together, and no more.
_TINY: dict[str, Any] = {
    "rounds": 2,
    "batch": 8,
    "channels": 5,
    "checkpoint_rounds": 1,
    "hypergradient": {"step": 0.01, "samples": 2},  # γ from the curvature would take longest
    "selection": {"samples": 3, "batches": 1},
}

# Where α's way is looked at, α alone decides, as in the paper; trials would hide what a setting does to it.
BY_ALPHA: dict[str, Any] = {"selection": {"rule": "argmax"}}

Layer = Mapping[str, Any]


def layers(request: Request, space: str, method: str, changes: Layer) -> list[Layer]:
    """What a search's settings are made of, each above the one before: a method's own words stand above a preset's."""
    if method not in METHODS:
        raise IdartsError(f"this version has no method {method!r}; it has {', '.join(METHODS)}")
    preset = _PAPERS[space] if request.preset == "paper" else request.preset
    tiny = _TINY if request.preset == "smoke" else {}
    return [PRESETS[preset], tiny, METHODS[method], {"space": space, "method": method}, changes]


def settings(request: Request, space: str, method: str, seed: int, changes: Layer) -> RunConfig:
    """The settings of one search, at equal epochs: the more training batches a round takes, the fewer rounds.

    >>> request = Request(Path("out"), preset="paper")
    >>> [settings(request, "nas-bench-201", method, 1, {}).rounds for method in ("idarts", "darts", "gdas")]
    [3900, 9750, 19500]
    """
    result, preset = RunConfig(seed=seed), RunConfig()
    found = layers(request, space, method, changes)
    for layer in found:
        result = change(result, dict(layer))
    for layer in found[:2]:
        preset = change(preset, dict(layer))
    rounds = round(preset.rounds * preset.batches_a_round / result.batches_a_round)
    return replace(result, rounds=max(1, rounds))


def at_cost(config: RunConfig, gradient_evaluations: float) -> RunConfig:
    """The same search, its rounds ended by their gradient evaluations; a round costs at least one.

    >>> at_cost(RunConfig(), 250.5).rounds
    251
    """
    return replace(config, rounds=int(gradient_evaluations) + 1, gradient_evaluations=gradient_evaluations)


def searched(request: Request, label: str, config: RunConfig) -> tuple[dict[str, Any], Path]:
    """A run's result and folder; it is searched, or gone on with, where it is not finished."""
    folder = request.out / "runs" / f"{label}-{config.seed}"
    if not (folder / RESULT).exists():
        request.search(config, folder, _begun(folder))
    try:
        result = json.loads((folder / RESULT).read_text())
        before = dict(result["config"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise IdartsError(f"{folder / RESULT} cannot be read ({error!r}); delete {folder}") from None
    now = json.loads(json.dumps(asdict(config)))
    other = next((name for name in now if name in before and now[name] != before[name]), None)
    if other:
        raise InputError(f"{folder} was searched with another {other}; name a new folder with --out")
    return result, folder


def _begun(folder: Path) -> bool:
    """Whether there is a run to go on with; one whose settings are damaged is an error of its job alone."""
    if not (folder / "config.json").exists():
        return False
    try:
        if read_config(folder):
            return True
    except InputError:
        pass
    raise IdartsError(f"{folder / 'config.json'} cannot be read; delete {folder}")


def search_jobs(
    request: Request,
    space: str,
    label: str,
    changes: Layer,
    rows: Callable[[dict[str, Any], Path, int], Sequence[Row]],
    method: str = "idarts",
    like: str | None = None,
) -> list[Job]:
    """One job for each seed; `like` names the label whose run of the same seed sets the rounds' gradient evaluations.

    Both pay for their selections on top of that: a rule's cost is no reason for the other to have more rounds.
    """

    def job(seed: int) -> Job:
        def measure() -> Sequence[Row]:
            config = settings(request, space, method, seed, changes)
            if like:
                other = json.loads((request.out / "runs" / f"{like}-{seed}" / RESULT).read_text())
                config = at_cost(config, other["metrics"]["gradient_evaluations"])  # of the last round
            result, folder = searched(request, label, config)
            return rows(result, folder, seed)

        made_of = {"layers": _known_layers(request, space, method, changes), "like": like and f"rounds of {like}"}
        return Job(f"{label}-{seed}", made_of, measure, stage=1 if like else 0)

    return [job(seed) for seed in request.seeds]


def _known_layers(request: Request, space: str, method: str, changes: Layer) -> list[Layer]:
    """An unknown method is an error of its job, not of the experiment."""
    return layers(request, space, method, changes) if method in METHODS else []


def found_cell(result: Mapping[str, Any]) -> Architecture:
    """The architecture in a run's result."""
    return parse(result["architecture"])


def accuracies(table: Table, architecture: Any) -> Row:
    """All that Table 1 prints of a cell, by the table."""
    found = table.query(architecture)
    values = {f"{dataset}_{split}": found[dataset][split] for dataset in DATASETS for split in SPLITS}
    return {name: values[name] for name in COLUMNS}


def cost(result: Mapping[str, Any]) -> Row:
    """What a search cost."""
    return {name: round(float(result[name]), 1) for name in COST}
