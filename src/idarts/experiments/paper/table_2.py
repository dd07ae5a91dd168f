"""Table 2: every method in the DARTS space and in NAS-Bench-201, at the counted cost of iDARTS, beside published cells.

The paper trains its cells for 600 epochs; here NAS-Bench-301 gives the accuracy of a DARTS cell (trained, or predicted
by its surrogate), and NAS-Bench-201's table that of its cells. No search reads a table.
"""

from collections.abc import Iterator
from typing import Any

from idarts.arch import as_text, parse
from idarts.arch.registry import entry
from idarts.errors import InputError, require_known
from idarts.experiments.experiment import COST, Experiment, Request, cost
from idarts.experiments.jobs import Job, SearchJob
from idarts.experiments.paper import add
from idarts.experiments.paper.published import TABLE_1
from idarts.experiments.paper.sensitivity import BY_ALPHA
from idarts.experiments.runs import Run
from idarts.experiments.searches import search_jobs, settings
from idarts.experiments.store import Row
from idarts.pages.experiment import Section, column
from idarts.pages.numbers import MISSING, mean_std
from idarts.spaces import count
from idarts.tables import NoTableError, Table, row_table

# space → its title, and the columns of its table that the page shows
SPACES: dict[str, tuple[str, tuple[str, ...]]] = {
    "darts": ("the DARTS space, by NAS-Bench-301", ("cifar10_valid",)),
    "nas-bench-201": ("NAS-Bench-201", ("cifar10_test", "cifar100_test", "imagenet16_test")),
}
# The smallest supernet that has a normal cell.
SIZES: dict[tuple[str, str], dict[str, int]] = {("darts", "smoke"): {"depth": 3, "channels": 4}}
# What the table changes in a preset: fewer rounds, because each method searches with several seeds.
BASES: dict[tuple[str, str], dict[str, Any]] = {
    # A third of the preset's rounds, and the last α instead of its mean, as the methods have it. Where a method
    # evaluates by real trainings, these are shorter in proportion.
    ("darts", "cpu"): {"rounds": 26, "alpha": {"average": 0.0}, "evaluator": {"steps": 20}},
    # Half of them, at twice the rate of α. Methods select by their own rules: trials would hide how they differ, and
    # Table 1 has them.
    ("nas-bench-201", "cpu"): {"rounds": 75, "alpha": {"rate": 0.01}, **BY_ALPHA},
}
# method → its published cell
SEARCHES: dict[str, str | None] = {
    "nasnet": "NASNet-A",
    "regularised-evolution": "AmoebaNet-A",
    "pnas": "PNASNet-5",
    "enas": "ENAS",
    "random-nas": None,
    "snas": "SNAS_moderate",
    "parsec": None,
    "mdenas": "MdeNAS",
    "xnas": "XNAS",
    "gdas": "GDAS_V1",
    "setn": "SETN",
    "nsas": "Random_NSAS",
    "en2as": "EN2AS",
    "p-darts": "PDARTS",
    "pc-darts": "PC_DARTS_cifar",
    "drnas": "DrNAS_cifar10",
    "darts-first-order": "DARTS_V1",
    "darts": "DARTS_V2",
    "idarts": "iDARTS",
}
CONTROLS = ("random-search", "random-trials")  # and regularised-evolution: it evaluates by real trainings, too
METHODS = (*SEARCHES, *CONTROLS)
FIRST = "idarts"  # the other methods have its cost
DATASETS = ("cifar10", "cifar100", "imagenet16")
VALUES = tuple(f"{name}_{split}" for name in DATASETS for split in ("valid", "test"))


def _plan(request: Request) -> Iterator[Job]:
    methods = request.methods or METHODS
    for name in methods:
        require_known("row", name, METHODS)
    for space in SPACES:
        if request.preset != "smoke":
            row_table(space, request.tables).check()  # before hours of searches, not after them
        changes, base = (known.get((space, request.preset), {}) for known in (SIZES, BASES))
        for method in dict.fromkeys((FIRST, *methods)):
            like = None if method == FIRST else f"{space}-{FIRST}"
            rule = settings(request, space, method, 1, changes, base).selection.rule
            yield from search_jobs(
                request,
                space,
                f"{space}-{method}",
                changes,
                method=method,
                base=base,
                like=like,
                whole=like is not None and rule == "argmax",
                facts={"space": space, "method": method},
            )


def _rows(job: SearchJob, run: Run, request: Request) -> list[Row]:
    result = run.result or {}
    cell, space = parse(result["architecture"]), str(job.facts["space"])
    return [
        {**job.facts, **_value(_table(space, request), cell), **_counts(cell), **cost(result), "cell": as_text(cell)}
    ]


