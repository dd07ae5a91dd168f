"""DARTS-PT's selection (Wang et al. 2021, arXiv:2108.04392): each decision keeps the option whose removal costs most.

With `tune`, decisions come in a random order, and the weights are trained for so many steps after each one, with the
decisions that are made: all of the paper's method. Without it, nothing is trained and they come in the order of α.
"""

from collections.abc import Mapping
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
    """

    needs_supernet: ClassVar[bool] = True

    def __init__(self, tune: int = 0) -> None:
        if tune < 0:
            raise InputError(f"selection.options: tune is {tune}, expected a whole number of at least 0")
        self.tune = tune

    def __call__(self, search: "Search") -> Selected:
        judge = Judge.of(search)
        search.on_message("selection: perturbation")
        net, cost = search.net, 0.0
        if self.tune and search.weights is not None:
            before, optimiser = deepcopy(net.state_dict()), deepcopy(search.weights.state_dict())
        kept = {name: alpha.detach().clone() for name, alpha in net.alpha.items()}
        # A decision that is fixed has one option left here.
        mixing = {name: value.clone() for name, value in search.living().items()}
        if not search.selection.none and net.none is not None:
            for value in mixing.values():
                value[:, net.none] = -torch.inf  # it took no part in the training, or must not here
        for name, row in self._order(kept):
            value, alive = kept[name], search.mask[name][row]
            options = [column for column in range(value.shape[1]) if column != net.none and alive[column]]
            scores = [judge(_without(mixing, name, row, column)) for column in options]
            cost += judge.cost * len(options)
            missed, first = options[scores.index(min(scores))], int(value[row].argmax())
            # Swapped, so that a rule that compares decisions sees no change.
            value[row, [missed, first]] = value[row, [first, missed]]
            mixing[name][row] = -torch.inf
            mixing[name][row, missed] = 0.0
            cost += self._tune(search, mixing)
        if self.tune and search.weights is not None:  # the search keeps the weights of its last round
            net.load_state_dict(before)
            search.weights.load_state_dict(optimiser)
        return Selected(search.pick(kept), cost)

    def _order(self, kept: Mapping[str, Tensor]) -> list[tuple[str, int]]:
        rows = [(name, row) for name, value in kept.items() for row in range(len(value))]
        return [rows[place] for place in torch.randperm(len(rows)).tolist()] if self.tune else rows

    def _tune(self, search: "Search", mixing: Mapping[str, Tensor]) -> float:
        """Weight steps with the decisions made so far; what they cost."""
        weights, cost = search.weights, 0.0
        mixtures = {name: Mixture(value.softmax(dim=-1)) for name, value in mixing.items()}
        for _ in range(self.tune):
            assert weights is not None  # a judge has looked at the supernet before
            weights.step(lambda: mixtures, search.rate())
            cost += weights.evaluations
        return cost

    def seconds(self, search: "Search") -> float:
        """As long as a judgement of each option, at the pace of the rounds so far."""
        options: int = sum(alpha.numel() for alpha in search.net.alpha.values())
        tuning = self.tune * sum(len(alpha) for alpha in search.net.alpha.values())
        return search.seconds_per_evaluation() * (FORWARD_COST * options * search.selection.batches + tuning)


def _without(values: Mapping[str, Tensor], name: str, row: int, column: int) -> dict[str, Mixture]:
    """The softmax of all options, with one taken away."""
    weights = {key: value.softmax(dim=-1) for key, value in values.items()}
    others = values[name][row].clone()
    others[column] = -torch.inf
    weights[name][row] = others.softmax(dim=-1)
    return {key: Mixture(value) for key, value in weights.items()}
