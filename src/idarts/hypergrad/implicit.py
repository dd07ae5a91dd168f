"""Methods that take the hypergradient at one point, from a linear system with the inner curvature.

The implicit function theorem (Lemma 2): ∇L2 = ∂L2/∂α − ∂L2/∂w · [∂²L1/∂w²]⁻¹ · ∂²L1/∂α∂w. With g = ∂L2/∂w and x the
solution of H x = g, the implicit part is −x · ∂²L1/∂α∂w; the methods differ only in how they get x.
"""

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor

from idarts.errors import InputError, SingularCurvatureError
from idarts.hypergrad.isolation import full_precision
from idarts.hypergrad.problem import ALONE, Answer, Averaging, Method, Problem, SecondOrder, require, require_step
from idarts.hypergrad.products import ExactProducts, Products, filled, scalar
from idarts.hypergrad.spectrum import Spectrum
from idarts.hypergrad.vectors import PerParameter, length

DENSE_LIMIT = 20_000  # weights; a dense curvature above that is several gigabytes


@dataclass(frozen=True)
class System:
    """(H + λ) x = g: the curvature of the inner loss, its weight decay, and the outer gradient."""

    products: Products
    gauss_newton: bool
    g: Tensor
    weight_decay: Tensor  # 0-d or one entry per weight
    spectrum: Spectrum | None
    averaging: Averaging = ALONE

    def curvature(self, v: Tensor) -> Tensor:
        """H v, of the loss alone."""
        return self.averaging.vector(self.products.gauss_newton(v) if self.gauss_newton else self.products.hessian(v))

    def apply(self, v: Tensor, damping: float = 0.0) -> Tensor:
        """(H + λ + damping) v."""
        return self.curvature(v) + (self.weight_decay + damping) * v


@dataclass
class Solution:
    """x, and what the solver saw on the way."""

    x: Tensor
    terms: int | None = None
    step: Tensor | None = None
    spectrum: Spectrum | None = None
    measures: dict[str, Tensor] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Implicit(SecondOrder):
    """`curvature`: `hessian`, or `gauss_newton`, which is positive semi-definite, so a series cannot blow up on it."""

    curvature: Literal["hessian", "gauss_newton"] = "hessian"

    def __post_init__(self) -> None:
        super().__post_init__()
        require(
            self.curvature in ("hessian", "gauss_newton"), f"curvature={self.curvature!r}", "hessian or gauss_newton"
        )
        if self.curvature == "gauss_newton" and self.products == "finite_difference":
            raise InputError("curvature='gauss_newton' needs products='exact'")

    @abstractmethod
    def solve(self, system: System) -> Solution: ...

    def answer(self, problem: Problem) -> Answer:
        if len(problem.inner) != 1:
            raise InputError(
                f"{type(self).__name__} uses one inner loss, but {len(problem.inner)} were given; "
                "a sequence of losses is for ReverseMode and TruncatedReverse"
            )
        outer_loss, g, direct = problem.outer_gradient(problem.w)
        gauss_newton = self.curvature == "gauss_newton"
        products = self.products_at(problem.inner[0], problem.w, problem.a, split=gauss_newton)
        decay = problem.layout.diagonal(self.weight_decay, "weight_decay")
        system = System(products, gauss_newton, g, decay, problem.spectrum, problem.averaging)
        solution = self.solve(system)
        mixed = self._diagnose(problem, system, solution) if problem.diagnostics else products.mixed(solution.x)
        products.release()
        return Answer(
            outer_loss=outer_loss,
            direct=direct,
            implicit=tuple(-m for m in mixed),
            gradient_evaluations=1 + products.gradient_evaluations,
            hvps=products.hvps,
            inner_loss=products.loss,
            inner_gradient=products.gradient,
            terms=solution.terms,
            step=solution.step,
            spectrum=solution.spectrum or problem.spectrum,
            measures=solution.measures,
        )

    def _diagnose(self, problem: Problem, system: System, solution: Solution) -> tuple[Tensor, ...]:
        """The mixed product, and with it the residual g − (H + λ)x, which the joint product gives almost for free."""
        x, products = solution.x, system.products
        if system.gauss_newton:
            image, mixed = products.gauss_newton(x), products.mixed(x)
        else:
            image, mixed = products.joint(x)
        residual = system.g - system.averaging.vector(image) - system.weight_decay * x
        solution.measures["residual"] = length(residual) / length(system.g)
        solution.measures["alignment"] = torch.nn.functional.cosine_similarity(x, system.g, dim=0)
        if self.products == "finite_difference":
            exact = ExactProducts(problem.inner[0], problem.w, problem.a).hessian(x)
            solution.measures["product_error"] = length(image - exact) / length(exact)
        return mixed


