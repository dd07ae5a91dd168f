"""What runs say side by side: groups of settings over seeds, paired tests, and what each cost brought."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations, zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from idarts.engine.folder import Floats, Run, as_float, read_run
from idarts.engine.settings import dotted
from idarts.errors import InputError
from idarts.experiments.results import ELSEWHERE, RECORD, table_accuracies
from idarts.experiments.statistics import Paired, paired

VALID = "valid_accuracy"
RECENT = 10  # rounds: the accuracy of a single batch says little
POINTS = 60  # of a curve
# What may differ from seed to seed at equal cost, and then makes no other setting.
_BUDGETS = ("rounds", "gradient_evaluations", "minutes", "epochs")

Key = tuple[str, ...]


@dataclass(frozen=True)
class Group:
    """Runs with the same settings, but for the seed."""

    name: str
    runs: list[Run]


@dataclass(frozen=True)
class Comparison:
    """Groups by `by`, judged by `measure` (percent, or a share), and what there is to say about the runs."""

    by: Key
    measure: str
    groups: list[Group]
    notes: list[str]


def compare(folders: Iterable[Path], by: Sequence[str] = (), measure: str | None = None) -> Comparison:
    """Read runs, or sweeps with many of them, and group them by settings; by default by all that differ."""
    runs, notes = _finished(folders)
    if len(runs) < 2:
        raise InputError(f"there is nothing to compare: {len(runs)} finished searches" + _first(notes))
    keys = tuple(by) or _differing(runs)
    for key in keys:
        if not any(key in flat(run) for run in runs):
            raise InputError(f"no run has a setting {key!r}; --by takes names such as method or hypergradient.terms")
    groups: dict[Key, list[Run]] = {}
    for run in runs:
        groups.setdefault(tuple(_text(key, flat(run).get(key)) for key in keys), []).append(run)
    members = [sorted(found, key=seed) for found in groups.values()]
    names = (None if by else _sweep_names(members)) or [" ".join(filter(None, key)) for key in groups]
    found = list(map(Group, names, members))
    measures = common_measures(runs)
    if measure is not None and measure not in measures:
        raise InputError(f"not all runs have {measure!r}; all have {', '.join(measures)}")
    judged = measure or measures[0]
    return Comparison(keys, judged, found, [*notes, *_warnings(found, runs, judged)])


def flat(run: Run) -> dict[str, Any]:
    """A run's settings by their dotted names."""
    return dotted(run.config)


def seed(run: Run) -> int:
    """The seed of a run."""
    return int(run.config.get("seed", 0))


def value(run: Run, measure: str) -> float:
    """What a run came to by a measure."""
    result = run.result or {}
    if measure == VALID:
        recent = run.series(VALID)[-RECENT:]
        return float(np.nanmean(recent)) if np.isfinite(recent).any() else float("nan")
    return as_float(table_accuracies(result).get(measure, result.get(measure)))


def common_measures(runs: Sequence[Run]) -> list[str]:
    """What all runs can be judged by: the table's accuracies, tests first, then that of the supernet."""
    tables = [table_accuracies(run.result or {}) for run in runs]
    shared = [name for name in tables[0] if all(name in table for table in tables)]
    return [*sorted(shared, key=lambda name: not name.endswith("_test")), VALID]


def pairs(comparison: Comparison) -> list[tuple[str, str, Paired]]:
    """Every two groups by their common seeds; several runs of a seed count by their mean, those without a value not."""
    by_seed = {group.name: _by_seed(group, comparison.measure) for group in comparison.groups}
    found = []
    for first, second in combinations(by_seed, 2):
        seeds = [number for number in by_seed[first] if number in by_seed[second]]
        columns = ([by_seed[name][number] for number in seeds] for name in (first, second))
        found.append((first, second, paired(*columns)))
    return found


def curve(run: Run) -> tuple[str, Floats, Floats] | None:
    """What a run had in hand at each cost: the table's accuracy of its cell, else the supernet's of recent rounds."""
    cost = run.series("gradient_evaluations")
    known = run.series("table_accuracy")
    name, values = ("table", known) if np.isfinite(known).any() else (VALID, _recent_means(run.series(VALID)))
    there = np.isfinite(cost) & np.isfinite(values)
    return (name, cost[there], values[there]) if there.any() else None


def curves(group: Group, kind: str) -> tuple[Floats, Floats] | None:
    """The costs that all of a group's runs reached, and each run's value there (a row each)."""
    found = [part for run in group.runs if (part := curve(run)) is not None and part[0] == kind]
    if not found:
        return None
    first, last = max(cost[0] for _, cost, _ in found), min(cost[-1] for _, cost, _ in found)
    costs = np.linspace(first, max(first, last), POINTS if last > first else 1)
    return costs, np.array([_held(costs, *part[1:]) for part in found])


def at_equal_cost(comparison: Comparison) -> tuple[str, float, dict[str, list[float]]] | str:
    """The largest cost that all runs reached, and what each run had then; or else why there is no such cost."""
    found = {group.name: [curve(run) for run in group.runs] for group in comparison.groups}
    every = [part for parts in found.values() for part in parts]
    whole = [part for part in every if part is not None]
    if len(whole) < len(every):
        return f"{len(every) - len(whole)} of {len(every)} runs have no accuracies by cost"
    if len({kind for kind, _, _ in whole}) > 1:
        return "a table knows the cells of some runs only"
    first, last = max(float(cost[0]) for _, cost, _ in whole), min(float(cost[-1]) for _, cost, _ in whole)
    if last < first:
        return f"one run had ended after {last:,.0f} gradient evaluations, another's first round took {first:,.0f}"
    spent = np.array([last])
    values = {name: [float(_held(spent, *part[1:])[0]) for part in parts if part] for name, parts in found.items()}
    return whole[0][0], last, values


