"""What a report says about a run of any kind; `search` and `training` fill it in."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from idarts.engine.entries import as_float
from idarts.engine.folder import Run
from idarts.pages.cell import Shown
from idarts.pages.chart import Chart
from idarts.pages.numbers import number, with_interval
from idarts.spaces.prices import UNITS

Rows = list[tuple[str, str]]


@dataclass(frozen=True)
class Trial:
    """An architecture that a selection tried, and how it did."""

    cell: Shown
    losses: str


class Head(NamedTuple):
    """The first lines of a report."""

    state: str
    heading: str
    subtitle: str
    tiles: Rows


@dataclass(frozen=True)
class About:
    """The words, numbers, charts and commands of a report."""

    state: str
    heading: str
    subtitle: str
    architecture_title: str
    tiles: Rows
    notes: list[str]
    progress: list[Chart]
    costs: Rows
    commands: Rows
    trials: list[Trial]
    argmax: Shown | None = None


def round_counts(run: Run) -> tuple[int, int | None]:
    """Rounds so far, and how many the settings plan.

    >>> from pathlib import Path
    >>> round_counts(Run(Path("run"), {"rounds": 100}, [{"number": 7}]))
    (7, 100)
    """
    total = run.config.get("rounds")
    return run.number, total if isinstance(total, int) else None


def total(run: Run, key: str) -> float:
    """A count that grows over the run, e.g. seconds, as the result says or the last round; NaN if neither does.

    >>> from pathlib import Path
    >>> total(Run(Path("run"), {}, [{"number": 1, "seconds": 2.5}]), "seconds")
    2.5
    """
    return as_float((run.result or {}).get(key, run.last(key)))


def tested_accuracy(run: Run) -> str | None:
    """The accuracy on test images with its 95 % interval, if the result has one.

    >>> from pathlib import Path
    >>> tested_accuracy(Run(Path("run"), {}, [{"number": 1}], result={"test": {"accuracy": 0.5, "images": 100}}))
    '50.0 % (40.4–59.6 %)'
    """
    test = (run.result or {}).get("test")
    if not isinstance(test, Mapping) or "accuracy" not in test:
        return None
    return with_interval(as_float(test["accuracy"]), as_float(test.get("images")))


def table_measure(run: Run) -> str:
    """Data set and split of the accuracies by the table; empty if the run has not recorded them.

    >>> from pathlib import Path
    >>> table_measure(Run(Path("run"), {"table_measure": "cifar10_test"}, []))
    'cifar10 test'
    """
    return str(run.config.get("table_measure", "")).replace("_", " ")


def cost_target(run: Run) -> tuple[str, float]:
    """The unit of a search's cost target, and the target; an empty unit if there is none.

    >>> from pathlib import Path
    >>> cost_target(Run(Path("run"), {"cost": {"kind": "latency", "target": 2.5}}, []))
    ('milliseconds', 2.5)
    """
    cost = run.config.get("cost")
    known = cost if isinstance(cost, Mapping) else {}
    return UNITS.get(str(known.get("kind")), ""), as_float(known.get("target"))


def amount(value: float) -> str:
    """A cost: counts in full, milliseconds with three digits.

    >>> amount(559386.0), amount(2.3456)
    ('559,386', '2.35')
    """
    return f"{value:,.0f}" if value >= 1000 else number(value)


def data_name(run: Run) -> str:
    """The data's name, as the settings have it.

    >>> from pathlib import Path
    >>> data_name(Run(Path("run"), {"data": "digits"}, [])), data_name(Run(Path("run"), {}, []))
    ('digits', 'own data')
    """
    data = run.config.get("data", "own data")
    return str(data.get("name", "own data")) if isinstance(data, Mapping) else str(data)


def rows(value: Any, prefix: str = "") -> Rows:
    """Nested settings as rows with the names that the command line uses.

    >>> rows({"weights": {"rate": 0.1}, "seed": None})
    [('weights.rate', '0.1'), ('seed', 'not set')]
    """
    if isinstance(value, Mapping):
        nested = [rows(inner, f"{prefix}.{key}" if prefix else str(key)) for key, inner in value.items()]
        return [row for inner in nested for row in inner]
    listed = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return [(prefix or "value", "not set" if value is None else listed)]