@dataclass(frozen=True)
class FirstOrder(Method):
    """∂L2/∂α alone: what first-order DARTS does, w taken as if it did not follow α.

    >>> from idarts.hypergrad import hypergradient
    >>> inner, outer = (lambda w, a: (w[0] - a[0]) ** 2), (lambda w, a: w[0] ** 2)  # w* = α, H = 2, g = 6
    >>> w, a = (torch.tensor(3.0, requires_grad=True),), (torch.tensor(3.0, requires_grad=True),)
    >>> hypergradient(inner, outer, w, a, FirstOrder()).grads
    (tensor(0.),)
    """

    def answer(self, problem: Problem) -> Answer:
        loss = scalar(problem.outer(problem.w, problem.a), "outer")
        with full_precision({t.device for t in problem.a}):
            grads = torch.autograd.grad(loss, problem.a, allow_unused=True)
        direct = filled(grads, problem.a)
        return Answer(loss.detach(), direct, tuple(torch.zeros_like(t) for t in direct))


@dataclass(frozen=True)
class OneStep(Implicit):
    """DARTS: ∂L2/∂α − γ ∂L2/∂w · ∂²L1/∂α∂w, that is [∂²L1/∂w²]⁻¹ ≈ γI, all at the given w.

    Liu et al. take ∂L2/∂w at the stepped weights w − γ∂L1/∂w; that is `ReverseMode(steps=1, step=γ)`.

    >>> from idarts.hypergrad import hypergradient
    >>> inner, outer = (lambda w, a: (w[0] - a[0]) ** 2), (lambda w, a: w[0] ** 2)  # w* = α, H = 2, g = 6
    >>> w, a = (torch.tensor(3.0, requires_grad=True),), (torch.tensor(3.0, requires_grad=True),)
    >>> hypergradient(inner, outer, w, a, OneStep(step=0.1)).grads  # 0.1 · 6 · 2
    (tensor(1.2000),)
    """

    step: PerParameter

    def __post_init__(self) -> None:
        super().__post_init__()
        require_step(self.step)

    def solve(self, system: System) -> Solution:
        step = system.products.layout.diagonal(self.step, "step")
        return Solution(step * system.g, terms=0, step=step)


@dataclass(frozen=True)
class Identity(Implicit):
    """T1–T2 (Luketina et al. 2016): the inverse curvature is replaced by the identity.

    >>> from idarts.hypergrad import hypergradient
    >>> inner, outer = (lambda w, a: (w[0] - a[0]) ** 2), (lambda w, a: w[0] ** 2)  # w* = α, H = 2, g = 6
    >>> w, a = (torch.tensor(3.0, requires_grad=True),), (torch.tensor(3.0, requires_grad=True),)
    >>> hypergradient(inner, outer, w, a, Identity()).grads
    (tensor(12.),)
    """

    def solve(self, system: System) -> Solution:
        return Solution(system.g)


@dataclass(frozen=True)
class Exact(Implicit):
    """The implicit hypergradient with [∂²L1/∂w² + damping·I]⁻¹ from a dense solve: for small problems and for tests.

    >>> from idarts.hypergrad import hypergradient
    >>> inner, outer = (lambda w, a: (w[0] - a[0]) ** 2), (lambda w, a: w[0] ** 2)  # w* = α, H = 2, g = 6
    >>> w, a = (torch.tensor(3.0, requires_grad=True),), (torch.tensor(3.0, requires_grad=True),)
    >>> hypergradient(inner, outer, w, a, Exact()).grads
    (tensor(6.),)
    """

    damping: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.damping >= 0, f"damping={self.damping}", "at least 0")

    def solve(self, system: System) -> Solution:
        n = system.g.numel()
        if n > DENSE_LIMIT:
            raise InputError(
                f"Exact builds a dense matrix, too large for {n:,} weights; use ConjugateGradient or Neumann"
            )
        basis = torch.eye(n, dtype=system.g.dtype, device=system.g.device)
        matrix = torch.stack([system.apply(row, self.damping) for row in basis])
        wide = torch.promote_types(matrix.dtype, torch.float32)  # half precisions have no solver
        x, info = torch.linalg.solve_ex(((matrix + matrix.T) / 2).to(wide), system.g.to(wide))
        if bool(info > 0):
            raise SingularCurvatureError("the inner curvature is singular; give damping a positive value")
        return Solution(x.to(system.g))
