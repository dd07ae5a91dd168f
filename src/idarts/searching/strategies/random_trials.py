"""Trials alone: random architectures, halved by real trainings as the selection `trials` halves the neighbours of α.

The control for a search that ends in trials: as many random architectures as the same cost buys, with the same trials
(`selection.steps`, `selection.rate`, `selection.batches`, `selection.judge`), and no search before them.
"""

import math
from collections.abc import Callable
from itertools import count
from typing import TYPE_CHECKING, Any, ClassVar

from idarts.arch import Architecture, from_json, to_json
from idarts.errors import InputError
from idarts.searching.proposing import Drawing
from idarts.searching.registries import STRATEGIES
from idarts.searching.round import Step
from idarts.searching.selections.trials import Trial, better_half
from idarts.searching.strategy import Tried

if TYPE_CHECKING:
    from idarts.searching.loop import Search


@STRATEGIES.register("random-trials")
class RandomTrials(Drawing):
    """A round is one trial. How many architectures there are follows from `gradient_evaluations`, else from `rounds`.

    All are trained, the better half again for twice as many steps, until one is left.
    """

    needs: ClassVar[tuple[str, ...]] = ("sample", "network")
    shares_weights: ClassVar[bool | None] = False

    def __init__(self, search: "Search") -> None:
        super().__init__(search)
        task, chosen = search.task, search.selection
        if task.network is None:
            raise InputError("random-trials trains networks, but none can be built of this model; use another method")
        self.trial = Trial.of(search, [next(task.valid) for _ in range(chosen.batches)])
        self.steps = chosen.steps
        self.candidates = [self.draw() for _ in range(self._affordable())]  # of the present rung
        self.tried: list[Tried] = []  # in it, so far

    def _affordable(self) -> int:
        budget, trials = self.search.settings.gradient_evaluations, self.search.total
        by_rounds = largest_count(lambda _: 1.0, self.steps, trials)
        return by_rounds if budget is None else min(by_rounds, largest_count(self.trial.cost, self.steps, budget))

    @property
    def finished(self) -> bool:
        return len(self.candidates) == 1

    def step(self) -> Step:
        candidate, steps = self.candidates[len(self.tried)], self.steps
        loss, accuracy = self.trial.measure(candidate, steps)
        self.search.spent.gradient_evaluations += self.trial.cost(steps)
        self.tried.append(Tried(candidate, steps, loss))
        measures = {"candidates": float(len(self.candidates)), "trial_steps": float(steps)}
        if len(self.tried) == len(self.candidates):
            self.candidates, self.tried, self.steps = better_half(self.tried), [], 2 * steps
        return Step(loss, accuracy, {**measures})

    def current(self) -> Architecture:
        """The best of this rung so far or, before its first trial, of the one before: candidates come best first."""
        return min(self.tried, key=lambda one: one.loss).architecture if self.tried else self.candidates[0]

    def state_dict(self) -> dict[str, Any]:
        tried = [one.loss for one in self.tried]
        return {"steps": self.steps, "candidates": [to_json(one) for one in self.candidates], "losses": tried}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.steps, self.candidates = state["steps"], [from_json(text) for text in state["candidates"]]
        pairs = zip(self.candidates, state["losses"], strict=False)
        self.tried = [Tried(candidate, self.steps, loss) for candidate, loss in pairs]


def largest_count(cost: Callable[[int], float], steps: int, budget: float) -> int:
    """The largest number of candidates, two at least, whose halving costs no more than the budget.

    >>> largest_count(float, steps=10, budget=80)  # four of 10 steps, two of 20
    4
    """
    return max(2, next(number for number in count(2) if halving_cost(cost, number, steps) > budget) - 1)


def halving_cost(cost: Callable[[int], float], number: int, steps: int) -> float:
    """What successive halving costs, if a trial of some steps costs `cost(steps)`.

    >>> halving_cost(lambda _: 1.0, 9, 10)  # 9 + 4 + 2 trials
    15.0
    """
    rungs = range(int(math.log2(number)))
    return sum((number >> rung) * cost(steps << rung) for rung in rungs)
