"""One step of an inner optimiser as a function of flat vectors, which unrolled methods differentiate."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from idarts.errors import InputError
from idarts.hypergrad.vectors import Layout, PerParameter

Memory = tuple[Tensor, ...]  # what the optimiser keeps from step to step, flat


class Rule(ABC):
    """How w moves along its gradient g. A method takes it as its `step`."""

    def start(self, layout: Layout) -> Memory:
        """What the optimiser remembers before the first step."""
        return ()

    @abstractmethod
    def step(self, layout: Layout, w: Tensor, g: Tensor, memory: Memory, number: int) -> tuple[Tensor, Memory]:
        """w and the memory after the step of this number, counted from 0; differentiable."""

    @abstractmethod
    def rate(self, layout: Layout) -> Tensor:
        """γ of a series: one number or a diagonal by which the step multiplies the gradient."""

    def mean_rate(self, layout: Layout) -> Tensor:
        """For the record."""
        return self.rate(layout)

    def decay(self, layout: Layout) -> Tensor | None:
        """λ in the curvature H + λ of the point where the steps end; None is 0."""
        return None


@dataclass(frozen=True)
class Descent(Rule):
    """w − γg."""

    gamma: PerParameter

    def step(self, layout: Layout, w: Tensor, g: Tensor, memory: Memory, number: int) -> tuple[Tensor, Memory]:
        return w - self.rate(layout) * g, ()

    def rate(self, layout: Layout) -> Tensor:
        return layout.diagonal(self.gamma, "step")


def rate(step: PerParameter | Rule, layout: Layout) -> Tensor:
    """γ, from what a method has as its step."""
    return step.rate(layout) if isinstance(step, Rule) else layout.diagonal(step, "step")


@dataclass(frozen=True, eq=False)
class OptimizerRule(Rule):
    """The step of one of torch's optimisers: the options and the state of each tensor of w, at one time.

    In a series, the preconditioner of Adam and RMSprop is that of the current state, a diagonal, and momentum does not
    count: neither changes the point where the steps end.
    """

    options: tuple[Mapping[str, Any], ...]
    states: tuple[Mapping[str, Tensor], ...]

    def mean_rate(self, layout: Layout) -> Tensor:
        return self.option(layout, "lr")

    def option(self, layout: Layout, name: str, default: float = 0.0) -> Tensor:
        return self._diagonal(layout, [float(each.get(name, default)) for each in self.options], name)

    def kept(self, layout: Layout, name: str) -> Tensor:
        """A vector of the optimiser's state; zeros where it has none."""
        return layout.flatten([state.get(name) for state in self.states])

    def flag(self, name: str) -> bool:
        return bool(self.options[0].get(name, False))

    def _diagonal(self, layout: Layout, values: list[float], name: str) -> Tensor:
        return layout.diagonal(values[0] if len(set(values)) == 1 else values, name)


class SGDRule(OptimizerRule):
    """SGD with momentum, dampening or Nesterov's form."""

    def start(self, layout: Layout) -> Memory:
        return (self.kept(layout, "momentum_buffer"),)

    def step(self, layout: Layout, w: Tensor, g: Tensor, memory: Memory, number: int) -> tuple[Tensor, Memory]:
        momentum, dampening = self.option(layout, "momentum"), [float(each["dampening"]) for each in self.options]
        if not number:  # the first step of all is not dampened
            started = ["momentum_buffer" in state for state in self.states]
            dampening = [value if old else 0.0 for value, old in zip(dampening, started, strict=True)]
        g = g + self.option(layout, "weight_decay") * w
        buffer = momentum * memory[0] + (1 - self._diagonal(layout, dampening, "dampening")) * g
        direction = g + momentum * buffer if self.flag("nesterov") else buffer
        return w - self.option(layout, "lr") * direction, (buffer,)

    def rate(self, layout: Layout) -> Tensor:
        return self.option(layout, "lr")

    def decay(self, layout: Layout) -> Tensor:
        return self.option(layout, "weight_decay")


