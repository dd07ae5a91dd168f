"""One level, as in SNAS: the batch and the loss that step w also step α (Xie et al. 2019, arXiv:1812.09926).

The last of the T weight steps gives both gradients from one pass, at the same w and for the same draw. α's gradient
costs nothing then; a look at a validation batch, which only reports, costs a forward pass.

SNAS selects the largest option of every edge, `none` included, and keeps all edges: that is `argmax` with `none` in a
space that has an operation on every edge. A space that keeps two edges a node does so here as well. SNAS' penalty on
the logarithm of the cost is left out; `cost.kind` has a penalty with a target.
"""

from typing import TYPE_CHECKING

import torch

from idarts.engine.ranks import all_mean
from idarts.errors import NotFiniteError
from idarts.hypergrad import FirstOrder
from idarts.searching.hypergradients import require_derivatives
from idarts.searching.judge import look
from idarts.searching.registries import STRATEGIES
from idarts.searching.round import Step
from idarts.searching.strategies.gradient import Stepping

if TYPE_CHECKING:
    from idarts.searching.loop import Search


@STRATEGIES.register("one-level")
class OneLevel(Stepping):
    """One step on α along the gradient of the training loss in the last weight step."""

    def __init__(self, search: "Search") -> None:
        super().__init__(search)
        require_derivatives(search.settings.relaxation, self.weights_relaxation, FirstOrder())
        assert search.weights is not None
        self.weights = search.weights
        self.weights.also = self.alphas

    def step(self) -> Step:
        grads = [all_mean(grad) for grad in self.weights.also_grads]
        norm = torch.cat([grad.reshape(-1) for grad in grads]).norm().item()
        if not torch.tensor(norm).isfinite():
            raise NotFiniteError("the gradient of α is not finite")
        self.move(grads)
        seen = look(self.search, self.mix(self.relaxation))
        return Step(seen.loss, seen.accuracy, {"norm": norm})
