"""A comparison as a person reads it: tables and figures, as sections of a page, as CSV, as JSON."""

import csv
import io
import time
from pathlib import Path
from typing import Any

import numpy as np

from idarts._version import __version__
from idarts.engine.lock import require_own
from idarts.errors import InputError
from idarts.experiments.comparison import (
    VALID,
    Comparison,
    Group,
    at_equal_cost,
    common_measures,
    curves,
    pairs,
    seed,
    value,
)
from idarts.experiments.figure import Figure, banded, figure
from idarts.experiments.page import Section, mean_std, require_jinja, write_page
from idarts.experiments.statistics import holm
from idarts.files import write_whole

TABLE = "comparison.csv"
_LABELS = {VALID: "valid accuracy of the supernet", "table": "accuracy by the table"}
_COSTS = {"gradient_evaluations": "evaluations", "seconds": "seconds"}


def facts(comparison: Comparison) -> dict[str, Any]:
    """The comparison as plain data: what `--json` prints."""
    measures = _measures(comparison)
    tested = pairs(comparison)
    corrected = holm([found.permutation for _, _, found in tested])
    equal = at_equal_cost(comparison)
    why = [f"Without a column at equal cost: {equal}."] if isinstance(equal, str) else []
    return {
        "by": list(comparison.by),
        "measure": comparison.measure,
        "groups": [
            {
                "name": group.name,
                "seeds": [seed(run) for run in group.runs],
                **{name: _summary(group, name) for name in (*measures, *_COSTS)},
                **({} if isinstance(equal, str) else {"at_equal_cost": _of(equal[2][group.name])}),
            }
            for group in comparison.groups
        ],
        "equal_cost": None if isinstance(equal, str) else {"gradient_evaluations": equal[1], "measure": equal[0]},
        "pairs": [
            {
                "first": first,
                "second": second,
                "seeds": found.pairs,
                "difference": _number(found.mean),
                "deviation": found.deviation,
                "permutation_p": found.permutation,
                "permutation_p_holm": p,
                "t_test_p": found.t_test,
            }
            for (first, second, found), p in zip(tested, corrected, strict=True)
        ],
        "notes": [*comparison.notes, *why],
    }


def sections(comparison: Comparison, brief: bool = False) -> list[Section]:
    """The tables and curves; in brief, for a narrow place: the tested measure alone, and pairs in two lines."""
    data = facts(comparison)
    every = _measures(comparison)
    measures = every[:1] if brief else every
    equal = data["equal_cost"]
    header = ["", "seeds", *map(_label, measures)]
    if equal:
        header.append(f"at {equal['gradient_evaluations']:,.0f} evaluations")
    rows = [
        [
            group["name"],
            str(len(group["seeds"])),
            *(_shown(group[name], name) for name in measures),
            *([_shown(group["at_equal_cost"], equal["measure"])] if equal else []),
            *(_plain(group[name]) for name in _COSTS),
        ]
        for group in data["groups"]
    ]
    notes = ["The supernet's accuracy is that of its last rounds, on validation batches; all others are the table's."]
    if equal:
        notes.append(f"At equal cost: {_LABELS[equal['measure']]}. Evaluations are those of gradients.")
    if len(measures) < len(every):
        notes.append(f"{len(every) - 1} more measures need a wider terminal, --json, or --out.")
    title = "Mean ± standard deviation over seeds, accuracies in percent"
    table = Section(title, (), [*header, *_COSTS.values()], rows, notes=notes)
    drawn = [made for kind in ("table", VALID) if (made := _figure(comparison, kind)) is not None]
    found = [table, _tests(data, "\n− " if brief else " − ")]
    if drawn:
        found.append(Section("What each cost brought", (), figures=drawn))
    return [Section("To know", data["notes"]), *found] if data["notes"] else found


