"""Table 1: methods on NAS-Bench-201, and the accuracies of their cells by the table."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from random import Random

from idarts.arch import convert, parse
from idarts.errors import require_known
from idarts.experiments.experiment import COST, Experiment, Request, cost
from idarts.experiments.jobs import FunctionJob, Job, SearchJob
from idarts.experiments.paper import add, on_table
from idarts.experiments.paper.cells import HEADER, SPACE, accuracies, cell_table, means
from idarts.experiments.paper.published import COLUMNS, DATASETS, SPLITS, TABLE_1, TABLE_1_NOTES
from idarts.experiments.runs import Run
from idarts.experiments.searches import search_jobs
from idarts.experiments.store import Row, digest
from idarts.pages.experiment import Section, column
from idarts.pages.numbers import mean_std
from idarts.searching.settings import config

# search method → the published row below it, if the paper has one
SEARCHES: dict[str, str | None] = {
    "enas": "enas",
    "random-nas": "random-nas",
    "setn": "setn",
    "gdas": "gdas",
    "darts-first-order": None,
    "darts-one-step": None,
    "darts": "darts",
    "idarts": "idarts",
    "random-trials": None,
}
CONTROLS = ("random-trials",)  # with the cost of iDARTS' rounds and selection, in any case
ON_TABLE = {"random-search": on_table.random_search, "regularised-evolution": on_table.regularised_evolution}
OPTIMAL = "optimal"
METHODS = (*SEARCHES, *ON_TABLE, OPTIMAL)
PUBLISHED = {**SEARCHES, OPTIMAL: "optimal"}
WITH_ALPHA = tuple(name for name in SEARCHES if config(name).strategy == "gradient")
TESTS = tuple(name for name in COLUMNS if name.endswith("_test"))


def _plan(request: Request) -> Iterator[Job]:
    cell_table(request.tables)  # an error if there is none
    methods = request.methods or METHODS
    for name in methods:
        require_known("row", name, METHODS)
    like_idarts = CONTROLS if not request.equal_cost else tuple(name for name in SEARCHES if name != "idarts")
    if "idarts" not in methods and any(name in like_idarts for name in methods):
        methods = ("idarts", *methods)
    for method in methods:
        if method in SEARCHES:
            like, whole = "idarts" if method in like_idarts else None, method in CONTROLS
            yield from search_jobs(
                request, SPACE, method, method=method, like=like, whole=whole, facts={"method": method}
            )
        elif method in ON_TABLE:
            yield from _on_table(method, request)
        else:
            yield FunctionJob(OPTIMAL, digest({}), function=optimal, arguments={"tables": request.tables})


def _rows(job: SearchJob, run: Run, request: Request) -> list[Row]:
    result, known = run.result or {}, cell_table(request.tables)
    cell = parse(result["architecture"])
    alone = accuracies(known, parse(result["argmax"]))
    facts = {**accuracies(known, cell), **{f"argmax_{name}": alone[name] for name in TESTS}, **cost(result)}
    return [{**job.facts, "cell": convert(cell, "string"), **facts}]


def _on_table(method: str, request: Request) -> Iterable[Job]:
    for seed in request.seeds:
        arguments = {"method": method, "seed": seed, "tables": request.tables}
        settings = digest({"budget": on_table.SECONDS})
        yield FunctionJob(f"{method}-{seed}", settings, function=search_table, arguments=arguments)


def search_table(method: str, seed: int, tables: Path | None) -> list[Row]:
    """The best cell of a baseline that only queries the table."""
    known = cell_table(tables)
    trials = ON_TABLE[method](SPACE, on_table.looking(known), Random(seed), on_table.SECONDS)
    cell = on_table.best(trials).architecture
    spent = {"seconds": round(sum(trial.cost for trial in trials)), "queries": len(trials)}
    return [{"method": method, "seed": seed, "cell": convert(cell, "string"), **accuracies(known, cell), **spent}]


def optimal(tables: Path | None) -> list[Row]:
    """The largest value of every column, each of another cell."""
    known = cell_table(tables)
    best = {f"{name}_{split}": known.best(name, split)[name][split] for name in DATASETS for split in SPLITS}
    return [{"method": OPTIMAL, **best}]


def _show(rows: list[Row], request: Request) -> list[Section]:
    lines = [line for method in METHODS for line in _lines(method, [row for row in rows if row["method"] == method])]
    budget = (
        "The rounds of a search end after as many gradient evaluations as those of iDARTS with the same seed; "
        "the cost of a selection is added, and the column includes it."
        if request.equal_cost
        else "All searches see the training images equally often (equal epochs); --equal-cost counts gradients."
    )
    runs = [
        [str(row["job"]), str(row["cell"]), *(f"{row[name]:.2f}" for name in COLUMNS)] for row in rows if row["cell"]
    ]
    notes = [*TABLE_1_NOTES, "The paper prints one row DARTS, shown here beside second order.", *_NOTES]
    title = "Accuracy by the table, mean ± standard deviation over seeds, in percent"
    return [
        Section(title, [budget], ("", "seeds", *HEADER, "gradient evaluations", "time"), lines, notes=notes),
        Section("Every run", (), ("run", "cell", *HEADER), runs),
    ]


_NOTES = (
    "random-trials trains random cells as the selection of iDARTS does, as many as the cost of the whole search of "
    "iDARTS with the same seed allows.",
    "random-search and regularised-evolution only query the table, as the benchmark's authors do: validation accuracy "
    f"after {on_table.EPOCHS} epochs decides, {on_table.SECONDS:,.0f} simulated seconds of training are the budget. "
    "The paper has no such rows.",
)


def _lines(method: str, rows: list[Row]) -> Iterator[list[str]]:
    """The measured row of a method, the published one, and the one that α alone gives."""
    if not rows:
        return
    seeds = str(len(column(rows, "seed"))) if rows[0]["seed"] != "" else ""
    yield [method, seeds, *means(rows), *_cost(rows)]
    published = PUBLISHED.get(method)
    if published:
        yield ["  published", "", *TABLE_1[published], "", ""]
    if method in WITH_ALPHA and any(row[f"argmax_{name}"] not in ("", row[name]) for row in rows for name in TESTS):
        alone = (mean_std(column(rows, f"argmax_{name}")) if name in TESTS else "" for name in COLUMNS)
        yield ["  by α alone", "", *alone, "", ""]


def _cost(rows: list[Row]) -> tuple[str, str]:
    evaluations, seconds, queries = (column(rows, name) for name in (*COST, "queries"))
    if queries:
        return f"{sum(queries) / len(queries):.0f} queries", f"{sum(seconds) / len(seconds) / 3600:.1f} h simulated"
    if not evaluations:
        return "", ""
    return f"{sum(evaluations) / len(evaluations):,.0f}", f"{sum(seconds) / len(seconds) / 60:.1f} min"


_ABOUT = "Table 1: methods on NAS-Bench-201, valid and test accuracy on three data sets."
_COLUMNS = ("method", "seed", *COLUMNS, *(f"argmax_{name}" for name in TESTS), *COST, "queries", "cell")
add(Experiment("table-1", _ABOUT, _plan, _show, _rows, _COLUMNS, uses=("tables", "methods", "equal_cost")))
