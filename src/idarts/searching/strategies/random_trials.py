"""Trials alone: random architectures, halved by real trainings as the selection `trials` halves the neighbours of α.

The control for a search that ends in trials: as many random architectures as the same cost allows, with the same trials
and no search before them. `evaluator.steps`, `rate` and `batches` are those of the first trials, and mean what they
mean for the selection.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
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
    from idarts.searching.settings import Config


Limit = tuple[Callable[[int], float], float]  # the cost of a trial of some steps, and how much of it all may cost


@STRATEGIES.register("random-trials")
class RandomTrials(Drawing):
    """A round is one trial. How many architectures there are follows from the budget: `rounds`, `epochs` and
    `gradient_evaluations`.

    All are trained, the better half again for twice as many steps, until one is left.
    """

    needs: ClassVar[tuple[str, ...]] = ("sample", "network")
    shares_weights: ClassVar[bool | None] = False

    def __init__(self, search: "Search") -> None:
        super().__init__(search)
        task, settings = search.task, search.settings.evaluator
        if task.network is None:
            raise InputError("random-trials trains networks, but none can be built from this model; use another method")
        valid = [next(task.valid) for _ in range(settings.batches)]
        self.trial = replace(Trial.of(search, valid), rate=settings.rate)
        self.steps = settings.steps
        self.candidates = [self.draw() for _ in range(self._affordable())]  # of the current rung
        self.tried: list[Tried] = []  # in it, so far

    @classmethod
    def batches_per_round(cls, settings: "Config") -> int:
        """Those of the shortest trials, so that no number of epochs gives too few rounds."""
        return settings.evaluator.steps

    def _affordable(self) -> int:
        """How many architectures there are at first: as many as every limit allows."""
        settings, steps = self.search.settings, self.steps
        limits: list[Limit] = [(lambda _: 1.0, self.search.total)]
        if settings.epochs is not None:
            limits.append((float, settings.epochs * len(self.search.task.train)))
        if settings.gradient_evaluations is not None:
            limits.append((self.trial.cost, settings.gradient_evaluations))
        return largest_count(limits, steps)

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


def largest_count(limits: Sequence[Limit], steps: int) -> int:
    """The largest number of candidates, two at least, whose halving keeps within all limits.

    >>> largest_count([(float, 80.0)], steps=10)  # four of 10 steps, two of 20
    4
    """
    number = 2
    while all(halving_cost(cost, number + 1, steps) <= most for cost, most in limits):
        number += 1
    return number


def halving_cost(cost: Callable[[int], float], number: int, steps: int) -> float:
    """What successive halving costs, if a trial of some steps costs `cost(steps)`.

    >>> halving_cost(lambda _: 1.0, 9, 10)  # 9 + 4 + 2 trials
    15.0
    """
    rungs = range(int(math.log2(number)))
    return sum((number >> rung) * cost(steps << rung) for rung in rungs)
