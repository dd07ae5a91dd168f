"""Runs side by side: groups of settings over seeds, paired tests, and accuracies at equal cost."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations, zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from idarts.engine.settings import dotted
from idarts.errors import InputError
from idarts.experiments.record import planned_jobs
from idarts.experiments.runs import (
    ELSEWHERE,
    Floats,
    Run,
    as_float,
    is_finished,
    is_started,
    read_run,
    started_runs,
    table_accuracies,
)
from idarts.experiments.statistics import Paired, paired
from idarts.searching import FACTS

VALID = "valid_accuracy"
RECENT = 10  # rounds: the accuracy of a single batch is too noisy
POINTS = 60  # of a curve
# Settings that may differ from seed to seed at equal cost, and then do not make another group.
_BUDGETS = ("rounds", "gradient_evaluations", "minutes", "epochs")

Key = tuple[str, ...]
Curve = tuple[str, Floats, Floats]  # the kind of accuracy, the costs, and the accuracy at each


@dataclass(frozen=True)
class Group:
    """Runs with the same settings, except for the seed."""

    name: str
    runs: list[Run]


@dataclass(frozen=True)
class Comparison:
    """Groups by the settings `by`, judged by `measure` (percent, or a share), with notes on the runs."""

    by: Key
    measure: str
    groups: list[Group]
    notes: list[str]


def compare(folders: Iterable[Path], by: Sequence[str] = (), measure: str | None = None) -> Comparison:
    """Read runs, or sweeps of runs, and group them by settings; by default by all that differ."""
    runs, notes = _finished(folders)
    if len(runs) < 2:
        reason = f" ({notes[0].rstrip('.')})" if notes else "; name runs, or a sweep's folder"
        raise InputError(f"there is nothing to compare: {len(runs)} finished searches{reason}")
    keys = tuple(by) or _differing(runs)
    for key in keys:
        if not any(key in flat(run) for run in runs):
            raise InputError(f"no run has a setting {key!r}; --by takes names such as method or hypergradient.terms")
    by_key: dict[Key, list[Run]] = {}
    for run in runs:
        by_key.setdefault(tuple(_text(key, flat(run).get(key)) for key in keys), []).append(run)
    members = [sorted(group, key=seed) for group in by_key.values()]
    names = (None if by else _sweep_names(members)) or [" ".join(filter(None, key)) for key in by_key]
    groups = list(map(Group, names, members))
    measures = common_measures(runs)
    if measure is not None and measure not in measures:
        raise InputError(f"not all runs have {measure!r}; all have {', '.join(measures)}")
    judged = measure or _usual_measure(runs, measures)
    if measure is None and judged == VALID and (some := [run for run in runs if table_accuracies(run.result or {})]):
        notes.append(f"Only {len(some)} of {len(runs)} runs have accuracies by a table, so {VALID} is tested.")
    return Comparison(keys, judged, groups, [*notes, *_warnings(groups, runs, judged)])


def flat(run: Run) -> dict[str, Any]:
    """A run's settings by their dotted names."""
    return dotted({name: value for name, value in run.config.items() if name not in FACTS})


def seed(run: Run) -> int:
    """The seed of a run."""
    return int(run.config.get("seed", 0))


def value(run: Run, measure: str) -> float:
    """The value of a run by a measure."""
    result = run.result or {}
    if measure == VALID:
        recent = run.series(VALID)[-RECENT:]
        return float(np.nanmean(recent)) if np.isfinite(recent).any() else float("nan")
    return as_float(table_accuracies(result).get(measure, result.get(measure)))


def common_measures(runs: Sequence[Run]) -> list[str]:
    """The measures that all runs have: the table's accuracies, tests first, then that of the supernet."""
    tables = [table_accuracies(run.result or {}) for run in runs]
    shared = [name for name in tables[0] if all(name in table for table in tables)]
    return [*sorted(shared, key=lambda name: not name.endswith("_test")), VALID]


def _usual_measure(runs: Sequence[Run], shared: Sequence[str]) -> str:
    """The first measure that all runs have by a table or, if some have none, that most have: those are left out."""
    if shared[0] != VALID:
        return shared[0]
    known = [name for run in runs for name in table_accuracies(run.result or {})]
    most = [name for name in dict.fromkeys(known) if 2 * known.count(name) > len(runs)]
    return min(most, key=lambda name: not name.endswith("_test"), default=VALID)


