"""Algorithm 1: train the weights for T steps, step α by the stochastic implicit hypergradient, repeat."""

import math
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from idarts.arch import Architecture
from idarts.engine import Tell
from idarts.engine.gradients import bounded
from idarts.engine.ranks import (
    all_mean,
    begin_alike,
    joint_statistics,
    mean_buffers,
    mean_gradients,
    require_same,
    world,
)
from idarts.errors import InputError, NotFiniteError, SingularCurvatureError
from idarts.hypergrad import ALONE, Averaging, Spectrum, hypergradient, lift
from idarts.hypergrad.isolation import random_states, set_random_states
from idarts.hypergrad.lift import called
from idarts.hypergrad.products import scalar
from idarts.searching.controller import RATE, Controller
from idarts.searching.cost import budget, temperature
from idarts.searching.relaxations import relaxed, require_built
from idarts.searching.round import Round, Stream, judged, peeked, spread
from idarts.searching.selecting import selected
from idarts.searching.selection import FORWARD_COST, largest, statistics_kept
from idarts.searching.settings import Config, Relaxed
from idarts.searching.trials import Build, Tried
from idarts.spaces import Mixture, Supernet
from idarts.tables import Table

Loss = Callable[[Any, Any], Tensor]

PATIENCE = 5  # rounds in a row without finite numbers before the search gives up


