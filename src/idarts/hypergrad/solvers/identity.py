"""T1–T2: no curvature at all."""

from dataclasses import dataclass

from idarts.hypergrad.implicit import Implicit, Solution, System
from idarts.hypergrad.method import State
from idarts.hypergrad.solvers import SOLVERS


@dataclass(frozen=True)
class Identity(Implicit):
    """T1–T2 (Luketina et al. 2016): the identity replaces the inverse curvature.

    >>> import torch
    >>> from idarts.hypergrad import hypergradient
    >>> inner, outer = (lambda w, a: (w[0] - a[0]) ** 2), (lambda w, a: w[0] ** 2)  # w* = α, H = 2, g = 6
    >>> w, a = (torch.tensor(3.0, requires_grad=True),), (torch.tensor(3.0, requires_grad=True),)
    >>> hypergradient(inner, outer, w, a, Identity()).grads
    (tensor(12.),)
    """

    def solve(self, system: System, state: State) -> Solution:
        return Solution(system.g)


SOLVERS.add("identity", Identity)