def pairs(comparison: Comparison) -> list[tuple[str, str, Paired]]:
    """Tests of every two groups on their common seeds; several runs of a seed count as one, by their mean."""
    by_seed = {group.name: _by_seed(group, comparison.measure) for group in comparison.groups}
    tests = []
    for first, second in combinations(by_seed, 2):
        seeds = [number for number in by_seed[first] if number in by_seed[second]]
        columns = ([by_seed[name][number] for number in seeds] for name in (first, second))
        tests.append((first, second, paired(*columns)))
    return tests


def curve(run: Run) -> Curve | None:
    """The accuracy of a run at each cost: that of its cell by the table, else the supernet's over recent rounds.

    A selection may return another cell than that of the last round: by the table, this is one more point.
    """
    cost = run.series("gradient_evaluations")
    known = run.series("table_accuracy")
    name, values = ("table", known) if np.isfinite(known).any() else (VALID, _recent_means(run.series(VALID)))
    if name == "table":
        cost = np.append(cost, value(run, "gradient_evaluations"))
        values = np.append(values, value(run, "table_accuracy"))  # NaN for a run of an earlier version
    there = np.isfinite(cost) & np.isfinite(values)
    return (name, cost[there], values[there]) if there.any() else None


def curves(group: Group, kind: str) -> tuple[Floats, Floats] | None:
    """Costs up to the mean cost of a group's runs, and the value of each run there (one row a run).

    A run that ended earlier keeps its last value: its architecture is there at any higher cost. At the mean cost, every
    run has its last value, so that the end of the curve is what the runs returned.
    """
    known = [(run, part) for run in group.runs if (part := curve(run)) is not None and part[0] == kind]
    if not known:
        return None
    parts = [part for _, part in known]
    first, last = _common_costs(parts)[0], float(np.mean([_cost(run, part) for run, part in known]))
    costs = np.linspace(first, max(first, last), POINTS if last > first else 1)
    return costs, np.array([[*_held(costs[:-1], part), part[2][-1]] for part in parts])


def at_equal_cost(comparison: Comparison) -> tuple[str, float, dict[str, list[float]]] | str:
    """The largest cost that all runs reached, and the value of each run there; or the reason why there is none."""
    by_group = {group.name: [curve(run) for run in group.runs] for group in comparison.groups}
    every = [part for parts in by_group.values() for part in parts]
    known = [part for part in every if part is not None]
    if len(known) < len(every):
        return f"{len(every) - len(known)} of {len(every)} runs have no accuracies by cost"
    if len({kind for kind, _, _ in known}) > 1:
        return "the table has the cells of only some runs"
    first, last = _common_costs(known)
    if last < first:
        return f"one run ended after {last:,.0f} gradient evaluations, but the first round of another took {first:,.0f}"
    spent = np.array([last])
    values = {name: [float(_held(spent, part)[0]) for part in parts if part] for name, parts in by_group.items()}
    return known[0][0], last, values


def _common_costs(parts: Sequence[Curve]) -> tuple[float, float]:
    """The first and the last cost that all curves have."""
    return max(float(cost[0]) for _, cost, _ in parts), min(float(cost[-1]) for _, cost, _ in parts)


def _cost(run: Run, part: Curve) -> float:
    """What a run cost in all, its selection included."""
    spent = value(run, "gradient_evaluations")
    return spent if np.isfinite(spent) else float(part[1][-1])


def _held(at: Floats, part: Curve) -> Floats:
    """The latest value of a curve at some costs."""
    _, cost, values = part
    held: Floats = values[np.searchsorted(cost, at * (1 + 1e-12), side="right") - 1]
    return held


def _recent_means(values: Floats) -> Floats:
    windows = [values[max(0, end - RECENT) : end] for end in range(1, len(values) + 1)]
    return np.array([window[np.isfinite(window)].mean() if np.isfinite(window).any() else np.nan for window in windows])


