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
from idarts.distributed import (
    all_mean,
    begin_alike,
    joint_statistics,
    mean_buffers,
    mean_gradients,
    require_same,
    world,
)
from idarts.errors import InputError, NotFiniteError
from idarts.hypergrad import ALONE, Averaging, Spectrum, hypergradient, lift
from idarts.runs import Tell
from idarts.search.config import Config, Relaxed
from idarts.search.controller import RATE, Controller
from idarts.search.cost import budget, temperature
from idarts.search.relaxations import relaxed
from idarts.search.round import Round, Stream, accuracy, spread
from idarts.search.selecting import selected
from idarts.search.selection import FORWARD_COST, largest, statistics_kept
from idarts.search.trials import Build, Tried
from idarts.spaces import Mixture, Supernet
from idarts.tables import Table

Loss = Callable[[Any, Any], Tensor]

PATIENCE = 5  # rounds in a row without finite numbers before the search gives up


class Search:
    """A search in progress. `rounds()` goes on from wherever it stands; its state can be saved between rounds.

    >>> from idarts.data import Batches, load, split
    >>> from idarts.search import Search, config
    >>> from idarts.spaces import space
    >>> data, found = load("digits"), space("nas-bench-201")
    >>> train, valid = split(data.train, 0.5, seed=0)
    >>> net = found.supernet(found.macro.changed(depth=1, channels=4), in_channels=1)
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
            self.total = max(1, round(settings.epochs * len(train) / (settings.inner_steps + 1)))
        # An operation without a part in the relaxation is not trained, so it is not selected either.
        self.selection = replace(settings.selection, none=settings.none and settings.selection.none)
        self.w, self.a = net.weight_parameters(), net.architecture_parameters()
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
        self.budget = budget(net, settings, self._inputs)
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
        while self.weight_steps < warmup:
            self.tell(f"warm-up: {self.weight_steps} of {warmup} weight steps")
            started = time.monotonic()
            with self._statistics():
                self._weight_step()
            self.seconds += time.monotonic() - started
        while self.number < self.total and self.used() < 1:
            started = time.monotonic()
            with self._statistics():
                seen = torch.stack([self._weight_step() for _ in range(self.settings.inner_steps)]).mean(dim=0)
                self.number += 1
                found = self._alpha_step(seen)
            self.seconds += time.monotonic() - started
            self._meet()
            yield found

    def _statistics(self) -> AbstractContextManager[None]:
        return joint_statistics(self.settings.batch_norm == "synchronised")

    def _meet(self) -> None:
        """Between rounds all ranks hold the same state, so that the first one's is everybody's."""
        mean_buffers([self.net])
        self.seconds = float(all_mean(torch.tensor(self.seconds, dtype=torch.float64)))
        require_same({"α": self.a, "w": self.w}, f"after round {self.number}")

    def state_dict(self) -> dict[str, Any]:
        """Tensors and plain values only, so that loading it never runs anything."""
        spectrum = self.spectrum
        return {
            "net": self.net.state_dict(),
            "weight_optimizer": self.weight_optimizer.state_dict(),
            "alpha_optimizer": self.alpha_optimizer.state_dict(),
            "controller": self.controller.state_dict() if self.controller else None,
            "train": self.train.state_dict(),
            "valid": self.valid.state_dict(),
            "spectrum": None if spectrum is None else [spectrum.vector, spectrum.eigenvalue, spectrum.age],
            "counts": [self.number, self.weight_steps, self.bad_rounds, self.gradient_evaluations],
            "seconds": self.seconds,
            "random": torch.get_rng_state(),
            **({"scaler": self.scaler.state_dict()} if self.scaler.is_enabled() else {}),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a saved state, to the bit."""
        missing = self.state_dict().keys() - state.keys()
        if missing:
            raise InputError(f"this is no state of a search: it lacks {', '.join(sorted(missing))}")
        self.net.load_state_dict(state["net"])
        self.weight_optimizer.load_state_dict(state["weight_optimizer"])
        self.alpha_optimizer.load_state_dict(state["alpha_optimizer"])
        if self.controller:
            self.controller.load_state_dict(state["controller"])
        self.train.load_state_dict(state["train"])
        self.valid.load_state_dict(state["valid"])
        self.spectrum = None if state["spectrum"] is None else Spectrum(*state["spectrum"])
        self.number, self.weight_steps, self.bad_rounds, self.gradient_evaluations = state["counts"]
        self.seconds = state["seconds"]
        self.scaler.load_state_dict(state.get("scaler", {}))
        torch.set_rng_state(state["random"].cpu())

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
        images, labels = next(self.train)
        with self._autocast():
            logits = self.net(images, mixtures=self._mixtures(self.settings.weights.relaxation))
            loss = self.loss(logits, labels)
        own = torch.autograd.grad(self.scaler.scale(loss), self.w, allow_unused=True)
        grads, seen = mean_gradients(own, torch.stack([loss.detach(), accuracy(logits, labels)]))
        finite = seen[0].isfinite()  # stays on the device: a bad batch moves nothing, and nobody waits for it
        for parameter, grad in zip(self.w, grads, strict=True):
            parameter.grad = None if grad is None else torch.where(finite, grad, 0.0)
        self.scaler.unscale_(self.weight_optimizer)
        if self.settings.weights.clip:
            torch.nn.utils.clip_grad_norm_(self.w, self.settings.weights.clip)
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
            with torch.no_grad():
                return self.controller.path(self.controller.draw()[0])
        self.net.relaxation = relaxed(self.net, self.settings, name, self.used())
        return self.net.mixtures()

    def _alpha_step(self, train: Tensor) -> Round:
        """One step on what decides the architecture; `train`: the weight steps' loss and accuracy."""
        order = self.settings.hypergradient.order
        try:
            if order == "reinforce":
                return self._round(train, self._controller_step())
            if order == "none":
                return self._round(train, _finite(self._look(self._mixtures(None))))
            return self._hypergradient_step(train)
        except NotFiniteError:
            return self._skip(train)

    def _hypergradient_step(self, train: Tensor) -> Round:
        """One Adam step by the hypergradient on one training and one validation batch."""
        self.net.relaxation = relaxed(self.net, self.settings, None, self.used())
        inner = lift(self.net, self.loss, next(self.train), self.w, self.a)
        accuracies: list[Tensor] = []

        def watched(logits: Tensor, labels: Tensor) -> Tensor:
            accuracies.append(accuracy(logits, labels))
            return self.loss(logits, labels)

        outer = lift(self.net, watched, next(self.valid), self.w, self.a)
        method = self.settings.hypergradient.method(self.rate())
        estimate = hypergradient(inner, outer, self.w, self.a, method, spectrum=self.spectrum, averaging=self.averaging)
        torch.rand(())  # a hypergradient leaves no trace in the generator: else weights would be drawn the same path
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
            self._round(train, torch.stack([estimate.outer_loss, all_mean(accuracies[-1])])),
            norm=norm.item(),
            implicit_share=facts.implicit_share,
            contraction=facts.contraction,
            step=facts.step,
        )

    def _controller_step(self) -> Tensor:
        """One Adam step on the controller by paths of its own on validation batches; α shows its greedy path."""
        assert self.controller is not None
        found: list[Tensor] = []
        losses: list[Tensor] = []
        for _ in range(self.settings.hypergradient.samples):
            choices, log_likelihood, entropy, _ = self.controller.draw()
            found.append(_finite(self._look(self.controller.path(choices))))
            reward = torch.where(found[-1][1].isnan(), -found[-1][0], found[-1][1])
            losses.append(self.controller.loss(reward, log_likelihood, entropy))
        torch.stack(losses).mean().backward()
        self.alpha_optimizer.step()
        self.alpha_optimizer.zero_grad()
        with torch.no_grad():
            for name, logits in self.controller.draw(greedy=True)[3].items():
                self.net.alpha[name].copy_(logits)
        return torch.stack(found).mean(dim=0)

    @torch.no_grad()
    def _look(self, mixtures: dict[str, Mixture]) -> Tensor:
        """Loss and accuracy on a validation batch."""
        images, labels = next(self.valid)
        with statistics_kept(self.net):
            logits = self.net(images, mixtures=mixtures)
        self.gradient_evaluations += FORWARD_COST
        return all_mean(torch.stack([self.loss(logits, labels), accuracy(logits, labels)]))

    def _inputs(self) -> Any:
        """What the net is given, of a stream that then stands where it stood."""
        state = self.train.state_dict()
        inputs, _ = next(self.train)
        self.train.load_state_dict(state)
        return inputs

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


def _finite(seen: Tensor) -> Tensor:
    """Loss and accuracy; a loss that is not finite ends the step."""
    if not seen[0].isfinite():
        raise NotFiniteError("the validation loss is not finite")
    return seen
