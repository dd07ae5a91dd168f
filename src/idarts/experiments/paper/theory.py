"""The theorems of the paper, measured on a bilevel problem that meets their conditions and has closed forms.

L1 = ½wᵀHw − wᵀ(Bα + b) with μ ≤ H ≤ L, and L2 = √(1 + ‖w − t‖²) + ρ√(1 + ‖α − s‖²): bounded below, Lipschitz, with
Lipschitz gradients (Assumptions 1 and 2). Then w* = H⁻¹(Bα + b), ∂²L1/∂α∂w = −B, and all constants are known.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from idarts.experiments.store import Row
from idarts.hypergrad import Method, Neumann, TruncatedReverse, hypergradient

MU, L = 0.2, 1.0
TERMS = (0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)  # K
NOISE = 0.5  # size of the minibatches' noise, of the gradient itself or beside it
_N, _M = 24, 6  # weights, α
Tensors = tuple[Tensor, ...]
Loss = Callable[[Tensors, Tensors], Tensor]


@dataclass(frozen=True)
class Bilevel:
    """The problem above."""

    H: Tensor
    B: Tensor
    b: Tensor
    t: Tensor
    s: Tensor
    rho: float = 1.0

    def inner(self, w: Tensors, a: Tensors) -> Tensor:
        loss: Tensor = w[0] @ self.H @ w[0] / 2 - w[0] @ (self.B @ a[0] + self.b)
        return loss

    def outer(self, w: Tensors, a: Tensors) -> Tensor:
        return _soft(w[0] - self.t) + self.rho * _soft(a[0] - self.s)

    def optimum(self, a: Tensor) -> Tensor:
        """w*(α)."""
        optimum: Tensor = torch.linalg.solve(self.H, self.B @ a.detach() + self.b)
        return optimum

    def slope(self, w: Tensor) -> Tensor:
        """∂L2/∂w."""
        away = w.detach() - self.t
        return away / _soft(away)

    def gradient(self, a: Tensor) -> Tensor:
        """∇L2(w*(α), α) in α, in closed form."""
        away = a.detach() - self.s
        implicit: Tensor = self.B.T @ torch.linalg.solve(self.H, self.slope(self.optimum(a)))
        return self.rho * away / _soft(away) + implicit

    def bound(self, a: Tensor, terms: int, step: float) -> float:
        """The bound on the series' error: C_{L1^wα} · C_{L2^w} · (1 − γμ)^{K+1} / μ, with the constants at this α."""
        mixed = float(torch.linalg.matrix_norm(self.B, 2))
        return mixed * float(self.slope(self.optimum(a)).norm()) * (1 - step * MU) ** (terms + 1) / MU


def bilevel(seed: int = 0, tight: bool = False) -> tuple[Bilevel, Tensor]:
    """A problem and an α; `tight` has g and B along the eigenvector of μ, where the bound is an equality.

    >>> from idarts.hypergrad import Exact
    >>> problem, a = bilevel()
    >>> torch.allclose(estimate(problem.inner, problem.outer, problem.optimum(a), a, Exact()), problem.gradient(a))
    True
    """
    make = torch.Generator().manual_seed(seed)

    def drawn(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=make, dtype=torch.float64)

    basis = torch.linalg.qr(drawn(_N, _N)).Q
    H = (basis * torch.linspace(MU, L, _N, dtype=torch.float64)) @ basis.T
    a, B, slow = drawn(_M), drawn(_N, _M) / _N**0.5, basis[:, 0]
    problem = Bilevel(H, B, drawn(_N) / 2, drawn(_N) / 2, drawn(_M) / 4)
    if tight:
        problem = replace(problem, B=torch.outer(slow, drawn(_M)))
        problem = replace(problem, t=problem.optimum(a) - 2 * slow)
    return problem, a


def estimate(inner: Loss, outer: Loss, w: Tensor, a: Tensor, method: Method) -> Tensor:
    """The hypergradient by a method, of plain tensors."""
    return hypergradient(inner, outer, (w.requires_grad_(),), (a.requires_grad_(),), method).grads[0].detach()


# name → (γ, whether the bound is tight, distance of w from w*). The theorem holds for γ ≤ 1/L at w* only.
CASES: dict[str, tuple[float, bool, float]] = {
    "γ = 1/L": (1 / L, False, 0.0),
    "γ = 0.1/L": (0.1 / L, False, 0.0),
    "g, B along μ": (1 / L, True, 0.0),
    "γ = 1.9/L": (1.9 / L, False, 0.0),
    "w off w*": (1 / L, False, 0.3),
}


