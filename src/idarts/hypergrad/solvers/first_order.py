"""The direct part alone."""

from dataclasses import dataclass

import torch

from idarts.hypergrad.graph import require_arguments
from idarts.hypergrad.isolation import full_precision
from idarts.hypergrad.method import Method, Result, State
from idarts.hypergrad.problem import Problem
from idarts.hypergrad.products import evaluate, zeros_for_none
from idarts.hypergrad.solvers import SOLVERS


@dataclass(frozen=True)
class FirstOrder(Method):
    """∂L2/∂α alone, as first-order DARTS: w is treated as if it did not depend on α.

    >>> from idarts.hypergrad import hypergradient
    >>> inner, outer = (lambda w, a: (w[0] - a[0]) ** 2), (lambda w, a: w[0] ** 2)  # w* = α, H = 2, g = 6
    >>> w, a = (torch.tensor(3.0, requires_grad=True),), (torch.tensor(3.0, requires_grad=True),)
    >>> hypergradient(inner, outer, w, a, FirstOrder()).grads
    (tensor(0.),)
    """

    @property
    def inner_losses(self) -> int:
        return 0

    def estimate(self, problem: Problem, state: State) -> Result:
        own = problem.own[len(problem.w) :]  # of w it may use any tensors
        loss = evaluate(problem.outer, problem.w, problem.a, "outer")
        with full_precision(problem.devices):
            grads = torch.autograd.grad(loss, (*problem.a, *own), allow_unused=True)
        direct = zeros_for_none(require_arguments(grads, own, "outer"), problem.a)
        return Result(loss.detach(), direct, tuple(torch.zeros_like(t) for t in direct))


SOLVERS.add("first-order", FirstOrder)