class Search:
    """A search in progress. `rounds()` goes on from wherever it stands; its state can be saved between rounds.

    >>> from idarts.data import Batches, load, split
    >>> from idarts.searching import Search, config
    >>> from idarts.spaces import space
    >>> data, found = load("digits"), space("nas-bench-201")
    >>> train, valid = split(data.train, 0.5, seed=0)
    >>> net = found.supernet(found.skeleton.changed(depth=1, channels=4), in_channels=1)
    >>> search = Search(net, Batches(train, 16), Batches(valid, 16), config(rounds=2))
    >>> [round.number for round in search.rounds()]
    [1, 2]
    """

    def __init__(
        self, net: Supernet, train: Stream, valid: Stream, settings: Config, loss: Loss = cross_entropy
    ) -> None:
        self.net, self.train, self.valid, self.settings, self.loss = net, train, valid, settings, loss
        self.total = settings.rounds
        if settings.epochs is not None:
            self.total = max(1, round(settings.epochs * len(train) / settings.batches_a_round))
        # An operation without a part in the relaxation is not trained, so it is not selected either.
        self.selection = replace(settings.selection, none=settings.none and settings.selection.none)
        self.w, self.a = net.weight_parameters(), net.architecture_parameters()
        if not self.w:
            raise InputError("there are no weights to train in this model: all are frozen, or it has none")
        require_built(net, settings)
        begin_alike(net)
        self.averaging = Averaging(all_mean, settings.distributed == "synchronised") if world() > 1 else ALONE
        weights, alpha = settings.weights, settings.alpha
        self.weight_optimizer = torch.optim.SGD(
            self.w, weights.rate, weights.momentum, weight_decay=weights.decay, nesterov=weights.nesterov
        )
        self.scaler = torch.amp.GradScaler(self.a[0].device.type, enabled=settings.precision == "float16")
        self.controller = (
            Controller(net, None if settings.none else net.none).to(self.a[0])
            if settings.hypergradient.order == "reinforce"
            else None
        )
        self.alpha_optimizer = (
            torch.optim.Adam(self.controller.parameters(), RATE)
            if self.controller
            else torch.optim.Adam(self.a, alpha.rate, alpha.betas, weight_decay=alpha.decay)
        )
        self.budget = budget(net, settings, lambda: peeked(train))
        self.spectrum: Spectrum | None = None
        self.build: Build | None = None  # the network of an architecture, to be tried in a selection
        self.tried: list[Tried] = []  # in the selection
        self.tell: Tell = lambda _: None  # hears how warm-up and selection go
        self.truth: Table | None = None  # only to be shown: no step and no selection looks at it
        self.number, self.weight_steps, self.bad_rounds = 0, 0, 0
        self.gradient_evaluations, self.seconds = 0.0, 0.0

    def rounds(self) -> Iterator[Round]:
        """The rounds that remain, one at a time."""
        self.net.train()
        warmup = self.settings.weights.warmup
        while self.weight_steps < warmup and self.used() < 1:
            self.tell(f"warm-up: {self.weight_steps} of {warmup} weight steps")
            started = time.monotonic()
            with self._statistics():
                self._weight_step()
            self._spend(time.monotonic() - started)
        while self.number < self.total and self.used() < 1:
            started = time.monotonic()
            with self._statistics():
                seen = torch.stack([self._weight_step() for _ in range(self.settings.inner_steps)]).mean(dim=0)
                self.number += 1
                found = self._alpha_step(seen)
            self._spend(time.monotonic() - started)
            self._meet()
            yield found
        if not self.number:
            raise InputError(
                "the budget ended before the first step on α, so nothing was found; give more minutes or "
                "gradient_evaluations, or a shorter weights.warmup"
            )

    def _statistics(self) -> AbstractContextManager[None]:
        return joint_statistics(self.settings.batch_norm == "synchronised")

    def _spend(self, seconds: float) -> None:
        """All ranks go by one clock: budget and learning rate hang on it."""
        self.seconds += float(all_mean(torch.tensor(seconds, dtype=torch.float64)))

    def _meet(self) -> None:
        """Between rounds all ranks hold the same state, so that the first one's is everybody's."""
        mean_buffers([self.net])
        require_same({"α": self.a, "w": self.w}, f"after round {self.number}")

    def state_dict(self) -> dict[str, Any]:
        """Tensors and plain values only, so that loading it never runs anything."""
        spectrum = self.spectrum
        return {
            **{name: part.state_dict() for name, part in self._parts().items()},
            "spectrum": None if spectrum is None else [spectrum.vector, spectrum.eigenvalue, spectrum.age],
            "counts": [self.number, self.weight_steps, self.bad_rounds, self.gradient_evaluations],
            "seconds": self.seconds,
            "random": random_states([self.a[0].device]),
        }

    def _parts(self) -> dict[str, Any]:
        """Those that have a state of their own."""
        names = ("net", "weight_optimizer", "alpha_optimizer", "scaler", "train", "valid")
        return {name: getattr(self, name) for name in (*names, *(["controller"] if self.controller else []))}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a saved state, to the bit."""
        missing = self.state_dict().keys() - state.keys()
        if missing:
            raise InputError(f"this is no state of a search: it lacks {', '.join(sorted(missing))}")
        for name, part in self._parts().items():
            part.load_state_dict(state[name])
        self.spectrum = None
        if state["spectrum"] is not None:
            vector, eigenvalue, age = state["spectrum"]
            self.spectrum = Spectrum(vector.to(self.w[0].device), eigenvalue.to(self.w[0].device), age)
        self.number, self.weight_steps, self.bad_rounds, self.gradient_evaluations = state["counts"]
        self.seconds = state["seconds"]
        set_random_states([self.a[0].device], state["random"])

    def current(self) -> Architecture:
        """What α stands for at this moment."""
        return largest(self.net, self.selection)

    def select(self) -> Architecture:
        """What the search has found, by the rule of its settings."""
        with self._statistics():
            found, cost = selected(self)
        self.gradient_evaluations += cost
        return found

    @property
    def sound(self) -> bool:
        """What is not finite must not take a good checkpoint's place."""
        return not self.bad_rounds

    def used(self) -> float:
        """The share of the budget that is used up, in whichever of its measures is the furthest."""
        settings = self.settings
        shares = [self.weight_steps / (self.total * settings.inner_steps + settings.weights.warmup)]
        if settings.minutes is not None:
            shares.append(self.seconds / (60 * settings.minutes))
        if settings.gradient_evaluations is not None:
            shares.append(self.gradient_evaluations / settings.gradient_evaluations)
        return min(max(shares), 1.0)

    def rate(self) -> float:
        """The weights' learning rate now: a cosine from the first to the last value over the budget."""
        weights = self.settings.weights
        return weights.last_rate + (weights.rate - weights.last_rate) * 0.5 * (1 + math.cos(math.pi * self.used()))

    def _weight_step(self) -> Tensor:
        """One SGD step on one training batch; only w's gradients are taken, so nothing gathers in α's."""
        inputs, targets = next(self.train)
        with self._autocast():
            outputs = called(self.net, inputs, mixtures=self._mixtures(self.settings.weights.relaxation))
            loss = scalar(self.loss(outputs, targets), "training")
        own = torch.autograd.grad(self.scaler.scale(loss), self.w, allow_unused=True)
        grads, seen = mean_gradients(own, judged(loss, outputs, targets))
        for parameter, grad in zip(self.w, grads, strict=True):
            parameter.grad = grad
        self.scaler.unscale_(self.weight_optimizer)
        bounded(self.w, seen[0], self.settings.weights.clip)
        for group in self.weight_optimizer.param_groups:
            group["lr"] = self.rate()
        self.scaler.step(self.weight_optimizer)
        self.scaler.update()
        self.weight_optimizer.zero_grad()
        self.weight_steps += 1
        self.gradient_evaluations += 1
        return seen

    def _autocast(self) -> AbstractContextManager[Any]:
        """For weight steps alone: second derivatives in half precision are noise."""
        precision: str = self.settings.precision
        if precision == "float32":
            return nullcontext()
        return torch.autocast(self.a[0].device.type, getattr(torch, precision))

    def _mixtures(self, name: Relaxed | None) -> dict[str, Mixture]:
        """What the supernet mixes in one pass; a path, where a controller draws it."""
        if self.controller:
            return self.controller.drawn_path()
        self.net.relaxation = relaxed(self.net, self.settings, name, self.used())
        return self.net.mixtures()

    def _alpha_step(self, train: Tensor) -> Round:
        """One step on what decides the architecture; `train`: the weight steps' loss and accuracy."""
        try:
            if self.controller:
                learnt = self.controller.learn(self._look, self.settings.hypergradient.samples, self.alpha_optimizer)
                self.controller.show(self.net)
                return self._round(train, learnt)
            if self.settings.hypergradient.order == "none":
                return self._round(train, self._look(self._mixtures(None)))
            return self._hypergradient_step(train)
        except (NotFiniteError, SingularCurvatureError):
            return self._skip(train)

    def _hypergradient_step(self, train: Tensor) -> Round:
        """One Adam step by the hypergradient on one training and one validation batch."""
        self.net.relaxation = relaxed(self.net, self.settings, None, self.used())
        # First order does not look at L1: it gets the batch of L2, and no training batch is drawn in vain.
        outer_batch = next(self.valid)
        inner_batch = next(self.train) if self.settings.hypergradient.order == "implicit" else outer_batch
        inner = lift(self.net, self.loss, inner_batch, self.w, self.a)
        seen: list[Tensor] = []

        def watched(outputs: Any, targets: Any) -> Tensor:
            loss = self.loss(outputs, targets)
            seen.append(judged(loss, outputs, targets))
            return loss

        outer = lift(self.net, watched, outer_batch, self.w, self.a)
        method = self.settings.hypergradient.method(self.rate())
        estimate = hypergradient(inner, outer, self.w, self.a, method, spectrum=self.spectrum, averaging=self.averaging)
        for device in {torch.device("cpu"), self.a[0].device}:
            torch.rand((), device=device)  # a hypergradient leaves no trace there: else weights would draw as it did
        estimate.write_grad(self.a)
        if self.budget:
            self.budget.add_gradient(self.used())
        self.alpha_optimizer.step()
        self.alpha_optimizer.zero_grad()
        self.spectrum = estimate.spectrum
        facts = estimate.diagnostics
        self.gradient_evaluations += facts.gradient_evaluations
        norm = torch.cat([grad.reshape(-1) for grad in estimate.grads]).norm()
        return replace(
            self._round(train, torch.stack([estimate.outer_loss, all_mean(seen[-1][1])])),
            norm=norm.item(),
            implicit_share=facts.implicit_share,
            contraction=facts.contraction,
            step=facts.step,
        )

    @torch.no_grad()
    def _look(self, mixtures: dict[str, Mixture]) -> Tensor:
        """Loss and accuracy on a validation batch; a loss that is not finite ends the step."""
        inputs, targets = next(self.valid)
        with statistics_kept(self.net):
            outputs = called(self.net, inputs, mixtures=mixtures)
        self.gradient_evaluations += FORWARD_COST
        seen = all_mean(judged(self.loss(outputs, targets), outputs, targets))
        if not seen[0].isfinite():
            raise NotFiniteError("the validation loss is not finite")
        return seen

    def _round(self, train: Tensor, valid: Tensor) -> Round:
        entropy, margin = spread(self.a)
        train_loss, train_accuracy, valid_loss, valid_accuracy = torch.cat([train, valid]).tolist()
        if math.isfinite(valid_loss):
            self.bad_rounds = 0
        return Round(
            number=self.number,
            train_loss=train_loss,
            valid_loss=valid_loss,
            rate=self.rate(),
            entropy=entropy,
            margin=margin,
            gradient_evaluations=self.gradient_evaluations,
            train_accuracy=None if math.isnan(train_accuracy) else train_accuracy,
            valid_accuracy=None if math.isnan(valid_accuracy) else valid_accuracy,
            expected_cost=self.budget.expected(temperature(self.used())).item() if self.budget else None,
            cost=self.budget.cost(self.current()) if self.budget else None,
        )

    def _skip(self, train: Tensor) -> Round:
        """α stays where it is; too many such rounds in a row end the search."""
        self.bad_rounds += 1
        warnings.warn(
            "a loss or the hypergradient was not finite, so α did not move in that round; "
            f"after {PATIENCE} such rounds in a row the search ends",
            UserWarning,
            stacklevel=2,
        )
        if self.bad_rounds >= PATIENCE:
            raise NotFiniteError(
                f"the losses or the hypergradient were not finite in {PATIENCE} rounds in a row, the last one being "
                f"round {self.number}; lower weights.rate, or give hypergradient.damping"
            )
        return self._round(train, torch.full_like(train, math.nan))
