"""The paper's estimator: K + 1 terms of the Neumann series for the inverse curvature."""

import math
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

import torch
from torch import Tensor

from idarts.errors import SingularCurvatureError
from idarts.hypergrad.implicit import Implicit, Solution, System
from idarts.hypergrad.method import Measure, State, require_at_least, require_count, require_step
from idarts.hypergrad.rules import Rule, rate
from idarts.hypergrad.solvers import SOLVERS
from idarts.hypergrad.spectrum import WARM_ITERATIONS, Spectrum, measure, update
from idarts.hypergrad.vectors import PerParameter, length, on_host, square

TINY = torch.finfo(torch.float64).tiny
RENEWALS = 5  # new measurements of the eigenvalue in one call, while terms grow with γ = 1/λ


@dataclass(frozen=True)
class Neumann(Implicit):
    """iDARTS: ∂L2/∂α − γ ∂L2/∂w · Σ_{k=0..K} [I − γ ∂²L1/∂w²]^k · ∂²L1/∂α∂w, with K = `terms` (Eq. 8 of the paper).

    `step` γ: a number; one value per inner parameter, like the groups of the inner optimiser (then γ is a diagonal:
    `from_optimizer`); or `auto`, which is 1/λ_max. The state holds λ_max: pass it on, and a power iteration measures it
    again only every `refresh` calls.
    `tolerance`: stop before K terms when the residual is below this share of ‖g‖, or when a term is longer than the one
    before it, which is then left out; 0 stops only when terms grow. If γ is a diagonal D, residuals have the length
    √(rᵀDr): in it, all of them shrink exactly where the series converges.

    >>> from idarts.hypergrad import hypergradient
    >>> inner, outer = (lambda w, a: (w[0] - a[0]) ** 2), (lambda w, a: w[0] ** 2)  # w* = α, H = 2, g = 6
    >>> w, a = (torch.tensor(3.0, requires_grad=True),), (torch.tensor(3.0, requires_grad=True),)
    >>> hypergradient(inner, outer, w, a, Neumann(terms=1, step=0.1)).grads  # 0.1 · 6 · (1 + 0.8) · 2
    (tensor(2.1600),)
    """

    terms: int
    step: PerParameter | Rule | Literal["auto"] = "auto"
    tolerance: float | None = None
    damping: float = 0.0
    refresh: int = 20

    def __post_init__(self) -> None:
        super().__post_init__()
        require_count(0, terms=self.terms)
        require_count(1, refresh=self.refresh)
        require_at_least(0, damping=self.damping)
        if self.tolerance is not None:
            require_at_least(0, tolerance=self.tolerance)
        if not isinstance(self.step, str) or self.step != "auto":
            require_step(self.step)

    def solve(self, system: System, state: State) -> Solution:
        spectrum = Spectrum.load(state, system)
        if isinstance(self.step, str):
            solution, spectrum = self._follow_curvature(system, spectrum)
        else:
            step = self.step if isinstance(self.step, float) else rate(self.step, system.products.layout)
            solution, _ = self._series(system, step)
            if _diverges(solution):  # the eigenvalue gives the largest safe γ
                root = 1.0 if isinstance(step, float) else (step / step.mean()).sqrt()

                def scaled(v: Tensor) -> Tensor:
                    """√D·H·√D v: the eigenvalues of DH, and symmetric, as a power iteration needs it."""
                    return root * system.apply(root * v, self.damping)

                spectrum = update(spectrum, scaled, system, self.refresh)
        if spectrum is None:
            return solution
        measures = {**solution.measures, "eigenvalue": spectrum.eigenvalue}
        return replace(solution, state=spectrum.state(), measures=measures)

    def _follow_curvature(self, system: System, spectrum: Spectrum | None) -> tuple[Solution, Spectrum]:
        """The series with γ = 1/λ_max, which is measured again if the terms show that it has grown."""

        def product(v: Tensor) -> Tensor:
            return system.apply(v, self.damping)

        spectrum = update(spectrum, product, system, self.refresh)
        if not spectrum.age and bool(spectrum.eigenvalue == 0):
            raise SingularCurvatureError("the inner loss has no curvature here, so step='auto' has no value")
        solution, last = self._series(system, 1 / length(spectrum.eigenvalue))
        for _ in range(RENEWALS):
            if not _diverges(solution):
                break
            start = spectrum.vector + last / length(last)  # a growing term has the right direction
            newer = measure(product, start, WARM_ITERATIONS, system.averaging)
            if bool(newer.eigenvalue < 1.05 * spectrum.eigenvalue.abs()):
                break  # the estimate was right: the series grows along negative curvature
            spectrum = newer
            solution, last = self._series(system, 1 / length(spectrum.eigenvalue))
        return solution, spectrum

    def _series(self, system: System, step: Measure) -> tuple[Solution, Tensor]:
        """Σ (I − γH)^k γg, and its last term; if γ is a diagonal D, Σ (I − DH)^k Dg."""
        term = total = step * system.g
        root = None
        if isinstance(step, Tensor) and step.dim():
            root = step.sqrt().clamp_min(torch.finfo(step.dtype).tiny)  # a group of weights may rest

        def squared(term: Tensor) -> Tensor:
            """rᵀDr, where the term is D·r; without a diagonal ‖term‖², because a number changes no ratio."""
            return square(term if root is None else term / root)

        used, squares, place = 0, [squared(term)], torch.empty_like(term)
        for _ in range(self.terms):
            image = system.apply(term, self.damping)
            if isinstance(step, float):  # all in one place: the pages of a new vector cost more than the subtraction
                term = torch.sub(term, image, alpha=step, out=place)
            else:
                term = torch.addcmul(term, step, image, value=-1, out=place)
            squares.append(squared(term))
            if self.tolerance is not None and bool(squares[-1] > squares[-2]):
                break
            total, used = total.add_(term), used + 1
            if self.tolerance is not None and bool(squares[-1] <= self.tolerance**2 * squares[0]):
                break
        measures: dict[str, Measure] = {}
        if self.terms:
            growth = _growth(squares)
            alone = system.averaging.vectors
            measures["contraction"] = growth if alone else system.averaging.number(term.new_tensor(growth))
        return Solution(total, measures=measures, terms=used, step=step), term


def _diverges(solution: Solution) -> bool:
    return float(solution.measures.get("contraction", 0.0)) > 1


def _growth(squares: list[Tensor]) -> float:
    """The largest ratio of a length to the one before it: on the host, with one transfer from the device."""
    values = on_host(squares, squares[0].device)
    return math.sqrt(max([after / max(before, TINY) for before, after in pairwise(values)]))


SOLVERS.add("neumann", Neumann)