def write_comparison(comparison: Comparison, out: Path) -> Path:
    """Write the page, its text and figures, and the table as CSV; gives the page."""
    require_jinja()
    require_own(out, TABLE, "comparison")
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"the folder {out} cannot be written: {error.strerror}; name another one with --out") from None
    write_whole(out / TABLE, as_csv(comparison).encode())
    total = sum(len(group.runs) for group in comparison.groups)
    summary = f"{total} searches, by {', '.join(comparison.by)}"
    told = f"written {time.strftime('%Y-%m-%d %H:%M')}, idarts {__version__}"
    return write_page(out, "Comparison", summary, told, sections(comparison))


def as_csv(comparison: Comparison) -> str:
    """One line a group."""
    rows = []
    for group in facts(comparison)["groups"]:
        row: dict[str, Any] = {"group": group["name"], "seeds": len(group["seeds"])}
        for name, found in group.items():
            if isinstance(found, dict):
                row |= {f"{name}_mean": found["mean"], f"{name}_std": found["std"]}
        rows.append(row)
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _measures(comparison: Comparison) -> list[str]:
    """All that every run has, what is tested first."""
    shared = common_measures([run for group in comparison.groups for run in group.runs])
    return [comparison.measure, *(name for name in shared if name != comparison.measure)]


def _tests(data: dict[str, Any], minus: str) -> Section:
    scale = 100 if data["measure"] == VALID else 1
    rows = [
        [
            f"{pair['first']}{minus}{pair['second']}",
            str(pair["seeds"]),
            "–" if pair["difference"] is None else f"{scale * pair['difference']:+.2f}",
            "–" if pair["deviation"] is None else f"{scale * pair['deviation']:.2f}",
            *(_p(pair[name]) for name in ("permutation_p", "permutation_p_holm", "t_test_p")),
        ]
        for pair in data["pairs"]
    ]
    header = ["", "seeds", "difference", "deviation", "p permuted", "p Holm", "p paired t"]
    fewest = min((pair["seeds"] for pair in data["pairs"] if pair["seeds"] > 1), default=0)
    notes = [
        "The permutation test is exact up to 16 seeds; Holm's p allows for the number of pairs. All are two-sided."
    ]
    if 0 < fewest < 6:
        notes.append(f"With {fewest} seeds it cannot go below {2 / 2**fewest:.3g}, whatever the difference.")
    if not rows:
        return Section("Paired tests", ["There is one group only, and nothing to test."])
    if not fewest:
        notes = ["No two groups have two seeds in common: nothing can be tested."]
    return Section(f"Paired by seed: {_label(data['measure'])}, in percentage points", (), header, rows, notes=notes)


def _figure(comparison: Comparison, kind: str) -> Figure | None:
    found = [(group.name, curves(group, kind)) for group in comparison.groups]
    scale = 100 if kind == VALID else 1
    lines = [banded(name, part[0], scale * part[1]) for name, part in found if part is not None]
    if not lines:
        return None
    reading = (
        "At the same place across, all have spent the same number of gradient evaluations, those of T and K included. "
        "Lines are means over seeds, bands one standard deviation; a line ends where the first of its runs does."
    )
    axes = ("gradient evaluations", "percent")
    return figure(f"equal-cost-{kind.replace('_', '-')}", _LABELS[kind].capitalize(), axes, lines, reading)


def _summary(group: Group, measure: str) -> dict[str, float | None]:
    return _of([value(run, measure) for run in group.runs])


def _of(values: list[float]) -> dict[str, Any]:
    known = [found for found in values if np.isfinite(found)]
    mean = float(np.mean(known)) if known else None
    deviation = float(np.std(known, ddof=1)) if len(known) > 1 else None
    return {"mean": mean, "std": deviation, "values": list(map(_number, values))}


def _shown(found: dict[str, Any], measure: str) -> str:
    scale = 100 if measure == VALID else 1
    return mean_std([scale * value for value in found["values"] if value is not None])


def _plain(found: dict[str, Any]) -> str:
    return "–" if found["mean"] is None else f"{found['mean']:,.0f}"


def _label(measure: str) -> str:
    return "supernet valid" if measure == VALID else measure.replace("_", " ")


def _p(found: float | None) -> str:
    return "–" if found is None else f"{found:.3f}" if found >= 0.001 else f"{found:.1e}"


def _number(found: float) -> float | None:
    return found if np.isfinite(found) else None
