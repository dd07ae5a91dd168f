"""Gradient descent on α by the hypergradient: DARTS, iDARTS and all methods that relax the choice of options."""

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor

from idarts.arch import Architecture
from idarts.engine.ranks import all_mean, world
from idarts.errors import InputError, SingularCurvatureError
from idarts.hypergrad import ALONE, Averaging, Estimate, Method, hypergradient, lift
from idarts.hypergrad.products import GAUSS_NEWTON_COST
from idarts.hypergrad.spectrum import COLD_ITERATIONS
from idarts.layers.mixture import Mixture
from idarts.searching.automatic import alpha_rate
from idarts.searching.curvature import measure
from idarts.searching.judge import look
from idarts.searching.registries import PENALTIES, RELAXATIONS, RULES, STRATEGIES, build_part
from idarts.searching.relaxations.gumbel import gumbel_noise
from idarts.searching.round import Step, judged
from idarts.searching.stage import open_decisions
from idarts.searching.strategy import Strategy

if TYPE_CHECKING:
    from idarts.searching.loop import Search
    from idarts.searching.settings import Config


FLAT_ROUNDS = 20  # between two attempts to measure the curvature of a loss that had none


class Relaxing(Strategy):
    """What strategies with a relaxation of α share: how weights are mixed, and what α selects."""

    def __init__(self, search: "Search") -> None:
        super().__init__(search)
        weights = search.settings.weights
        self.relaxation = self.weights_relaxation = search.relaxation
        if weights.relaxation is not None:
            self.weights_relaxation = build_part(RELAXATIONS, weights.relaxation, weights.relaxation_options)

    def mixtures(self) -> dict[str, Mixture]:
        return self.mix(self.weights_relaxation)

    def mix(self, relaxation: Any) -> dict[str, Mixture]:
        """What the supernet mixes under a relaxation, at the current share of the budget."""
        search, net = self.search, self.search.net
        return {name: net.weighed(name, search.relaxed(relaxation, name)(alpha)) for name, alpha in net.alpha.items()}

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


