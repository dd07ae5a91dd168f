"""Gradient descent on α by the hypergradient: DARTS, iDARTS and all methods that relax the choice of options."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor

from idarts.arch import Architecture
from idarts.engine.ranks import all_mean, world
from idarts.hypergrad import ALONE, Averaging, hypergradient, lift
from idarts.layers.mixture import Mixture
from idarts.searching.judge import look
from idarts.searching.registries import RELAXATIONS, RULES, STRATEGIES, build_part
from idarts.searching.relaxations.gumbel import gumbel_noise
from idarts.searching.round import Step, judged
from idarts.searching.strategy import Strategy

if TYPE_CHECKING:
    from idarts.searching.loop import Search
    from idarts.searching.settings import Config


class Relaxing(Strategy):
    """What strategies with a relaxation of α share: how weights are mixed, and what α stands for."""

    def __init__(self, search: "Search") -> None:
        super().__init__(search)
        name = search.settings.weights.relaxation
        self.relaxation = search.relaxation
        self.weights_relaxation = search.relaxation if name is None else build_part(RELAXATIONS, name, {})

    def mixtures(self) -> dict[str, Mixture]:
        return self.mix(self.weights_relaxation)

    def mix(self, relaxation: Any) -> dict[str, Mixture]:
        """What the supernet mixes under a relaxation, at the present share of the budget."""
        search = self.search
        return {name: search.relaxed(relaxation, name)(alpha) for name, alpha in search.net.alpha.items()}

    def current(self) -> Architecture:
        return self.search.largest()

    def sample(self) -> Architecture:
        """By the softmax of α, where the space takes the largest of a decision."""
        search = self.search
        return search.pick({name: alpha.detach() + gumbel_noise(alpha) for name, alpha in search.net.alpha.items()})


@STRATEGIES.register("fixed")
class Fixed(Relaxing):
    """α stays as it is; only the weights are trained, and validation batches are looked at."""

    def step(self) -> Step:
        return look(self.search, self.mix(self.relaxation))


@STRATEGIES.register("gradient")
class Gradient(Relaxing):
    """One step on α by the hypergradient of one validation batch and the training batches that the method takes."""

    steps_alpha: ClassVar[bool] = True

    @classmethod
    def batches_per_round(cls, settings: "Config") -> int:
        """T, and those that the hypergradient takes."""
        return settings.inner_steps + settings.hypergradient.build(1.0).inner_losses

    def __init__(self, search: "Search") -> None:
        super().__init__(search)
        settings = search.settings
        self.w, self.alphas = search.net.weight_parameters(), search.net.architecture_parameters()
        self.automatic = settings.alpha.rate == "auto"
        alpha = replace(settings.alpha, rate=search.alpha_rate()) if self.automatic else settings.alpha
        self.rule = RULES[alpha.rule](self.alphas, alpha)
        self.averaging = Averaging(all_mean, settings.distributed == "synchronised") if world() > 1 else ALONE
        self.state: Any = None  # of the estimator, between calls

    def step(self) -> Step:
        search, net, loss = self.search, self.search.net, self.search.task.loss
        w = self.w
        method = search.settings.hypergradient.build(search.rate())
        net.relaxations = {name: search.relaxed(self.relaxation, name) for name in net.alpha}
        valid = next(search.task.valid)
        # First order does not look at L1: it gets the batch of L2, and no training batch is drawn in vain.
        batches = [next(search.task.train) for _ in range(method.inner_losses)] or [valid]
        seen: list[Tensor] = []

        def outer_loss(outputs: Any, targets: Any) -> Tensor:
            value = loss(outputs, targets)
            seen.append(judged(value, outputs, targets))
            return value

        inner = [lift(net, loss, batch, w, self.alphas) for batch in batches]
        outer = lift(net, outer_loss, valid, w, self.alphas)
        losses = inner[0] if len(inner) == 1 else inner
        estimate = hypergradient(losses, outer, w, self.alphas, method, state=self.state, averaging=self.averaging)
        for device in {torch.device("cpu"), search.device}:
            torch.rand((), device=device)  # a hypergradient leaves no trace there: else weights would draw as it did
        grads = [grad.clone() for grad in estimate.grads]
        if search.cost:
            grads = [grad + more for grad, more in zip(grads, search.cost.gradient(search.used()), strict=True)]
        if self.automatic:
            self.rule.rate = search.alpha_rate()
        self.rule.step(grads)
        self.state = estimate.state
        facts = estimate.diagnostics
        search.spent.gradient_evaluations += facts.gradient_evaluations
        norm = torch.cat([grad.reshape(-1) for grad in estimate.grads]).norm()
        valid_loss, accuracy, length = torch.stack([estimate.outer_loss, all_mean(seen[-1][1]), norm]).tolist()
        measures = {"implicit_share": facts.implicit_share, "contraction": facts.contraction, "step": facts.step}
        return Step(valid_loss, accuracy, {"norm": length, **measures})

    def state_dict(self) -> dict[str, Any]:
        return {"rule": self.rule.state_dict(), "estimator": self.state}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.rule.load_state_dict(state["rule"])
        self.state = _to(state["estimator"], self.search.device)


def _to(state: Any, device: torch.device) -> Any:
    """A tree of tensors and numbers, on a device."""
    if isinstance(state, dict):
        return {name: _to(part, device) for name, part in state.items()}
    if isinstance(state, list | tuple):
        return type(state)(_to(part, device) for part in state)
    return state.to(device) if isinstance(state, Tensor) else state
