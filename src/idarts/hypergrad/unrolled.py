"""What full and truncated reverse mode share: inner steps from w = w_0, by default w_t = w_{t−1} − γ ∂L1/∂w."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from idarts.hypergrad.isolation import full_precision
from idarts.hypergrad.method import Result, SecondOrder, State, require, require_count, require_step
from idarts.hypergrad.problem import Problem
from idarts.hypergrad.products import FiniteDifferences, Products
from idarts.hypergrad.rules import Descent, Memory, Rule
from idarts.hypergrad.vectors import Layout, PerParameter


class Unrolled(SecondOrder):
    """Takes T = `steps` inner steps, then propagates ∂L2/∂w_T back through the last of them."""

    steps: int
    step: PerParameter | Rule

    @property
    @abstractmethod
    def differentiated(self) -> int:
        """How many of the last steps are differentiated."""

    @property
    def inner_losses(self) -> int:
        return self.steps

    def __post_init__(self) -> None:
        super().__post_init__()
        terms = self.differentiated
        require_count(1, steps=self.steps, terms=terms)
        require(terms <= self.steps, f"terms={terms}", f"between 1 and steps={self.steps}")
        require_step(self.step)

    def estimate(self, problem: Problem, state: State) -> Result:
        layout = problem.layout
        rule = self.step if isinstance(self.step, Rule) else Descent(self.step)
        with full_precision(problem.devices):
            points, w, evaluations = self._forward(problem, rule)
        outer_loss, p, direct = problem.outer_gradient(layout.leaves(w))
        implicit = tuple(torch.zeros_like(t) for t in problem.a)
        kept: Sequence[Tensor | None] = [None] * len(points[-1].memory)
        while points:
            point = points.pop()
            p, along, kept = point.pull(p, kept)
            with full_precision(problem.devices):
                if points:
                    image, mixed = point.products.joint(along)
                    p = p + problem.averaging.vector(image)
                else:  # no earlier step is differentiated
                    mixed = point.products.mixed(along)
            implicit = tuple(i + m for i, m in zip(implicit, mixed, strict=True))
            evaluations += point.products.gradient_evaluations
        terms, gamma = self.differentiated, rule.mean_rate(layout)
        return Result(outer_loss, direct, implicit, 1 + evaluations, hvps=terms - 1, terms=terms, step=gamma)

    def _forward(self, problem: Problem, rule: Rule) -> tuple[list["_Point"], Tensor, float]:
        """The inner steps: those to be differentiated, w_T, and the cost of the others."""
        losses = problem.inner * self.steps if len(problem.inner) == 1 else problem.inner
        layout, decay = problem.layout, self.decay(problem.layout)
        points, w, memory, evaluations = [], layout.flatten(problem.w), rule.start(layout), 0.0
        for number, loss in enumerate(losses):
            leaves = layout.leaves(w)
            if number >= self.steps - self.differentiated:
                products = self.products_at(problem, loss, leaves)
            else:  # only the gradient is needed, and finite differences keep no graph
                products = FiniteDifferences(loss, leaves, problem.a, layout=layout, own=problem.own)
                evaluations += products.gradient_evaluations
            gradient = problem.averaging.vector(products.gradient)
            point = _Point(products, partial(_step, rule, layout, decay, number), w, gradient, memory)
            if number >= self.steps - self.differentiated:
                points.append(point)
            with torch.no_grad():
                w, memory = point.step(w, gradient, memory)
        return points, w, evaluations


def _step(
    rule: Rule, layout: Layout, decay: Tensor | None, number: int, w: Tensor, g: Tensor, memory: Memory
) -> tuple[Tensor, Memory]:
    return rule.step(layout, w, g if decay is None else g + decay * w, memory, number)


@dataclass(frozen=True)
class _Point:
    """One inner step, and where it was taken."""

    products: Products
    step: Callable[[Tensor, Tensor, Memory], tuple[Tensor, Memory]]
    w: Tensor
    gradient: Tensor
    memory: Memory

    def pull(self, p: Tensor, kept: Sequence[Tensor | None]) -> tuple[Tensor, Tensor, Sequence[Tensor | None]]:
        """From derivatives by the new w and memory to derivatives by the old w, the gradient and the old memory."""
        old = [t.detach().requires_grad_() for t in (self.w, self.gradient, *self.memory)]
        w, memory = self.step(old[0], old[1], tuple(old[2:]))
        pairs = [
            (new, d) for new, d in zip((w, *memory), (p, *kept), strict=True) if d is not None and new.requires_grad
        ]
        of_w, of_gradient, *of_memory = torch.autograd.grad(
            [new for new, _ in pairs], old, [d for _, d in pairs], allow_unused=True
        )
        return of_w, of_gradient, of_memory