class Stepping(Relaxing):
    """What strategies share that step α along a gradient: the rule, and what is added that depends on α alone."""

    steps_alpha: ClassVar[bool] = True

    @classmethod
    def batches_per_round(cls, settings: "Config") -> int:
        """T, and those that the hypergradient takes."""
        return settings.inner_steps + settings.hypergradient.build(1.0).inner_losses

    def __init__(self, search: "Search") -> None:
        super().__init__(search)
        alpha = search.settings.alpha
        self.alphas = search.net.architecture_parameters()
        self.automatic = alpha.rate == "auto"
        self.rule = RULES[alpha.rule](self.alphas, replace(alpha, rate=1.0) if self.automatic else alpha)
        if self.automatic:
            self.rule.rate = self.alpha_rate()
        self.penalty = build_part(PENALTIES, alpha.penalty, alpha.penalty_options)

    def move(self, grads: Sequence[Tensor]) -> None:
        """One step of α along a gradient of the validation loss; a rule may let options leave after it."""
        search, used = self.search, self.search.used()
        if search.cost:
            grads = [grad + more for grad, more in zip(grads, search.cost.gradient(used), strict=True)]
        if search.settings.alpha.penalty != "none" and open_decisions(search.mask):
            value = self.penalty(dict(search.net.alpha.items()), search.mask, used)
            added = torch.autograd.grad(value, self.alphas, allow_unused=True, materialize_grads=True)
            grads = [grad + more for grad, more in zip(grads, added, strict=True)]
        if self.automatic:
            self.rule.rate = self.alpha_rate()
        self.rule.step(grads)
        if hasattr(self.rule, "survivors"):
            alphas, left = dict(search.net.alpha.items()), search.rounds_left()
            search.mask = self.rule.survivors(alphas, search.mask, left, search.net.fewest)

    def alpha_rate(self) -> float:
        """α's rate where the settings leave it open: from the α steps that the budget allows."""
        rate: float = getattr(self.rule, "automatic_rate", alpha_rate)(self.search.alpha_rounds())
        return rate

    def state_dict(self) -> dict[str, Any]:
        return {"rule": self.rule.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.rule.load_state_dict(state["rule"])


@STRATEGIES.register("gradient")
class Gradient(Stepping):
    """One step on α by the stochastic hypergradient (Eq. 9 of the paper).

    L2 is the loss of one validation batch; L1 is the loss of one training batch, or of as many as the estimator takes.
    """

    measures_curvature: ClassVar[bool] = True

    def __init__(self, search: "Search") -> None:
        super().__init__(search)
        settings, self.w = search.settings, search.net.weight_parameters()
        self.averaging = Averaging(all_mean, settings.distributed == "synchronised") if world() > 1 else ALONE
        self.state: Any = None  # of the estimator, between calls
        self.flat = 0  # rounds until the curvature is measured again

    def step(self) -> Step:
        search, net, loss = self.search, self.search.net, self.search.task.loss
        w = self.w
        method = search.settings.hypergradient.build(search.rate())
        gauss_newton = getattr(method, "curvature", None) == "gauss_newton"
        net.relaxations = {name: search.relaxed(self.relaxation, name) for name in net.alpha}
        valid = next(search.task.valid)
        # First order does not look at L1: it gets the batch of L2, and no training batch is drawn for it.
        batches = [next(search.task.train) for _ in range(method.inner_losses)] or [valid]
        watched = measure(search, valid)
        seen: list[Tensor] = []

        def outer_loss(outputs: Any, targets: Any) -> Tensor:
            if gauss_newton and not isinstance(outputs, Tensor):  # the first pass of all
                raise InputError(
                    f"the model returns a {type(outputs).__name__}, but the Gauss–Newton curvature needs one tensor; "
                    "use hypergradient.curvature hessian, or a model that returns one tensor"
                )
            value = loss(outputs, targets)
            seen.append(judged(value, outputs, targets))
            return value

        inner = [lift(net, loss, batch, w, self.alphas) for batch in batches]
        outer = lift(net, outer_loss, valid, w, self.alphas)
        estimate = self._estimate(method, inner, outer)
        for device in {torch.device("cpu"), search.device}:
            torch.rand((), device=device)  # a hypergradient leaves no trace there: else weights would draw as it did
        self.move([grad.clone() for grad in estimate.grads])
        self.state = estimate.state
        facts = estimate.diagnostics
        search.spent.gradient_evaluations += facts.gradient_evaluations
        norm = torch.cat([grad.reshape(-1) for grad in estimate.grads]).norm()
        valid_loss, accuracy, length = torch.stack([estimate.outer_loss, all_mean(seen[-1][1]), norm]).tolist()
        share = facts.implicit_share if method.needs_inner else None  # first order has no implicit part
        measures = {"implicit_share": share, "contraction": facts.contraction, "step": facts.step}
        return Step(valid_loss, accuracy, {"norm": length, **measures, **watched})

    def _estimate(self, method: Method, inner: list[Any], outer: Any) -> Estimate:
        """The hypergradient; where L1 has no curvature, γ is the learning rate of w, because there is no 1/λ_max.

        The Gauss–Newton matrix is 0 if the loss is piecewise linear in the outputs, as the mean absolute error is. The
        series is then Σ_{k=0..K} (I − γ·0)^k γg = (K + 1)γg. That is the derivative through K + 1 steps of gradient
        descent at the rate γ, to the same order: these steps do not change the slope.
        """

        def at(one: Method) -> Estimate:
            losses = inner[0] if len(inner) == 1 else inner
            return hypergradient(losses, outer, self.w, self.alphas, one, state=self.state, averaging=self.averaging)

        search, automatic = self.search, getattr(method, "step", None) == "auto"
        if not (self.flat and automatic):
            try:
                return at(method)
            except SingularCurvatureError:
                if not automatic:
                    raise
            warnings.warn(
                "the training loss has no curvature here, as a loss that is piecewise linear in the outputs; "
                "hypergradient.step auto takes the learning rate of w for γ",
                UserWarning,
                stacklevel=2,
            )
            self.flat = FLAT_ROUNDS
            search.spent.gradient_evaluations += COLD_ITERATIONS * GAUSS_NEWTON_COST  # what the attempt took
        self.flat -= 1
        return at(replace(search.settings.hypergradient, step="rate").build(search.rate()))

    def state_dict(self) -> dict[str, Any]:
        flat = {"flat": self.flat} if self.flat else {}
        return {**super().state_dict(), "estimator": self.state, **flat}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict(state)
        self.state, self.flat = _to(state["estimator"], self.search.device), state.get("flat", 0)


def _to(state: Any, device: torch.device) -> Any:
    """A tree of tensors and numbers, on a device."""
    if isinstance(state, dict):
        return {name: _to(part, device) for name, part in state.items()}
    if isinstance(state, list | tuple):
        return type(state)(_to(part, device) for part in state)
    return state.to(device) if isinstance(state, Tensor) else state
