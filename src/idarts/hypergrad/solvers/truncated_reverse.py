"""Reverse mode through the last inner steps."""

from dataclasses import dataclass

from idarts.hypergrad.rules import Rule
from idarts.hypergrad.solvers import SOLVERS
from idarts.hypergrad.unrolled import Unrolled
from idarts.hypergrad.vectors import PerParameter


@dataclass(frozen=True)
class TruncatedReverse(Unrolled):
    """Truncated reverse mode: ∂L2/∂α + ∂L2/∂w_T · Σ_{t=T−K+1..T} B_t A_{t+1} … A_T (Eq. 5 of the paper).

    Differentiates the last K = `terms` of T = `steps` inner steps.
    K terms, one fewer than `Neumann(K)` has: at a converged w, `TruncatedReverse(T, K, γ)` equals `Neumann(K − 1, γ)`.
    The paper equates both with the same K, but its sum over t = T−K+1 … T has K terms, not K + 1.

    >>> import torch
    >>> from idarts.hypergrad import hypergradient
    >>> inner, outer = (lambda w, a: (w[0] - a[0]) ** 2), (lambda w, a: w[0] ** 2)  # w* = α, H = 2, g = 6
    >>> w, a = (torch.tensor(3.0, requires_grad=True),), (torch.tensor(3.0, requires_grad=True),)
    >>> hypergradient(inner, outer, w, a, TruncatedReverse(steps=2, terms=1, step=0.1)).grads
    (tensor(1.2000),)
    """

    steps: int
    terms: int
    step: PerParameter | Rule

    @property
    def differentiated(self) -> int:
        return self.terms


SOLVERS.add("truncated-reverse", TruncatedReverse)
