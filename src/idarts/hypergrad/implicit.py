"""Methods that take the hypergradient at one point, from a linear system with the inner curvature.

The implicit function theorem (Lemma 2): ∇L2 = ∂L2/∂α − ∂L2/∂w · [∂²L1/∂w²]⁻¹ · ∂²L1/∂α∂w. With g = ∂L2/∂w and x the
solution of H x = g, the implicit part is −x · ∂²L1/∂α∂w. The methods differ only in how they compute x.
"""

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor

from idarts.errors import InputError
from idarts.hypergrad.method import Result, SecondOrder, State, require
from idarts.hypergrad.problem import ALONE, Averaging, Problem
from idarts.hypergrad.products import ExactProducts, Products
from idarts.hypergrad.vectors import Tensors, length


@dataclass(frozen=True)
class System:
    """(H + λ) x = g: the curvature of the inner loss, the weight decay, and the outer gradient."""

    products: Products
    gauss_newton: bool
    g: Tensor
    weight_decay: Tensor  # 0-d, or one entry per weight
    averaging: Averaging = ALONE

    def curvature(self, v: Tensor) -> Tensor:
        """H v, of the loss alone."""
        return self.averaging.vector(self.products.gauss_newton(v) if self.gauss_newton else self.products.hessian(v))

    def apply(self, v: Tensor, damping: float = 0.0) -> Tensor:
        """(H + λ + damping) v."""
        return self.curvature(v) + (self.weight_decay + damping) * v

    def load(self, vector: Tensor) -> Tensor:
        """A vector from a state, on this system's device; an error if it belongs to another problem."""
        if vector.shape != self.g.shape:
            raise InputError(
                f"the state belongs to a problem with {vector.numel()} weights, but this one has {self.g.numel()}; "
                "pass state=None to start anew"
            )
        return vector.to(self.g)


@dataclass(frozen=True)
class Solution:
    """x, the state for the next call, and what the solver measured."""

    x: Tensor
    state: State = None
    measures: dict[str, Tensor] = field(default_factory=dict)  # 0-d tensors
    terms: int | None = None  # terms or iterations that were used
    step: Tensor | None = None  # γ


@dataclass(frozen=True, kw_only=True)
class Implicit(SecondOrder):
    """A method that solves (H + λ) x = g; a subclass implements `solve`, and `init` if it keeps a state.

    `curvature`: `hessian`, or `gauss_newton`, which is positive semi-definite, so that a series cannot diverge on it.

    >>> from idarts.hypergrad import hypergradient
    >>> @dataclass(frozen=True)
    ... class Running(Implicit):  # one gradient step a call on a solution that is kept: v ← v − γ(Hv − g)
    ...     step: float
    ...     def init(self, problem):
    ...         return {"v": problem.layout.zeros()}
    ...     def solve(self, system, state):
    ...         v = system.load(state["v"])
    ...         v = v - self.step * (system.apply(v) - system.g)
    ...         return Solution(v, {"v": v})
    >>> inner, outer = (lambda w, a: (w[0] - a[0]) ** 2), (lambda w, a: w[0] ** 2)  # w* = α, H = 2, g = 6
    >>> w, a = (torch.tensor(3.0, requires_grad=True),), (torch.tensor(3.0, requires_grad=True),)
    >>> first = hypergradient(inner, outer, w, a, Running(step=0.25))
    >>> second = hypergradient(inner, outer, w, a, Running(step=0.25), state=first.state)
    >>> first.solution, second.solution  # on the way to 6 / 2
    (tensor([1.5000]), tensor([2.2500]))
    """

    curvature: Literal["hessian", "gauss_newton"] = "hessian"

    def __post_init__(self) -> None:
        super().__post_init__()
        kinds = "hessian", "gauss_newton"
        require(self.curvature in kinds, f"curvature={self.curvature!r}", "hessian or gauss_newton")
        if self.curvature == "gauss_newton" and self.products == "finite_difference":
            raise InputError("curvature='gauss_newton' needs products='exact'")

    @abstractmethod
    def solve(self, system: System, state: State) -> Solution: ...

    def estimate(self, problem: Problem, state: State) -> Result:
        outer_loss, g, direct = problem.outer_gradient(problem.w)
        gauss_newton = self.curvature == "gauss_newton"
        products = self.products_at(problem.inner[0], problem.w, problem.a, split=gauss_newton)
        decay = problem.layout.diagonal(self.weight_decay, "weight_decay")
        system = System(products, gauss_newton, g, decay, problem.averaging)
        solution = self.solve(system, state)
        if problem.diagnostics:
            mixed, checks = self._check(problem, system, solution.x)
        else:
            mixed, checks = products.mixed(solution.x), {}
        products.release()
        return Result(
            outer_loss=outer_loss,
            direct=direct,
            implicit=tuple(-m for m in mixed),
            gradient_evaluations=1 + products.gradient_evaluations,
            hvps=products.hvps,
            inner_loss=products.loss,
            inner_gradient=products.gradient,
            solution=solution.x,
            state=solution.state,
            measures=solution.measures | checks,
            terms=solution.terms,
            step=solution.step,
        )

    def _check(self, problem: Problem, system: System, x: Tensor) -> tuple[Tensors, dict[str, Tensor]]:
        """The mixed product, and the quality of x: with a joint product the residual g − (H + λ)x is almost free."""
        products = system.products
        if system.gauss_newton:
            image, mixed = products.gauss_newton(x), products.mixed(x)
        else:
            image, mixed = products.joint(x)
        residual = system.g - system.averaging.vector(image) - system.weight_decay * x
        checks = {
            "residual": length(residual) / length(system.g),
            "alignment": torch.nn.functional.cosine_similarity(x, system.g, dim=0),
        }
        if self.products == "finite_difference":
            exact = ExactProducts(problem.inner[0], problem.w, problem.a).hessian(x)
            checks["product_error"] = length(image - exact) / length(exact)
        return mixed, checks
