"""DARTS: one inner step in place of the inverse curvature."""

from dataclasses import dataclass

from idarts.hypergrad.implicit import Implicit, Solution, System
from idarts.hypergrad.method import State, require_step
from idarts.hypergrad.rules import Rule, rate
from idarts.hypergrad.solvers import SOLVERS
from idarts.hypergrad.vectors import PerParameter


@dataclass(frozen=True)
class OneStep(Implicit):
    """DARTS: ∂L2/∂α − γ ∂L2/∂w · ∂²L1/∂α∂w, that is [∂²L1/∂w²]⁻¹ ≈ γI, all at the given w (Eq. 3 of the paper).

    Liu et al. take ∂L2/∂w at the stepped weights w − γ∂L1/∂w; that is `ReverseMode(steps=1, step=γ)`.

    >>> import torch
    >>> from idarts.hypergrad import hypergradient
    >>> inner, outer = (lambda w, a: (w[0] - a[0]) ** 2), (lambda w, a: w[0] ** 2)  # w* = α, H = 2, g = 6
    >>> w, a = (torch.tensor(3.0, requires_grad=True),), (torch.tensor(3.0, requires_grad=True),)
    >>> hypergradient(inner, outer, w, a, OneStep(step=0.1)).grads  # 0.1 · 6 · 2
    (tensor(1.2000),)
    """

    step: PerParameter | Rule

    def __post_init__(self) -> None:
        super().__post_init__()
        require_step(self.step)

    def solve(self, system: System, state: State) -> Solution:
        step = rate(self.step, system.products.layout)
        return Solution(step * system.g, terms=0, step=step)


SOLVERS.add("one-step", OneStep)