def theorem_1(case: str) -> Iterator[Row]:
    """The error of K terms against the exact hypergradient at w*, and its bound (Theorem 1 of the paper).

    >>> all(row["error"] <= row["bound"] for row in theorem_1("γ = 1/L"))
    True
    """
    step, tight, off = CASES[case]
    problem, a = bilevel(tight=tight)
    exact, optimum = problem.gradient(a), problem.optimum(a)
    w = optimum + off * torch.nn.functional.normalize(torch.ones_like(optimum), dim=0)
    for terms in TERMS:
        gradient = estimate(problem.inner, problem.outer, w, a, Neumann(terms, step))
        bound = problem.bound(a, terms, step)
        yield {"case": case, "K": terms, "error": float((gradient - exact).norm()), "bound": bound}


def corollary_2() -> Iterator[Row]:
    """Truncated reverse mode at a converged w, against the series (Corollary 2 of the paper).

    `same`: the difference to the series with the same K; `fewer`: to the series with one term fewer.

    >>> [row["fewer"] < 1e-12 < row["same"] for row in corollary_2()]
    [True, True, True, True, True]
    """
    problem, a = bilevel()
    w = problem.optimum(a)
    for terms in (1, 2, 4, 8, 16):
        methods = TruncatedReverse(terms + 2, terms, 1 / L), Neumann(terms, 1 / L), Neumann(terms - 1, 1 / L)
        first, *others = (estimate(problem.inner, problem.outer, w, a, method) for method in methods)
        same, fewer = (float((first - other).norm() / first.norm()) for other in others)
        yield {"K": terms, "same": same, "fewer": fewer}


def theorem_2(terms: int, steps: int, seed: int, additive: bool = False) -> Iterator[Row]:
    """Stochastic steps on α with minibatches that meet the conditions (Theorem 2 of the paper).

    Norms are means since the row before. Minibatches of L1 differ by functions that are linear in w and α (condition
    4), those of L2 by a factor 1 ± `NOISE`, so the noise vanishes with the gradient (condition 2). `additive` breaks
    condition 2: the noise then stays.
    """
    problem, a = bilevel(seed=1)
    random = torch.Generator().manual_seed(seed)
    tilts = torch.randn(2, _N + _M, generator=random, dtype=torch.float64)
    smooth = problem.rho + float(torch.linalg.matrix_norm(torch.linalg.solve(problem.H, problem.B), 2)) ** 2
    first = 1 / (smooth * (1 + NOISE**2))
    norms: list[tuple[float, float]] = []
    marks = {round(steps * 10 ** (-place / 4)) for place in range(8)} - {0}
    for number in range(1, steps + 1):
        i, j = torch.randint(2, (2,), generator=random).mul(2).sub(1).tolist()
        w = problem.optimum(a)
        inner, outer = _minibatches(problem, tilts, i, j, additive)
        gradient = estimate(inner, outer, w, a, Neumann(terms, 1 / L))
        norms.append((float(gradient.norm()), float(problem.gradient(a).norm())))
        a = a.detach() - first / (1 + number / 20) ** 0.6 * gradient  # the sum diverges, that of the squares does not
        if number in marks:
            taken, true = (sum(values) / len(norms) for values in zip(*norms, strict=True))
            bound = problem.bound(a, terms, 1 / L)
            yield {"K": terms, "step": number, "estimate": taken, "gradient": true, "bound": bound}
            norms = []


def _minibatches(problem: Bilevel, tilts: Tensor, i: int, j: int, additive: bool) -> tuple[Loss, Loss]:
    def inner(w: Tensors, a: Tensors) -> Tensor:
        return problem.inner(w, a) + j * (tilts[0] @ torch.cat((w[0], a[0])))

    def outer(w: Tensors, a: Tensors) -> Tensor:
        if additive:
            return problem.outer(w, a) + NOISE * i * (tilts[1, _N:] @ a[0])
        return (1 + NOISE * i) * problem.outer(w, a)

    return inner, outer


def still_falls(values: list[float]) -> bool:
    """Whether the last of a sequence of means is below half of the one before.

    >>> still_falls([3.0, 1.0, 0.4]), still_falls([3.0, 1.0, 0.9])
    (True, False)
    """
    return values[-1] < values[-2] / 2


def _soft(v: Tensor) -> Tensor:
    return (1 + v @ v).sqrt()
