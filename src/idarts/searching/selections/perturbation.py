"""DARTS-PT's rule (Wang et al. 2021), without its tuning in between: each decision keeps the option missed most."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor

from idarts.layers.mixture import Mixture
from idarts.searching.judge import FORWARD_COST, Judge
from idarts.searching.registries import SELECTIONS
from idarts.searching.strategy import Selected

if TYPE_CHECKING:
    from idarts.searching.loop import Search


@SELECTIONS.register("perturbation")
class Perturbation:
    """Decision by decision: remove each option in turn, keep the one whose removal costs most, then fix the decision.

    The decisions that are still open are mixed by the softmax.
    """

    needs_supernet: ClassVar[bool] = True

    def __call__(self, search: "Search") -> Selected:
        judge = Judge.of(search)
        search.on_message("selection: perturbation")
        net, cost = search.net, 0.0
        kept = {name: alpha.detach().clone() for name, alpha in net.alpha.items()}
        # A decision that is fixed has one option left here.
        mixing = {name: value.clone() for name, value in search.living().items()}
        if not search.selection.none and net.none is not None:
            for value in mixing.values():
                value[:, net.none] = -torch.inf  # it took no part in the training, or must not here
        for name, value in kept.items():
            for row in range(len(value)):
                alive = search.mask[name][row]
                options = [column for column in range(value.shape[1]) if column != net.none and alive[column]]
                scores = [judge(_without(mixing, name, row, column)) for column in options]
                cost += judge.cost * len(options)
                missed, first = options[scores.index(min(scores))], int(value[row].argmax())
                # Swapped, so that a rule that compares decisions sees no change.
                value[row, [missed, first]] = value[row, [first, missed]]
                mixing[name][row] = -torch.inf
                mixing[name][row, missed] = 0.0
        return Selected(search.pick(kept), cost)

    def seconds(self, search: "Search") -> float:
        """As long as a judgement of each option, at the pace of the rounds so far."""
        options: int = sum(alpha.numel() for alpha in search.net.alpha.values())
        return search.seconds_per_evaluation() * FORWARD_COST * options * search.selection.batches


def _without(values: Mapping[str, Tensor], name: str, row: int, column: int) -> dict[str, Mixture]:
    """The softmax of all options, with one taken away."""
    weights = {key: value.softmax(dim=-1) for key, value in values.items()}
    others = values[name][row].clone()
    others[column] = -torch.inf
    weights[name][row] = others.softmax(dim=-1)
    return {key: Mixture(value) for key, value in weights.items()}
