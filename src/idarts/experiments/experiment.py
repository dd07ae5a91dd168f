"""An experiment as a record: a plan of jobs, the rows that they leave, and a page that shows the rows."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from idarts.arch import as_text, parse
from idarts.errors import InputError, require_known
from idarts.experiments.jobs import Job, SearchJob
from idarts.experiments.runs import Run, table_accuracies
from idarts.experiments.store import Row
from idarts.pages.experiment import Section

PRESETS = ("paper", "cpu", "smoke")
METRICS = ("train_loss", "train_accuracy", "valid_loss", "valid_accuracy", "entropy")
COST = ("gradient_evaluations", "seconds")


@dataclass(frozen=True)
class Request:
    """What the user asks of an experiment, and the folder for its results."""

    out: Path
    preset: str = "cpu"
    seeds: tuple[int, ...] = (1, 2, 3)
    tables: Path | None = None  # folder of the benchmark tables, else IDARTS_TABLES
    methods: tuple[str, ...] | None = None  # the rows to measure, else all
    equal_cost: bool = False

    def __post_init__(self) -> None:
        require_known("preset", self.preset, PRESETS)
        if not self.seeds or len(set(self.seeds)) < len(self.seeds):
            raise InputError(f"seeds are {self.seeds}, expected at least one, and each once")
        if self.methods and len(set(self.methods)) < len(self.methods):
            raise InputError(f"methods are {', '.join(self.methods)}, expected each once")


def search_rows(job: SearchJob, run: Run, _: Request) -> list[Mapping[str, Any]]:
    """One row for a search: its settings, its architecture, its last metrics, its cost, and the table's accuracies."""
    result = run.result or {}
    metrics = result.get("metrics") or {}
    return [
        {
            **{name: result.get(name) for name in ("method", "space", "seed")},
            "settings": job.settings,
            "architecture": as_text(parse(result["architecture"])),
            **{name: metrics.get(name) for name in METRICS},
            **cost(result),
            **table_accuracies(result),
        }
    ]


def cost(result: Mapping[str, Any]) -> Row:
    """The cost of a search.

    >>> cost({"gradient_evaluations": 12, "seconds": 0.25})
    {'gradient_evaluations': 12.0, 'seconds': 0.2}
    """
    return {name: round(float(result.get(name, 0)), 1) for name in COST}


@dataclass(frozen=True)
class Experiment:
    """An experiment. `plan` lists its jobs; `rows` makes rows of a finished search; `show` makes a page of all rows.

    A function job returns its rows itself. `show` runs again as rows come in. `uses` names the optional parts of a
    request that the experiment knows, `fixed` those that all results in one folder share.

    >>> from idarts.experiments import FunctionJob, run_experiment
    >>> import tempfile
    >>> def square(number: int) -> list[Row]:
    ...     return [{"number": number, "square": number**2}]
    >>> squares = Experiment(
    ...     "squares",
    ...     "Squares of the seeds.",
    ...     plan=lambda request: [FunctionJob(f"{n}", function=square, arguments={"number": n}) for n in request.seeds],
    ...     show=lambda rows, _: [Section("Squares", rows=[[str(row["square"])] for row in rows])],
    ... )
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = run_experiment(squares, Request(Path(folder)), tell=lambda line: None)
    ...     print((page.parent / "results.csv").read_text())
    job,settings,number,square,digest
    1,e03415ef,1,1,sha256:4553443cbb0347dcfd7406bc3b57bb38
    2,cb19462c,2,4,sha256:63e9194c4f7b0f8e127c6aed9fb5a248
    3,d202776d,3,9,sha256:4785e48989360bfcf73799e2db635984
    <BLANKLINE>
    """

    name: str
    summary: str
    plan: Callable[[Request], Iterable[Job]]
    show: Callable[[list[Row], Request], list[Section]] | None = None
    rows: Callable[[SearchJob, Run, Request], Iterable[Mapping[str, Any]]] = search_rows
    columns: tuple[str, ...] = ()
    uses: tuple[str, ...] = ("tables",)
    fixed: tuple[str, ...] = ("preset", "equal_cost")
    kind: str = "experiment"  # the folder's record is KIND.json
    from_folders: bool = False  # a row counts only while its run folder is there: delete that, and it runs again
