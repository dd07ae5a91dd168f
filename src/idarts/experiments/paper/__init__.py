"""The paper's evidence as commands: each experiment resumable, its published values beside the measured ones."""

from collections.abc import Callable
from pathlib import Path

from idarts.errors import InputError
from idarts.experiments.frame import Experiment, Request, conduct
from idarts.experiments.paper.along import FIGURE_1, FIGURE_K
from idarts.experiments.paper.hypergradients import TABLE_HYPERGRADIENTS
from idarts.experiments.paper.sensitivity import FIGURE_2, TABLE_K_EXPERIMENT
from idarts.experiments.paper.table_1 import TABLE

__all__ = ["EXPERIMENTS", "Request", "reproduce"]

EXPERIMENTS: dict[str, Experiment] = {
    "table-1": TABLE,
    "figure-1": FIGURE_1,
    "figure-2": FIGURE_2,
    "figure-k": FIGURE_K,
    "table-k": TABLE_K_EXPERIMENT,
    "table-hypergradients": TABLE_HYPERGRADIENTS,
}


def reproduce(name: str, request: Request, tell: Callable[[str], None] = print) -> Path:
    """Run an experiment, or what is left of it, and return its page.

    >>> reproduce("table-9", Request(Path("out")))
    Traceback (most recent call last):
    idarts.errors.InputError: there is no experiment 'table-9', expected table-1, figure-1, figure-2, figure-k, \
table-k or table-hypergradients
    """
    if name not in EXPERIMENTS:
        known = list(EXPERIMENTS)
        raise InputError(f"there is no experiment {name!r}, expected {', '.join(known[:-1])} or {known[-1]}")
    return conduct(name, EXPERIMENTS[name], request, tell)
