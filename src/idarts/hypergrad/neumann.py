"""The paper's estimator: K + 1 terms of the Neumann series for the inverse curvature."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import torch
from torch import Tensor

from idarts.errors import SingularCurvatureError
from idarts.hypergrad.implicit import Implicit, Solution, System
from idarts.hypergrad.problem import require, require_step
from idarts.hypergrad.spectrum import WARM_ITERATIONS, Spectrum, power_iteration, renewed
from idarts.hypergrad.vectors import PerParameter, length

RENEWALS = 5  # of the eigenvalue in one call, when terms grow with γ = 1/λ


@dataclass(frozen=True)
class Neumann(Implicit):
    """iDARTS: ∂L2/∂α − γ ∂L2/∂w · Σ_{k=0..K} [I − γ ∂²L1/∂w²]^k · ∂²L1/∂α∂w, with K = `terms` (Eq. 8 of the paper).

    `step` γ: a number; one value per inner parameter, as the inner optimiser's groups have (then γ is a diagonal:
    `from_optimizer`); or `auto`, 1/λ_max from a running power iteration renewed every `refresh` calls.
    `tolerance`: stop before K terms when the residual falls under this share of ‖g‖, or when a term is longer than the
    one before it, which is then left out; 0 stops for growth only.

    >>> from idarts.hypergrad import hypergradient
    >>> inner, outer = (lambda w, a: (w[0] - a[0]) ** 2), (lambda w, a: w[0] ** 2)  # w* = α, H = 2, g = 6
    >>> w, a = (torch.tensor(3.0, requires_grad=True),), (torch.tensor(3.0, requires_grad=True),)
    >>> hypergradient(inner, outer, w, a, Neumann(terms=1, step=0.1)).grads  # 0.1 · 6 · (1 + 0.8) · 2
    (tensor(2.1600),)
    """

    terms: int
    step: PerParameter | Literal["auto"] = "auto"
    tolerance: float | None = None
    damping: float = 0.0
    refresh: int = 20

    def __post_init__(self) -> None:
        super().__post_init__()
        require(
            isinstance(self.terms, int) and self.terms >= 0, f"terms={self.terms!r}", "a whole number of at least 0"
        )
        require(self.damping >= 0, f"damping={self.damping}", "at least 0")
        require(self.refresh >= 1, f"refresh={self.refresh}", "at least 1")
        require(self.tolerance is None or self.tolerance >= 0, f"tolerance={self.tolerance}", "at least 0, or None")
        if self.step != "auto":
            require_step(self.step)

    def solve(self, system: System) -> Solution:
        def product(v: Tensor) -> Tensor:
            return system.apply(v, self.damping)

        spectrum = system.spectrum
        if self.step == "auto":
            spectrum = _shared(renewed(spectrum, product, system.g, self.refresh), system)
            if not spectrum.age and bool(spectrum.eigenvalue == 0):
                raise SingularCurvatureError("the inner loss has no curvature here, so step='auto' has no value")
            solution, last = self._series(system, 1 / length(spectrum.eigenvalue))
            for _ in range(RENEWALS):
                if not _diverged(solution):
                    break
                look = spectrum.vector + last / length(last)  # a term that grows points where to look
                newer = _shared(power_iteration(product, look, WARM_ITERATIONS), system)
                if bool(newer.eigenvalue < 1.05 * spectrum.eigenvalue.abs()):
                    break  # the estimate was right: what grows is negative curvature
                spectrum = newer  # the curvature has grown since it was measured
                solution, last = self._series(system, 1 / length(spectrum.eigenvalue))
        else:
            step = system.products.layout.diagonal(self.step, "step")
            solution, _ = self._series(system, step)
            if _diverged(solution):  # the largest safe γ follows from the eigenvalue
                scale = step / step.mean()  # γ as a diagonal belongs to the operator
                measured = renewed(spectrum, lambda v: scale * product(v), system.g, self.refresh)
                spectrum = _shared(measured, system)
        solution.spectrum = spectrum
        return solution

    def _series(self, system: System, step: Tensor) -> tuple[Solution, Tensor]:
        """Σ (I − γH)^k γg, and its last term; with γ a diagonal D it is Σ (I − DH)^k Dg."""
        term = step * system.g
        total, used, lengths = term, 0, [length(term)]
        for _ in range(self.terms):
            term = term - step * system.apply(term, self.damping)
            lengths.append(length(term))
            if self.tolerance is not None and bool(lengths[-1] > lengths[-2]):
                break
            total, used = total + term, used + 1
            if self.tolerance is not None and bool(lengths[-1] <= self.tolerance * lengths[0]):
                break
        solution = Solution(total, terms=used, step=step)
        if self.terms:
            largest = torch.stack([b / a for a, b in pairwise(lengths)]).max()
            solution.measures["contraction"] = system.averaging.number(largest)
        return solution, term


def _shared(spectrum: Spectrum, system: System) -> Spectrum:
    return spectrum if spectrum.age else system.averaging.spectrum(spectrum)


def _diverged(solution: Solution) -> bool:
    return "contraction" in solution.measures and bool(solution.measures["contraction"] > 1)
