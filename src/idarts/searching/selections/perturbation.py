"""DARTS-PT's selection (Wang et al. 2021, arXiv:2108.04392): each decision keeps the option whose removal costs most.

With `tune`, decisions come in a random order, and the weights are trained for so many steps after each one, with the
decisions that are made: all of the paper's method. Without it, nothing is trained and they come in the order of α.
"""

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor

from idarts.errors import InputError
from idarts.layers.mixture import Mixture
from idarts.searching.judge import FORWARD_COST, Judge
from idarts.searching.registries import SELECTIONS
from idarts.searching.strategy import Selected

if TYPE_CHECKING:
    from idarts.searching.loop import Search


@SELECTIONS.register("perturbation")
class Perturbation:
    """Decision by decision: remove each option in turn, keep the one whose removal costs most, then fix the decision.

    The decisions that are still open are mixed by the softmax. `tune` steps at the last learning rate follow each one.
    Where minutes are limited, these are as many as there is time for; without time, α makes the decisions that remain.
    """

    needs_supernet: ClassVar[bool] = True

    def __init__(self, tune: int = 0) -> None:
        if tune < 0:
            raise InputError(f"selection.options: tune is {tune}, expected a whole number of at least 0")
        self.tune = tune

    def __call__(self, search: "Search") -> Selected:
        with _weights_kept(search if self.tune else None):
            projection = Projection(search)
            decisions = self._order(projection.kept)
            looks = {place: projection.cost_of(name, row) for place, (name, row) in enumerate(decisions)}
            for place, (name, row) in enumerate(decisions):
                if search.seconds_left() <= 0:
                    break
                search.on_message(f"selection: perturbation, decision {place + 1} of {len(decisions)}")
                with search.clock:
                    projection.decide(name, row)
                del looks[place]
                projection.tune(projection.affordable(self.tune, sum(looks.values()), len(looks) + 1))
        return Selected(search.pick(projection.kept), projection.cost)

    def _order(self, kept: Mapping[str, Tensor]) -> list[tuple[str, int]]:
        rows = [(name, row) for name, value in kept.items() for row in range(len(value))]
        return [rows[place] for place in torch.randperm(len(rows)).tolist()] if self.tune else rows

    def seconds(self, search: "Search") -> float:
        """As long as a judgement of each option, at the pace of the rounds so far."""
        options: int = sum(alpha.numel() for alpha in search.net.alpha.values())
        tuning = self.tune * sum(len(alpha) for alpha in search.net.alpha.values())
        return search.seconds_per_evaluation() * (FORWARD_COST * options * search.selection.batches + tuning)


class Projection:
    """The decisions made so far, and the supernet that mixes the options that are still open."""

    def __init__(self, search: "Search") -> None:
        self.search, self.judge, self.cost = search, Judge.of(search), 0.0
        self.rate, self.pace = search.rate(), search.seconds_per_evaluation()  # as they were after the last round
        self.kept = {name: alpha.detach().clone() for name, alpha in search.net.alpha.items()}
        # A decision that is made has one option left here.
        self.mixing = {name: value.clone() for name, value in search.living().items()}
        if not search.selection.none and search.net.none is not None:
            for value in self.mixing.values():
                value[:, search.net.none] = -torch.inf  # it took no part in the training, or must not here

    def options(self, name: str, row: int) -> list[int]:
        """The columns that the decision can take."""
        alive = self.search.mask[name][row]
        return [column for column, on in enumerate(alive) if on and column != self.search.net.none]

    def cost_of(self, name: str, row: int) -> float:
        """Of a decision, in gradient evaluations, without tuning."""
        count = len(self.options(name, row))
        return self.judge.cost * count if count > 1 else 0.0

    def decide(self, name: str, row: int) -> None:
        """Keep the option whose removal costs most."""
        value, options = self.kept[name], self.options(name, row)
        if len(options) < 2:
            return
        scores = [self.judge(self.mixtures(name, row, column)) for column in options]
        missed, first = options[scores.index(min(scores))], int(value[row].argmax())
        # Swapped, so that a rule that compares decisions sees no change.
        value[row, [missed, first]] = value[row, [first, missed]]
        self.mixing[name][row] = -torch.inf
        self.mixing[name][row, missed] = 0.0
        self.cost += self.cost_of(name, row)

    @torch.no_grad()
    def mixtures(self, name: str = "", row: int = 0, column: int = 0) -> dict[str, Mixture]:
        """The softmax of what is open, without one option of the decision that is named; edges keep their weights β."""
        weights = {key: value.softmax(dim=-1) for key, value in self.mixing.items()}
        if name:
            others = self.mixing[name][row].clone()
            others[column] = -torch.inf
            weights[name][row] = others.softmax(dim=-1)
        return {key: self.search.net.weighed(key, Mixture(value)) for key, value in weights.items()}

    def affordable(self, steps: int, looks: float, decisions: int) -> int:
        """So many steps, or the share of one of the decisions in the time that is left beside the looks to come."""
        left = self.search.seconds_left()
        if not self.pace or math.isinf(left):
            return steps
        return max(0, min(steps, int((left / self.pace - looks) / decisions)))

    def tune(self, steps: int) -> None:
        """Weight steps with the decisions made so far."""
        weights = self.search.weights
        assert weights is not None  # a judge has looked at the supernet before
        mixtures = self.mixtures()
        for _ in range(steps):
            with self.search.clock:
                weights.step(lambda: mixtures, self.rate)
            self.cost += weights.evaluations


@contextmanager
def _weights_kept(search: "Search | None") -> Iterator[None]:
    """Restore the weights of the last round afterwards, also where the selection is stopped."""
    if search is None or search.weights is None:
        yield
        return
    net, before, optimiser = search.net, deepcopy(search.net.state_dict()), deepcopy(search.weights.state_dict())
    try:
        yield
    finally:
        net.load_state_dict(before)
        search.weights.load_state_dict(optimiser)