def _finished(folders: Iterable[Path]) -> tuple[list[Run], list[str]]:
    """Finished searches, each once, and notes on the others and on damage."""
    runs: dict[Path, Run] = {}
    waiting: list[str] = []
    notes: list[str] = []
    for member in (member for folder in folders for member in _members(folder)):
        if not is_finished(member):
            waiting.append(member.name)
            continue
        try:
            run = read_run(member)
        except InputError as error:
            notes.append(f"Damaged, and left out: {member.name} ({error}).")
            continue
        if run.trains:
            raise InputError(f"{member} is a training; compare takes searches")
        notes += [f"{member.name}: {problem}." for problem in run.problems]
        runs[member.resolve()] = run
    if waiting:
        notes.insert(0, f"Without a result yet, and left out: {_few(waiting)}.")
    return list(runs.values()), notes


def _members(folder: Path) -> list[Path]:
    """The run in a folder, or the runs of a sweep, those that have not started, too."""
    if is_started(folder):
        return [folder]
    if not folder.is_dir():
        raise InputError(f"{folder} does not exist; expected a run's folder, or a sweep's")
    names = {run.name for run in started_runs(folder)} | set(planned_jobs(folder))
    if not names:
        raise InputError(f"{folder} holds no run; expected a run's folder, or a sweep's")
    return [folder / name for name in sorted(names)]


def _differing(runs: Sequence[Run]) -> Key:
    """The settings in which runs differ, except for the seed; those that only follow from the method are left out."""
    settings = [flat(run) for run in runs]
    keys = [key for key in ("space", "method") if _several(key, settings)]
    for key in dict.fromkeys(name for one in settings for name in one):
        if key in ("seed", "space", "method", *ELSEWHERE) or key.startswith("choices."):
            continue
        within = ("space", "method", "seed") if key in _BUDGETS else ("space", "method")
        places: dict[Key, list[dict[str, Any]]] = {}
        for one in settings:
            places.setdefault(tuple(str(one.get(name)) for name in within), []).append(one)
        if any(_several(key, members) for members in places.values()):
            keys.append(key)
    return tuple(keys) or ("method",)


def _sweep_names(groups: Sequence[Sequence[Run]]) -> list[str] | None:
    """The names that the sweeps' files give the groups, without the parts that all share; None if some have no name.

    Runs outside of sweeps have none, and neither do those of sweeps by an early version.
    """
    words = [{_words(run) for run in runs} for runs in groups]
    if any(len(names) > 1 or None in names for names in words):
        return None
    columns = zip_longest(*(names for (names,) in words if names), fillvalue="")
    differing = [column for column in columns if len(set(column)) > 1]
    joined = [" ".join(filter(None, row)) for row in zip(*differing, strict=True)]
    return joined if len(set(joined)) == len(groups) else None


def _words(run: Run) -> Key | None:
    folder = run.folder.resolve()
    words = planned_jobs(folder.parent).get(folder.name)
    return tuple(map(str, words)) if isinstance(words, list) else None


def _several(key: str, settings: Sequence[dict[str, Any]]) -> bool:
    return len({json.dumps(one.get(key)) for one in settings}) > 1


def _text(key: str, setting: Any) -> str:
    return str(setting) if key in ("method", "space", "data") else f"{key}={setting}"


def _by_seed(group: Group, measure: str) -> dict[int, float]:
    values: dict[int, list[float]] = {}
    for run in group.runs:
        if np.isfinite(known := value(run, measure)):
            values.setdefault(seed(run), []).append(known)
    return {number: float(np.mean(known)) for number, known in values.items()}


def _warnings(groups: Sequence[Group], runs: Sequence[Run], measure: str) -> list[str]:
    notes = []
    unknown = [run.folder.name for run in runs if not np.isfinite(value(run, measure))]
    if unknown:
        share = f"{len(unknown)} of {len(runs)} runs"
        notes.append(f"Without a finite {measure}, and left out of its means and tests: {share}, {_few(unknown)}.")
    data = sorted({str(run.config.get("data")) for run in runs})
    if len(data) > 1:
        notes.append(f"The runs are on different data ({', '.join(data)}): their accuracies cannot be compared.")
    if any(len({seed(run) for run in group.runs}) < len(group.runs) for group in groups):
        mean = "Some groups have several runs with one seed; the tests use their mean."
        notes.append(f"{mean} Name more settings with --by to separate them.")
    return notes


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
