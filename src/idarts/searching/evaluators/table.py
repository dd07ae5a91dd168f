"""A benchmark's table: accuracies after real training, looked up. Only for baselines that read it by design."""

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from idarts.arch import Architecture
from idarts.errors import InputError
from idarts.searching.evaluator import Evaluation, Evaluator
from idarts.searching.registries import EVALUATORS
from idarts.tables import RowTable, Table

if TYPE_CHECKING:
    from idarts.searching.loop import Search

SHORT, WHOLE = 12, 200  # epochs of NAS-Bench-201's short and whole trainings
Look = Callable[[Architecture], tuple[float, float]]  # validation accuracy in percent, and the seconds of its training


def looking(table: Table, dataset: str = "cifar10") -> Look:
    """How NAS-Bench-201's authors read a table: by short trainings where it has them, else by whole ones.

    A table that does not know how long a training took says 0 seconds.
    """

    def look(architecture: Architecture) -> tuple[float, float]:
        facts: Any = table.details(architecture).get(dataset, {}) if isinstance(table, RowTable) else {}
        if not {"valid", "valid_12", "train_time"} <= set(facts):
            return table.accuracy(architecture, dataset, "valid"), 0.0
        if facts["valid_12"] is None:
            return facts["valid"], facts["train_time"]
        return facts["valid_12"], facts["train_time"] * SHORT / WHOLE

    return look


@EVALUATORS.register("table")
class TableEvaluator(Evaluator):
    """The validation accuracy that the table has; every look-up is counted as a query.

    No gradient is evaluated, so it costs nothing here: a search with it is a baseline, not to be compared by cost.
    """

    needs: ClassVar[tuple[str, ...]] = ("table",)

    def __init__(self, search: "Search") -> None:
        if search.task.table is None:
            raise InputError(
                "evaluator.kind table needs the benchmark's table of this space, and there is none; give its folder "
                "with --tables, or use --evaluator.kind trials"
            )
        warnings.warn(
            "this search reads the benchmark's table (evaluator.kind table): it is a baseline, and its result says "
            "nothing about a search that has to train",
            UserWarning,
            stacklevel=2,
        )
        self.look, self.queries, self.seconds = looking(search.task.table), 0, 0.0

    def __call__(self, architecture: Architecture) -> Evaluation:
        valid, seconds = self.look(architecture)
        self.queries, self.seconds = self.queries + 1, self.seconds + seconds
        measures: dict[str, float | None] = {"queries": float(self.queries), "simulated_seconds": self.seconds}
        return Evaluation(valid / 100, 0.0, accuracy=valid / 100, measures=measures)

    def state_dict(self) -> dict[str, Any]:
        return {"queries": self.queries, "seconds": self.seconds}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.queries, self.seconds = state["queries"], state["seconds"]
