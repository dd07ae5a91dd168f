"""Shared weights: the architecture's path in the supernet, as it is trained at this moment."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

import torch

from idarts.arch import Architecture
from idarts.engine.ranks import all_mean
from idarts.errors import NotFiniteError
from idarts.hypergrad.lift import call_module
from idarts.layers.mixture import Mixture
from idarts.searching.evaluator import Evaluation, Evaluator
from idarts.searching.judge import FORWARD_COST, statistics_kept
from idarts.searching.registries import EVALUATORS
from idarts.searching.round import judged

if TYPE_CHECKING:
    from idarts.searching.loop import Search


@EVALUATORS.register("shared-weights")
class SharedWeights(Evaluator):
    """The accuracy on the next `evaluator.batches` validation batches, with each batch's own statistics."""

    needs: ClassVar[tuple[str, ...]] = ("supernet",)
    shares_weights: ClassVar[bool] = True

    def __init__(self, search: "Search") -> None:
        self.search = search

    def __call__(self, architecture: Architecture) -> Evaluation:
        return self.of_path(self.search.net.path(architecture))

    @torch.no_grad()
    def of_path(self, mixtures: Mapping[str, Mixture]) -> Evaluation:
        """The evaluation of what a supernet mixes, which need not be an architecture of the space."""
        net, task = self.search.net, self.search.task
        seen = []
        with statistics_kept(net):
            for _ in range(self.search.settings.evaluator.batches):
                inputs, targets = next(task.valid)
                outputs = call_module(net, inputs, mixtures=mixtures)
                seen.append(judged(task.loss(outputs, targets), outputs, targets))
        loss, accuracy = all_mean(torch.stack(seen).mean(dim=0)).tolist()
        if not torch.tensor(loss).isfinite():
            raise NotFiniteError("the validation loss is not finite")
        return Evaluation.of(loss, accuracy, FORWARD_COST * len(seen))