def _table(space: str, request: Request) -> Table | None:
    """The table of a space; None if it is not there, which the preset smoke allows."""
    try:
        return row_table(space, request.tables)
    except NoTableError:
        return None


def _value(known: Table | None, cell: Any) -> Row:
    """The accuracies of a cell in a table; nothing for a cell that it cannot describe."""
    try:
        answer = {} if known is None else known.query(cell)
    except (InputError, NoTableError):
        answer = {}
    values = {f"{name}_{split}": answer.get(name, {}).get(split) for name in DATASETS for split in ("valid", "test")}
    return {**{name: value for name, value in values.items() if value is not None}, "source": answer.get("source", "")}


def _counts(cell: Any) -> Row:
    """Of the network that the space's papers train: their first published skeleton."""
    counts = count(cell)
    return {"parameters": counts.params, "multiply_adds": counts.multiply_adds["conv+fc"]}


def _show(rows: list[Row], request: Request) -> list[Section]:
    return [_section(space, [row for row in rows if row["space"] == space], request) for space in SPACES]


def _section(space: str, rows: list[Row], request: Request) -> Section:
    title, values = SPACES[space]
    lines = []
    for method in METHODS:
        own = [row for row in rows if row["method"] == method]
        if own:
            lines += [_measured(method, own, values), *_published(space, method, values, request)]
    own_rule = "selection" in BASES.get((space, request.preset), {})
    selection = "Each selects by its own rule, or by α alone; Table 1 has trials. " if own_rule else ""
    text = [
        "Accuracy in percent, mean ± standard deviation over seeds. Every search has the gradient evaluations of "
        "iDARTS with the same seed. For a method with a selection these are the evaluations of iDARTS's rounds, and "
        "the cost of the method's selection is added; for a method without one they are those of iDARTS's rounds and "
        f"selection. {selection}The controls random-search, regularised-evolution and random-trials (trials alone) "
        "only train real networks for a short time.",
        "This schedule is shorter than the methods were made for: gdas, enas and others need many more steps.",
    ]
    notes = [
        "Published error: on CIFAR-10's test images after 600 epochs; the accuracies in its row are NAS-Bench-301's "
        "for that cell. Published multiply-adds are those at ImageNet's size, measured ones those at CIFAR's.",
        f"{MISSING}: NAS-Bench-301 does not describe the cell, or has no surrogate (idarts table fit nas-bench-301).",
    ]
    header = ("", "seeds", *values, "parameters, M", "multiply-adds, M", "gradient evaluations", "minutes", "published")
    return Section(f"Methods in {title}", text, header, lines, notes=notes if space == "darts" else [])


def _measured(method: str, rows: list[Row], values: tuple[str, ...]) -> list[str]:
    means = [mean_std(column(rows, name)) if column(rows, name) else MISSING for name in values]
    sizes = [f"{_mean(rows, 'parameters') / 1e6:.2f}", f"{_mean(rows, 'multiply_adds') / 1e6:.0f}"]
    spent = [f"{_mean(rows, COST[0]):,.0f}", f"{_mean(rows, COST[1]) / 60:.1f}"]
    return [method, str(len(rows)), *means, *sizes, *spent, ""]


def _mean(rows: list[Row], name: str) -> float:
    numbers = column(rows, name)
    return sum(numbers) / len(numbers)


def _published(space: str, method: str, values: tuple[str, ...], request: Request) -> Iterator[list[str]]:
    """The published row of a method, where there is one."""
    if space != "darts":
        if method in TABLE_1:
            yield ["  published", "", *TABLE_1[method][1::2], *[""] * 5]
        return
    name = SEARCHES.get(method)
    if name is None:
        return
    cell, printed = entry(name).architecture, entry(name).provenance.get("published", {})
    known = _value(_table(space, request), cell)
    sizes = [f"{printed.get('params_millions', MISSING)}", f"{printed.get('imagenet_multiply_adds_millions', MISSING)}"]
    error = f"error {printed['cifar10_test_error_percent']} %"
    yield [f"  published ({name})", "", *(f"{known.get(value, MISSING)}" for value in values), *sizes, "", "", error]


_ABOUT = (
    "Table 2: every method in the DARTS space and in NAS-Bench-201, at equal counted cost, with equal-cost controls."
)
_COLUMNS = ("space", "method", "seed", *VALUES, "source", "parameters", "multiply_adds", *COST, "cell")
add(Experiment("table-2", _ABOUT, _plan, _show, _rows, _COLUMNS, uses=("tables", "methods"), fixed=("preset",)))
