"""Reverse mode through all inner steps."""

from dataclasses import dataclass

from idarts.hypergrad.rules import Rule
from idarts.hypergrad.solvers import SOLVERS
from idarts.hypergrad.unrolled import Unrolled
from idarts.hypergrad.vectors import PerParameter


@dataclass(frozen=True)
class ReverseMode(Unrolled):
    """Reverse mode: ∂L2/∂α + ∂L2/∂w_T · Σ_{t=1..T} B_t A_{t+1} … A_T (Eq. 4 of the paper).

    Here A_t = I − γ ∂²L1/∂w² and B_t = −γ ∂²L1/∂α∂w, both at w_{t−1}.
    Takes T = `steps` inner steps on a copy of the given w, and keeps the graphs of all of them. `inner_loss` may be a
    sequence of T losses, one minibatch for each step. With one step this is DARTS as Liu et al. wrote it.

    >>> import torch
    >>> from idarts.hypergrad import hypergradient
    >>> inner, outer = (lambda w, a: (w[0] - a[0]) ** 2), (lambda w, a: w[0] ** 2)  # w* = α, H = 2, g = 6
    >>> w, a = (torch.tensor(3.0, requires_grad=True),), (torch.tensor(3.0, requires_grad=True),)
    >>> hypergradient(inner, outer, w, a, ReverseMode(steps=2, step=0.1)).grads  # w is w*, so the steps do not move it
    (tensor(2.1600),)
    """

    steps: int
    step: PerParameter | Rule

    @property
    def differentiated(self) -> int:
        return self.steps


SOLVERS.add("reverse", ReverseMode)
