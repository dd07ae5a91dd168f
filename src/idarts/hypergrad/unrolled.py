"""What full and truncated reverse mode share: inner steps w_t = w_{t−1} − γ ∂L1/∂w from the given w = w_0."""

from abc import abstractmethod

import torch
from torch import Tensor

from idarts.hypergrad.method import Result, SecondOrder, State, require, require_count, require_step
from idarts.hypergrad.problem import Problem
from idarts.hypergrad.products import FiniteDifferences, Products
from idarts.hypergrad.vectors import PerParameter


class Unrolled(SecondOrder):
    """Takes T = `steps` inner steps, then propagates ∂L2/∂w_T back through the last of them."""

    steps: int
    step: PerParameter

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
        step, decay = layout.diagonal(self.step, "step"), layout.diagonal(self.weight_decay, "weight_decay")
        points, w, evaluations = self._forward(problem, step, decay)
        outer_loss, p, direct = problem.outer_gradient(layout.leaves(w))
        implicit = tuple(torch.zeros_like(t) for t in problem.a)
        while points:
            point, scaled = points.pop(), step * p
            if points:
                image, mixed = point.joint(scaled)
                p = p - problem.averaging.vector(image) - decay * scaled
            else:  # no earlier step is differentiated
                mixed = point.mixed(scaled)
            implicit = tuple(i - m for i, m in zip(implicit, mixed, strict=True))
            evaluations += point.gradient_evaluations
        terms = self.differentiated
        return Result(outer_loss, direct, implicit, 1 + evaluations, hvps=terms - 1, terms=terms, step=step)

    def _forward(self, problem: Problem, step: Tensor, decay: Tensor) -> tuple[list[Products], Tensor, float]:
        """The inner steps: the products of those to be differentiated, w_T, and the cost of the others."""
        losses = problem.inner * self.steps if len(problem.inner) == 1 else problem.inner
        points, w, evaluations = [], problem.layout.flatten(problem.w), 0.0
        for index, loss in enumerate(losses):
            leaves = problem.layout.leaves(w)
            if index >= self.steps - self.differentiated:
                point = self.products_at(loss, leaves, problem.a)
                points.append(point)
            else:  # only the gradient is needed, and finite differences keep no graph
                point = FiniteDifferences(loss, leaves, problem.a)
                evaluations += point.gradient_evaluations
            w = w - step * (problem.averaging.vector(point.gradient) + decay * w)
        return points, w, evaluations
