"""Methods that differentiate through inner steps w_t = w_{t−1} − γ ∂L1/∂w, from the given w = w_0."""

from abc import abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor

from idarts.errors import InputError
from idarts.hypergrad.problem import Answer, Problem, SecondOrder, require, require_step
from idarts.hypergrad.products import FiniteDifferences, Products
from idarts.hypergrad.vectors import PerParameter


class Unrolled(SecondOrder):
    """What full and truncated reverse mode share: walk forward, then pull ∂L2/∂w_T back through the kept steps."""

    steps: int
    step: PerParameter

    @property
    @abstractmethod
    def kept(self) -> int:
        """How many of the last steps are differentiated."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.steps >= 1, f"steps={self.steps}", "at least 1")
        require(1 <= self.kept <= self.steps, f"terms={self.kept}", f"between 1 and steps={self.steps}")
        require_step(self.step)

    def answer(self, problem: Problem) -> Answer:
        layout = problem.layout
        step, decay = layout.diagonal(self.step, "step"), layout.diagonal(self.weight_decay, "weight_decay")
        points, w, spent = self._walk(problem, step, decay)
        outer_loss, p, direct = problem.outer_gradient(layout.leaves(w))
        implicit = tuple(torch.zeros_like(t) for t in problem.a)
        while points:
            point, scaled = points.pop(), step * p
            if points:
                bent, mixed = point.joint(scaled)
                p = p - problem.averaging.vector(bent) - decay * scaled
            else:  # nothing before this step is wanted
                mixed = point.mixed(scaled)
            implicit = tuple(i - m for i, m in zip(implicit, mixed, strict=True))
            spent += point.gradient_evaluations
        return Answer(outer_loss, direct, implicit, 1 + spent, hvps=self.kept - 1, terms=self.kept, step=step)

    def _walk(self, problem: Problem, step: Tensor, decay: Tensor) -> tuple[list[Products], Tensor, float]:
        """The inner steps: the products of those to be differentiated, w_T, and what the others cost."""
        losses = problem.inner * self.steps if len(problem.inner) == 1 else problem.inner
        if len(losses) != self.steps:
            raise InputError(f"{len(losses)} inner losses for {self.steps} steps; give one loss, or one for each step")
        points, w, spent = [], problem.layout.flatten(problem.w), 0.0
        for index, loss in enumerate(losses):
            here, differentiated = problem.layout.leaves(w), index >= self.steps - self.kept
            # Finite differences keep no graph: of a step that is not differentiated only the gradient is wanted.
            point = (
                self.products_at(loss, here, problem.a) if differentiated else FiniteDifferences(loss, here, problem.a)
            )
            w = w - step * (problem.averaging.vector(point.gradient) + decay * w)
            if differentiated:
                points.append(point)
            else:
                spent += point.gradient_evaluations
        return points, w, spent


@dataclass(frozen=True)
class ReverseMode(Unrolled):
    """∂L2/∂α + ∂L2/∂w_T · Σ_{t=1..T} B_t A_{t+1} … A_T (Eq. 4), A_t = I − γ∂²L1/∂w², B_t = −γ∂²L1/∂α∂w at w_{t−1}.

    Takes T = `steps` inner steps on the side, from the given w, and keeps all their graphs. `inner_loss` may be a
    sequence of T losses, one minibatch for each step. With one step this is DARTS as Liu et al. wrote it.

    >>> from idarts.hypergrad import hypergradient
    >>> inner, outer = (lambda w, a: (w[0] - a[0]) ** 2), (lambda w, a: w[0] ** 2)  # w* = α, H = 2, g = 6
    >>> w, a = (torch.tensor(3.0, requires_grad=True),), (torch.tensor(3.0, requires_grad=True),)
    >>> hypergradient(inner, outer, w, a, ReverseMode(steps=2, step=0.1)).grads  # at w*, so w stays where it is
    (tensor(2.1600),)
    """

    steps: int
    step: PerParameter

    @property
    def kept(self) -> int:
        return self.steps


@dataclass(frozen=True)
class TruncatedReverse(Unrolled):
    """h_{T−K} = ∂L2/∂α + ∂L2/∂w_T · Σ_{t=T−K+1..T} B_t A_{t+1} … A_T (Eq. 5): the last K = `terms` of T steps.

    K terms, one fewer than `Neumann(K)` has: at a converged w, `TruncatedReverse(T, K, γ)` equals `Neumann(K − 1, γ)`.
    Corollary 2 of the paper equates both with the same K; its sum over t = T−K+1 … T has K terms, not K + 1.

    >>> from idarts.hypergrad import hypergradient
    >>> inner, outer = (lambda w, a: (w[0] - a[0]) ** 2), (lambda w, a: w[0] ** 2)  # w* = α, H = 2, g = 6
    >>> w, a = (torch.tensor(3.0, requires_grad=True),), (torch.tensor(3.0, requires_grad=True),)
    >>> hypergradient(inner, outer, w, a, TruncatedReverse(steps=2, terms=1, step=0.1)).grads
    (tensor(1.2000),)
    """

    steps: int
    terms: int
    step: PerParameter

    @property
    def kept(self) -> int:
        return self.terms
