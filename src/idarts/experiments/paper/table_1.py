"""Table 1: methods on NAS-Bench-201, the cells they find looked up in the table."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from random import Random
from typing import Any

from idarts.arch import convert, parse
from idarts.errors import require_known
from idarts.experiments import on_table
from idarts.experiments.frame import Experiment, Job, Request
from idarts.experiments.paper.published import COLUMNS, DATASETS, SPLITS, TABLE_1, TABLE_1_NOTES
from idarts.experiments.searches import COST, NAS_BENCH_201, accuracies, cost, found_cell, search_jobs
from idarts.experiments.store import Row
from idarts.pages.experiment import Section, column
from idarts.pages.numbers import mean_std
from idarts.searching.settings import config
from idarts.tables import RowTable, row_table

ON_TABLE = {"random-search": on_table.random_search, "regularised-evolution": on_table.regularised_evolution}
SEARCHES = ("enas", "random-nas", "setn", "gdas", "darts-first-order", "darts", "idarts")
WITH_ALPHA = tuple(name for name in SEARCHES if config(name).hypergradient.order in ("first", "implicit"))
TESTS = tuple(name for name in COLUMNS if name.endswith("_test"))
METHODS = (*SEARCHES, *ON_TABLE, "optimal")
HEADER = (
    "",
    "seeds",
    *(f"{DATASETS[name]} {split}" for name in DATASETS for split in SPLITS),
    "gradient evaluations",
    "time",
)


def _jobs(request: Request) -> Iterable[Job]:
    found = row_table(NAS_BENCH_201, request.tables)
    methods = request.methods or METHODS
    for name in methods:
        require_known("row", name, METHODS)
    if request.equal_cost and "idarts" not in methods and any(name in SEARCHES for name in methods):
        methods = ("idarts", *methods)
    for method in methods:
        if method in SEARCHES:
            like = "idarts" if request.equal_cost and method != "idarts" else None
            yield from search_jobs(request, NAS_BENCH_201, method, {}, _rows(found, method), method, like)
        elif method in ON_TABLE:
            yield from (_on_table(found, method, seed) for seed in request.seeds)
        else:
            yield Job("optimal", {}, lambda: [_optimal(found)])


def _rows(found: RowTable, method: str) -> Any:
    def rows(result: dict[str, Any], _: Path, seed: int) -> Sequence[Row]:
        cell = found_cell(result)
        known = accuracies(found, cell)
        alone = accuracies(found, parse(result["argmax"]))
        facts = known | {f"argmax_{name}": alone[name] for name in TESTS} | cost(result)
        return [{"method": method, "seed": seed, "cell": convert(cell, "string"), **facts}]

    return rows


def _on_table(found: RowTable, method: str, seed: int) -> Job:
    def measure() -> Sequence[Row]:
        trials = ON_TABLE[method](NAS_BENCH_201, on_table.looking(found), Random(seed), on_table.SECONDS)
        cell = on_table.best(trials).architecture
        spent = {"seconds": round(sum(trial.cost for trial in trials)), "queries": len(trials)}
        return [{"method": method, "seed": seed, "cell": convert(cell, "string"), **accuracies(found, cell), **spent}]

    return Job(f"{method}-{seed}", {"budget": on_table.SECONDS}, measure)


def _optimal(found: RowTable) -> Row:
    """The largest value of every column, each of a cell of its own."""
    best = {(name, split): found.best(name, split)[name][split] for name in DATASETS for split in SPLITS}
    return {"method": "optimal", **{f"{name}_{split}": value for (name, split), value in best.items()}}


def _show(rows: list[Row], request: Request) -> list[Section]:
    lines: list[list[str]] = []
    for method in METHODS:
        mine = [row for row in rows if row["method"] == method]
        if not mine:
            continue
        lines.append([method, _seeds(mine), *(mean_std(column(mine, name)) for name in COLUMNS), *_cost(method, mine)])
        if method in TABLE_1:
            lines.append(["  published", "", *TABLE_1[method], "", ""])
        if method in WITH_ALPHA and any(row[f"argmax_{name}"] not in ("", row[name]) for row in mine for name in TESTS):
            alone = (mean_std(column(mine, f"argmax_{name}")) if name in TESTS else "" for name in COLUMNS)
            lines.append(["  by α alone", "", *alone, "", ""])
    budget = (
        "A search's rounds end after as many gradient evaluations as the rounds of iDARTS took with the same seed; "
        "what a selection costs comes on top, and is in the column."
        if request.equal_cost
        else "All searches see the training images equally often (equal epochs); --equal-cost counts gradients."
    )
    runs = [
        [str(row["job"]), str(row["cell"]), *(f"{row[name]:.2f}" for name in COLUMNS)] for row in rows if row["cell"]
    ]
    return [
        Section(
            "Accuracy by the table, mean ± standard deviation over seeds, in percent",
            [budget],
            HEADER,
            lines,
            notes=[*TABLE_1_NOTES, "The paper prints one row DARTS, shown here beside second order.", _ON_TABLE_NOTE],
        ),
        Section("Every run", (), ("run", "cell", *HEADER[2:8]), runs),
    ]


_ON_TABLE_NOTE = (
    "random-search and regularised-evolution ask only the table, as the benchmark's authors do: validation accuracy "
    f"after {on_table.EPOCHS} epochs decides, {on_table.SECONDS:,.0f} simulated seconds of training are the budget. "
    "The paper has no such rows."
)


def _seeds(rows: list[Row]) -> str:
    return str(len(column(rows, "seed"))) if rows[0]["seed"] != "" else ""


def _cost(method: str, rows: list[Row]) -> tuple[str, str]:
    evaluations, seconds, queries = (column(rows, name) for name in (*COST, "queries"))
    if queries:
        return f"{sum(queries) / len(queries):.0f} queries", f"{sum(seconds) / len(seconds) / 3600:.1f} h simulated"
    if not evaluations:
        return "", ""
    return f"{sum(evaluations) / len(evaluations):,.0f}", f"{sum(seconds) / len(seconds) / 60:.1f} min"


TABLE = Experiment(
    "Table 1: methods on NAS-Bench-201, valid and test accuracy on three data sets.",
    ("method", "seed", *COLUMNS, *(f"argmax_{name}" for name in TESTS), *COST, "queries", "cell"),
    _jobs,
    _show,
)
