"""A comparison as a person reads it: tables and charts as sections of a page, and CSV."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from idarts._version import __version__
from idarts.engine.lock import require_own
from idarts.errors import InputError
from idarts.files import csv_text, write_whole
from idarts.pages.chart import Chart, Dots, banded, chart
from idarts.pages.experiment import Section, write_page
from idarts.pages.numbers import MISSING, mean_std
from idarts.pages.template import require_jinja

TABLE = "comparison.csv"
_SHARE = "valid_accuracy"  # a share; the other measures are in percent
_LABELS = {_SHARE: "validation accuracy over recent rounds", "table": "accuracy by the table"}
_COSTS = {"gradient_evaluations": "evaluations", "seconds": "seconds"}

Facts = Mapping[str, Any]  # as `idarts.experiments.facts` makes them


def sections(facts: Facts, brief: bool = False) -> list[Section]:
    """Tables and charts; in brief, for a narrow place: only the tested measure, and pairs in two lines."""
    made = [_means(facts, brief), _tests(facts, "\n− " if brief else " − ")]
    made.append(Section("A dot for each seed", charts=[_dots(facts, name) for name in facts["measures"]]))
    drawn = [_chart(kind, curves) for kind, curves in facts["curves"].items() if curves]
    if drawn:
        made.append(Section("Accuracy by cost", charts=drawn))
    return [Section("Notes", facts["notes"]), *made] if facts["notes"] else made


def write_comparison(facts: Facts, out: Path) -> Path:
    """Write the page, its text and charts, and the table as CSV; returns the page."""
    require_jinja()
    require_own(out, TABLE, "comparison")
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"the folder {out} cannot be written: {error.strerror}; name another one with --out") from None
    write_whole(out / TABLE, as_csv(facts))
    runs = sum(len(group["seeds"]) for group in facts["groups"])
    summary = f"{runs} searches, by {', '.join(facts['by'])}"
    written = f"written {time.strftime('%Y-%m-%d %H:%M')}, idarts {__version__}"
    return write_page(out, f"Comparison on {_data(facts)}", summary, written, sections(facts))


def as_csv(facts: Facts) -> str:
    """One line a group.

    >>> as_csv({"groups": [{"name": "darts", "seeds": [1], "seconds": {"mean": 2.0, "std": None}}]})
    'group,runs,seconds_mean,seconds_std\\ndarts,1,2.0,\\n'
    """
    rows = []
    for group in facts["groups"]:
        row: dict[str, Any] = {"group": group["name"], "runs": len(group["seeds"])}
        for name, summary in group.items():
            if isinstance(summary, dict):
                row |= {f"{name}_mean": summary["mean"], f"{name}_std": summary["std"]}
        rows.append(row)
    return csv_text(list(rows[0]), rows)


def _means(facts: Facts, brief: bool) -> Section:
    measures, equal = facts["measures"][: 1 if brief else None], facts["equal_cost"]
    at_cost = [f"at {equal['gradient_evaluations']:,.0f} evaluations"] if equal else []
    rows = [
        [
            group["name"],
            str(len(group["seeds"])),
            *(_mean(group[name], name) for name in measures),
            *([_mean(group["at_equal_cost"], equal["measure"])] if equal else []),
            *(MISSING if group[name]["mean"] is None else f"{group[name]['mean']:,.0f}" for name in _COSTS),
        ]
        for group in facts["groups"]
    ]
    notes = [
        f"“{_label(_SHARE)}” is the mean accuracy over these rounds, on validation batches of {_data(facts)}: that of "
        "the supernet or, for a method without one, of the networks that it tries. All others are the table's, on the "
        "data that the column names."
    ]
    if any(len(group["seeds"]) == 1 for group in facts["groups"]):
        notes.append("A group with one run has no deviation, so nothing is known about its uncertainty.")
    if equal:
        notes.append(f"At equal cost: {_LABELS[equal['measure']]}. Evaluations are gradient evaluations.")
    if brief and len(facts["measures"]) > 1:
        hidden = len(facts["measures"]) - 1
        notes.append(f"{hidden} more measures are not shown; use a wider terminal, --json or --out.")
    title = f"Searches on {_data(facts)}: mean ± standard deviation over runs, accuracies in percent"
    return Section(title, (), ["", "runs", *map(_label, measures), *at_cost, *_COSTS.values()], rows, notes=notes)


def _tests(facts: Facts, minus: str) -> Section:
    if not facts["pairs"]:
        return Section("Paired tests", ["There is only one group, so there is nothing to test."])
    scale = _scale(facts["measure"])
    rows = [
        [
            f"{pair['first']}{minus}{pair['second']}",
            str(pair["seeds"]),
            MISSING if pair["difference"] is None else f"{scale * pair['difference']:+.2f}",
            MISSING if pair["deviation"] is None else f"{scale * pair['deviation']:.2f}",
            *(_p(pair[name]) for name in ("permutation_p", "permutation_p_holm", "t_test_p")),
        ]
        for pair in facts["pairs"]
    ]
    header = ["", "seeds", "difference", "deviation", "p permuted", "p Holm", "p paired t"]
    title = f"Paired by seed: {_label(facts['measure'])}, in percentage points"
    fewest = min((pair["seeds"] for pair in facts["pairs"] if pair["seeds"] > 1), default=0)
    if not fewest:
        return Section(title, (), header, rows, notes=["No two groups share two seeds, so there is nothing to test."])
    notes = [
        "The permutation test is exact up to 16 seeds; Holm's p corrects for the number of pairs. All are two-sided."
    ]
    if fewest < 6:
        notes.append(f"With {fewest} seeds, the smallest possible p is {2 / 2**fewest:.3g}.")
    return Section(title, (), header, rows, notes=notes)


def _chart(kind: str, curves: list[dict[str, Any]]) -> Chart:
    lines = [banded(one["name"], np.array(one["cost"]), _scale(kind) * np.array(one["values"])) for one in curves]
    reading = (
        "The horizontal axis counts gradient evaluations, including those of T and K. Lines are means over runs; "
        "bands are one standard deviation. A line ends at the mean cost of its runs, as in the table, with what they "
        "returned; a run that ended earlier keeps its last value."
    )
    axes = ("gradient evaluations", "percent")
    return chart(f"equal-cost-{kind.replace('_', '-')}", _LABELS[kind].capitalize(), axes, lines, reading)


def _dots(facts: Facts, measure: str) -> Dots:
    groups = {
        group["name"]: [
            (str(seed), _scale(measure) * value)
            for seed, value in zip(group["seeds"], group[measure]["values"], strict=True)
            if value is not None
        ]
        for group in facts["groups"]
    }
    reading = "A dot is a run; the stroke is the mean of its group."
    whose = f"{_label(measure)} on {_data(facts)}" if measure == _SHARE else _label(measure)
    return Dots(f"seeds-{measure.replace('_', '-')}", whose, "accuracy in percent", groups, reading)


def _data(facts: Facts) -> str:
    return ", ".join(facts["data"])


def _mean(summary: dict[str, Any], measure: str) -> str:
    return mean_std([_scale(measure) * value for value in summary["values"] if value is not None])


def _scale(measure: str) -> int:
    return 100 if measure == _SHARE else 1


def _label(measure: str) -> str:
    return "valid, last rounds" if measure == _SHARE else measure.replace("_", " ")


def _p(value: float | None) -> str:
    return MISSING if value is None else f"{value:.3f}" if value >= 0.001 else f"{value:.1e}"