def _held(at: Floats, cost: Floats, values: Floats) -> Floats:
    held: Floats = values[np.searchsorted(cost, at * (1 + 1e-12), side="right") - 1]
    return held


def _recent_means(values: Floats) -> Floats:
    windows = [values[max(0, end - RECENT) : end] for end in range(1, len(values) + 1)]
    return np.array([window[np.isfinite(window)].mean() if np.isfinite(window).any() else np.nan for window in windows])


def _finished(folders: Iterable[Path]) -> tuple[list[Run], list[str]]:
    """Finished searches, each once, and a word on what else there is."""
    runs: dict[Path, Run] = {}
    waiting: list[str] = []
    for folder in folders:
        members = _members(folder)
        for member in members:
            if not (member / "result.json").exists():
                waiting.append(member.name)
                continue
            run = read_run(member)
            if run.trains:
                raise InputError(f"{member} is a training; compare takes searches")
            runs[member.resolve()] = run
    return list(runs.values()), [f"Without a result yet, and left out: {_few(waiting)}."] if waiting else []


def _members(folder: Path) -> list[Path]:
    if (folder / "config.json").exists():
        return [folder]
    if not folder.is_dir():
        raise InputError(f"{folder} is not there; expected a run's folder, or a sweep's")
    begun = {file.parent.name for file in folder.glob("*/config.json")}
    planned = _planned(folder)
    if not begun and not planned:
        raise InputError(f"{folder} holds no run; expected a run's folder, or a sweep's")
    return [folder / name for name in sorted(begun | set(planned))]


def _differing(runs: Sequence[Run]) -> Key:
    """The settings that tell runs apart, but for the seed; what a method brings with it is told by its name."""
    settings = [flat(run) for run in runs]
    found = [key for key in ("space", "method") if _several(key, settings)]
    for key in dict.fromkeys(name for one in settings for name in one):
        if key in ("seed", "space", "method", *ELSEWHERE) or key.startswith("choices."):
            continue
        within = ("space", "method", "seed") if key in _BUDGETS else ("space", "method")
        places: dict[tuple[str, ...], list[dict[str, Any]]] = {}
        for one in settings:
            places.setdefault(tuple(str(one.get(name)) for name in within), []).append(one)
        if any(_several(key, members) for members in places.values()):
            found.append(key)
    return tuple(found) or ("method",)


def _sweep_names(groups: Sequence[Sequence[Run]]) -> list[str] | None:
    """What sweeps' files call the groups, without what all have in common; None where they have no name for each.

    Runs outside of sweeps have none, and those of sweeps that an older version put on record.
    """
    words = [{_words(run) for run in runs} for runs in groups]
    if any(len(found) > 1 or None in found for found in words):
        return None
    columns = zip_longest(*(found for (found,) in words if found), fillvalue="")
    differing = [column for column in columns if len(set(column)) > 1]
    names = [" ".join(filter(None, row)) for row in zip(*differing, strict=True)]
    return names if len(set(names)) == len(groups) else None


def _words(run: Run) -> Key | None:
    folder = run.folder.resolve()
    found = _planned(folder.parent).get(folder.name)
    return tuple(map(str, found)) if isinstance(found, list) else None


def _planned(folder: Path) -> dict[str, Any]:
    """A sweep's jobs by name, each with its parts: space, method, the grid's labels; an older record has no parts."""
    try:
        jobs = json.loads((folder / RECORD).read_text())["jobs"]
        return jobs if isinstance(jobs, dict) else dict.fromkeys(map(str, jobs))
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def _several(key: str, settings: Sequence[dict[str, Any]]) -> bool:
    return len({json.dumps(one.get(key)) for one in settings}) > 1


def _text(key: str, found: Any) -> str:
    return str(found) if key in ("method", "space", "data") else f"{key}={found}"


def _by_seed(group: Group, measure: str) -> dict[int, float]:
    values: dict[int, list[float]] = {}
    for run in group.runs:
        if np.isfinite(known := value(run, measure)):
            values.setdefault(seed(run), []).append(known)
    return {number: float(np.mean(found)) for number, found in values.items()}


def _warnings(groups: Sequence[Group], runs: Sequence[Run], measure: str) -> list[str]:
    found = []
    unknown = [run.folder.name for run in runs if not np.isfinite(value(run, measure))]
    if unknown:
        share = f"{len(unknown)} of {len(runs)} runs"
        found.append(f"Without a finite {measure}, and left out of its means and tests: {share}, {_few(unknown)}.")
    data = sorted({str(run.config.get("data")) for run in runs})
    if len(data) > 1:
        found.append(f"The runs are on different data ({', '.join(data)}): their accuracies do not measure the same.")
    if any(len({seed(run) for run in group.runs}) < len(group.runs) for group in groups):
        found.append("Some groups have several runs of a seed: their mean is paired; name more settings with --by.")
    return found


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _first(notes: Sequence[str]) -> str:
    return f" ({notes[0].rstrip('.')})" if notes else "; name runs, or a sweep's folder"
