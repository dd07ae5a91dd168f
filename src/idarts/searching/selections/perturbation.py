"""DARTS-PT's selection (Wang et al. 2021, arXiv:2108.04392): each decision keeps the option whose removal costs most.

Where a node keeps some of the edges that enter it (two in DARTS' space), it keeps those whose removal costs most, once
all operations are chosen. Where edges have trained weights β (PC-DARTS), these decide, with α.

With `tune`, decisions come in a random order, and the weights are trained for so many steps after each one, with the
decisions that are made: all of the paper's method. Without it, nothing is trained and they come in the order of α.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from typing import TYPE_CHECKING, ClassVar

import torch

from idarts.errors import InputError
from idarts.layers.mixture import Mixture
from idarts.searching.judge import FORWARD_COST, Judge
from idarts.searching.registries import SELECTIONS
from idarts.searching.strategy import Selected

if TYPE_CHECKING:
    from idarts.searching.loop import Search

Decision = tuple[str, list[int]]  # rows of an α: one, for the operation there, or those that enter a node, for edges
LEAD, FLAT = 10.0, 1e-3  # what makes the edges that stay the largest of α, and the others the smallest


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
            operations = [(name, [row]) for name, value in projection.kept.items() for row in range(len(value))]
            decisions = [*self._ordered(operations), *self._ordered(nodes(search))]
            looks = [projection.cost_of(*decision) for decision in decisions]
            for place, decision in enumerate(decisions):
                if search.seconds_left() <= 0:
                    break
                search.on_message(f"selection: perturbation, decision {place + 1} of {len(decisions)}")
                with search.clock:
                    projection.decide(*decision)
                projection.tune(projection.affordable(self.tune, sum(looks[place + 1 :]), len(decisions) - place))
        return Selected(search.pick(projection.kept), projection.cost)

    def _ordered(self, decisions: list[Decision]) -> list[Decision]:
        places = torch.randperm(len(decisions)).tolist() if self.tune and decisions else range(len(decisions))
        return [decisions[place] for place in places]

    def seconds(self, search: "Search") -> float:
        """As long as a judgement of each option and edge, at the pace of the rounds so far."""
        entered = nodes(search)
        options: int = sum(alpha.numel() for alpha in search.net.alpha.values()) + sum(len(rows) for _, rows in entered)
        tuning = self.tune * (sum(len(alpha) for alpha in search.net.alpha.values()) + len(entered))
        return search.seconds_per_evaluation() * (FORWARD_COST * options * search.selection.batches + tuning)


def nodes(search: "Search") -> list[Decision]:
    """The edges that enter each node of which it keeps only some, by the names of α.

    Where an edge has one option left, no α could say that another edge is preferred to it.
    """
    net = search.net
    if net.edges_kept is None or net.beta or any(sum(row) < 2 for rows in search.mask.values() for row in rows):
        return []
    entering: dict[tuple[str, int], list[int]] = {}
    for name, readers in net.readers.items():
        for row, reader in enumerate(readers):
            entering.setdefault((name, reader), []).append(row)
    return [(name, rows) for (name, _), rows in entering.items() if len(rows) > net.edges_kept]


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
        self.gone = {name: torch.zeros(len(value), dtype=torch.bool) for name, value in self.kept.items()}

    def options(self, name: str, row: int) -> list[int]:
        """The columns that the decision can take."""
        alive = self.search.mask[name][row]
        return [column for column, on in enumerate(alive) if on and column != self.search.net.none]

    def cost_of(self, name: str, rows: list[int]) -> float:
        """Of a decision, in gradient evaluations, without tuning."""
        count = len(rows) if len(rows) > 1 else len(self.options(name, rows[0]))
        return self.judge.cost * count if count > 1 else 0.0

    def decide(self, name: str, rows: list[int]) -> None:
        """Keep the option, or the edges, whose removal costs most."""
        if len(rows) > 1:
            self._keep_edges(name, rows)
        elif len(self.options(name, rows[0])) > 1:
            self._keep_option(name, rows[0])
        self.cost += self.cost_of(name, rows)

    def _keep_option(self, name: str, row: int) -> None:
        value, options = self.kept[name], self.options(name, row)
        scores = [self.judge(self.mixtures((name, row, column))) for column in options]
        missed, first = options[scores.index(min(scores))], int(value[row].argmax())
        # Swapped, so that a rule that compares decisions sees no change.
        value[row, [missed, first]] = value[row, [first, missed]]
        self.mixing[name][row] = -torch.inf
        self.mixing[name][row, missed] = 0.0

    def _keep_edges(self, name: str, rows: list[int]) -> None:
        """The space takes the edges whose largest option weighs most, so α is raised there, and levelled elsewhere."""
        scores = [self.judge(self.mixtures((name, row, None))) for row in rows]
        best_last = sorted(range(len(rows)), key=lambda place: -scores[place])
        leaving = [rows[place] for place in best_last[: -(self.search.net.edges_kept or 0)]]
        value = self.kept[name]
        for row in rows:
            if row in leaving:
                self.gone[name][row] = True
                value[row] = FLAT * (value[row] - value[row].max())
            else:
                value[row, max(self.options(name, row), key=value[row].tolist().__getitem__)] += LEAD

    @torch.no_grad()
    def mixtures(self, without: tuple[str, int, int | None] | None = None) -> dict[str, Mixture]:
        """The softmax of what is open, without an option or a whole edge; edges keep their weights β."""
        weights = {key: value.softmax(dim=-1) for key, value in self.mixing.items()}
        stay = {key: 1.0 - gone.to(weights[key]) for key, gone in self.gone.items()}
        if without is not None:
            name, row, column = without
            if column is None:
                stay[name][row] = 0.0
            else:
                others = self.mixing[name][row].clone()
                others[column] = -torch.inf
                weights[name][row] = others.softmax(dim=-1)
        mixtures = {key: Mixture(stay[key][:, None] * value, bypass=stay[key]) for key, value in weights.items()}
        return {key: self.search.net.weighed(key, mixture) for key, mixture in mixtures.items()}

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
