"""PARSEC: α is the prior of paths, and steps by the log evidence (Casale et al. 2019, arXiv:1902.05116).

K paths are drawn from p(path|α) = Π softmax(α), and judged on one validation batch. With the importance weights
ω = softmax(−N·loss), N images in the batch (the likelihood is a product over images; with the mean loss all ω would be
nearly equal), the gradient of the log evidence is Σ ω_k ∇ log p(path_k|α): in logits Σ ω_k·(one-hot of path k) − p, the
marginals of the posterior minus those of the prior. It has a bias that falls with K: with K = 1 nothing is learnt.
The weights' objective is `importance`, with the same weights on a training batch. No code was published.
"""

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from idarts.engine.ranks import all_mean
from idarts.errors import InputError, NotFiniteError
from idarts.hypergrad.lift import call_module
from idarts.searching.judge import FORWARD_COST, statistics_kept
from idarts.searching.objectives.importance import importance
from idarts.searching.registries import STRATEGIES
from idarts.searching.relaxations.sampled import Sampled
from idarts.searching.round import Step, judged
from idarts.searching.strategies.gradient import Stepping

if TYPE_CHECKING:
    from idarts.searching.loop import Search


@STRATEGIES.register("importance")
class Importance(Stepping):
    """One step on α by `paths` drawn paths, weighted by their likelihood."""

    def __init__(self, search: "Search", paths: int = 8) -> None:
        super().__init__(search)
        if paths < 2:
            raise InputError(f"strategy_options: paths is {paths}; one path alone teaches nothing, give at least 2")
        if search.net.beta:
            raise InputError("strategy importance draws paths, which have no edge weights; use another relaxation")
        self.paths = paths

    @torch.no_grad()
    def step(self) -> Step:
        search, net = self.search, self.search.net
        inputs, targets = next(search.task.valid)
        drawn, seen = [], []
        for _ in range(self.paths):
            drawn.append(self.mix(Sampled()))
            with statistics_kept(net):
                outputs = call_module(net, inputs, mixtures=drawn[-1])
            seen.append(judged(search.task.loss(outputs, targets), outputs, targets))
        search.spent.gradient_evaluations += self.paths * FORWARD_COST
        losses, accuracies = all_mean(torch.stack(seen)).unbind(dim=1)
        if not losses.isfinite().all():
            raise NotFiniteError("the validation loss of a path is not finite")
        weights = importance(losses, search.settings.batch)
        with torch.enable_grad():
            grads = [self._gradient(name, [one[name].weights for one in drawn], weights) for name in net.alpha]
            self.move(grads)
        norm = torch.cat([grad.reshape(-1) for grad in grads]).norm()
        mean, accuracy, length, count = torch.stack(
            [weights @ losses, weights @ accuracies, norm, 1 / weights.square().sum()]
        ).tolist()
        return Step(mean, accuracy, {"norm": length, "effective_paths": count})

    def _gradient(self, name: str, paths: list[Tensor], weights: Tensor) -> Tensor:
        """−∇ log evidence in the logits: prior minus posterior marginals of the living options."""
        posterior = torch.stack([weight * path for weight, path in zip(weights, paths, strict=True)]).sum(dim=0)
        prior = self.search.living({name: self.search.net.alpha[name]})[name].softmax(dim=1)
        return prior - posterior
