"""Conjugate gradients for the implicit system."""

from dataclasses import dataclass

import torch
from torch import Tensor

from idarts.hypergrad.implicit import Implicit, Solution, System
from idarts.hypergrad.method import State, require_at_least, require_count
from idarts.hypergrad.solvers import SOLVERS


@dataclass(frozen=True)
class ConjugateGradient(Implicit):
    """∂L2/∂α − x · ∂²L1/∂α∂w with x = argmin ‖x·∂²L1/∂w² − ∂L2/∂w‖ (Rajeswaran et al. 2019; the paper's appendix E).

    Stops after `iterations`, when the residual is below `tolerance`·‖g‖, or at a direction of negative curvature, where
    it returns the current iterate. For an indefinite minibatch Hessian use `damping` or `gauss_newton`.

    >>> from idarts.hypergrad import hypergradient
    >>> inner, outer = (lambda w, a: (w[0] - a[0]) ** 2), (lambda w, a: w[0] ** 2)  # w* = α, H = 2, g = 6
    >>> w, a = (torch.tensor(3.0, requires_grad=True),), (torch.tensor(3.0, requires_grad=True),)
    >>> hypergradient(inner, outer, w, a, ConjugateGradient()).grads
    (tensor(6.),)
    """

    iterations: int = 10
    tolerance: float = 1e-10
    damping: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        require_count(1, iterations=self.iterations)
        require_at_least(0, tolerance=self.tolerance, damping=self.damping)

    def solve(self, system: System, state: State) -> Solution:
        x, used = descend(system, torch.zeros_like(system.g), system.g, self.iterations, self.tolerance, self.damping)
        return Solution(x, terms=used, warning=None if used or not bool(system.g.any()) else _AT_ONCE)


def descend(
    system: System, x: Tensor, residual: Tensor, iterations: int, tolerance: float, damping: float
) -> tuple[Tensor, int]:
    """x after conjugate gradients from x with the residual g − Ax, and the number of iterations."""
    direction, square = residual, torch.dot(residual, residual)
    target = torch.dot(system.g, system.g) * tolerance**2
    used = 0
    while used < iterations and not bool(square <= target):  # written so that NaN does not stop it at zero
        image = system.apply(direction, damping)
        curvature = torch.dot(direction, image)
        if bool(curvature <= 0):
            break
        x, residual = x + square / curvature * direction, residual - square / curvature * image
        previous, square = square, torch.dot(residual, residual)
        direction = residual + square / previous * direction
        used += 1
    return x, used


_AT_ONCE = (
    "the curvature is not positive along ∂L2/∂w, so conjugate gradients stopped at once and the implicit part is 0; "
    "use curvature='gauss_newton' or damping"
)


SOLVERS.add("conjugate-gradient", ConjugateGradient)