class AdamRule(OptimizerRule):
    """Adam, AMSGrad and AdamW."""

    def start(self, layout: Layout) -> Memory:
        return tuple(self.kept(layout, name) for name in ("exp_avg", "exp_avg_sq", "max_exp_avg_sq"))

    def step(self, layout: Layout, w: Tensor, g: Tensor, memory: Memory, number: int) -> tuple[Tensor, Memory]:
        mean, square, largest = memory
        first, second = (self._beta(layout, index) for index in (0, 1))
        lr, decay = self.option(layout, "lr"), self.option(layout, "weight_decay")
        if self.flag("decoupled_weight_decay"):
            w = w - lr * decay * w
        else:
            g = g + decay * w
        mean = first * mean + (1 - first) * g
        square = second * square + (1 - second) * g * g
        largest = torch.maximum(largest, square) if self.flag("amsgrad") else largest
        scale = self._scale(layout, largest if self.flag("amsgrad") else square, number + 1)
        return w - lr / self._correction(layout, 0, number + 1) * mean / scale, (mean, square, largest)

    def rate(self, layout: Layout) -> Tensor:
        return self.option(layout, "lr") / self._present_scale(layout)

    def decay(self, layout: Layout) -> Tensor:
        decay = self.option(layout, "weight_decay")
        return decay * self._present_scale(layout) if self.flag("decoupled_weight_decay") else decay

    def _present_scale(self, layout: Layout) -> Tensor:
        _require_steps(self, "exp_avg_sq", "Adam")
        return self._scale(layout, self.kept(layout, "max_exp_avg_sq" if self.flag("amsgrad") else "exp_avg_sq"), 0)

    def _scale(self, layout: Layout, square: Tensor, more: int) -> Tensor:
        return _root(square) / self._correction(layout, 1, more).sqrt() + self.option(layout, "eps")

    def _beta(self, layout: Layout, index: int) -> Tensor:
        return self._diagonal(layout, [float(each["betas"][index]) for each in self.options], "betas")

    def _correction(self, layout: Layout, index: int, more: int) -> Tensor:
        """1 − β^t, t = steps taken before and `more`."""
        taken = [float(state.get("step", 0.0)) + more for state in self.states]
        betas = [float(each["betas"][index]) for each in self.options]
        return self._diagonal(layout, [1 - beta**t for beta, t in zip(betas, taken, strict=True)], "betas")


class RMSpropRule(OptimizerRule):
    """RMSprop, also centred and with momentum."""

    def start(self, layout: Layout) -> Memory:
        return tuple(self.kept(layout, name) for name in ("square_avg", "grad_avg", "momentum_buffer"))

    def step(self, layout: Layout, w: Tensor, g: Tensor, memory: Memory, number: int) -> tuple[Tensor, Memory]:
        square, mean, buffer = memory
        alpha = self.option(layout, "alpha")
        g = g + self.option(layout, "weight_decay") * w
        square, mean = alpha * square + (1 - alpha) * g * g, alpha * mean + (1 - alpha) * g
        buffer = self.option(layout, "momentum") * buffer + g / self._scale(layout, square, mean)
        return w - self.option(layout, "lr") * buffer, (square, mean, buffer)

    def rate(self, layout: Layout) -> Tensor:
        _require_steps(self, "square_avg", "RMSprop")
        square, mean, _ = self.start(layout)
        return self.option(layout, "lr") / self._scale(layout, square, mean)

    def decay(self, layout: Layout) -> Tensor:
        return self.option(layout, "weight_decay")

    def _scale(self, layout: Layout, square: Tensor, mean: Tensor) -> Tensor:
        return _root(square - mean * mean if self.flag("centered") else square) + self.option(layout, "eps")


def _root(square: Tensor) -> Tensor:
    """√ with the derivative 0 at 0: a weight whose gradient was always 0 does not move."""
    positive = square > 0
    return torch.where(positive, square, torch.ones_like(square)).sqrt() * positive


def _require_steps(rule: OptimizerRule, name: str, kind: str) -> None:
    if not all(name in state for state in rule.states):
        raise InputError(
            f"from_optimizer: {kind} has no preconditioner before its first step; take a step, or unroll it"
        )
