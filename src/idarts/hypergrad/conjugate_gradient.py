"""Conjugate gradients for the implicit system."""

from dataclasses import dataclass

import torch

from idarts.hypergrad.implicit import Implicit, Solution, System
from idarts.hypergrad.problem import require


@dataclass(frozen=True)
class ConjugateGradient(Implicit):
    """∂L2/∂α − x · ∂²L1/∂α∂w with x = argmin ‖x·∂²L1/∂w² − ∂L2/∂w‖ (Rajeswaran et al. 2019; the paper's appendix E).

    Stops after `iterations`, when the residual is under `tolerance`·‖g‖, or at a direction of negative curvature, where
    the iterate so far is kept: give `damping`, or take `gauss_newton`, for an indefinite minibatch Hessian.

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
        require(self.iterations >= 1, f"iterations={self.iterations}", "at least 1")
        require(self.tolerance >= 0, f"tolerance={self.tolerance}", "at least 0")
        require(self.damping >= 0, f"damping={self.damping}", "at least 0")

    def solve(self, system: System) -> Solution:
        x, residual = torch.zeros_like(system.g), system.g
        direction, square = residual, torch.dot(residual, residual)
        enough = square * self.tolerance**2
        used = 0
        while used < self.iterations and not bool(square <= enough):  # NaN must come out, not stop it at zero
            image = system.apply(direction, self.damping)
            bend = torch.dot(direction, image)
            if bool(bend <= 0):
                break
            x, residual = x + square / bend * direction, residual - square / bend * image
            previous, square = square, torch.dot(residual, residual)
            direction = residual + square / previous * direction
            used += 1
        return Solution(x, terms=used)
