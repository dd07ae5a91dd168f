"""Methods that take the hypergradient at one point, from a linear system with the inner curvature.

The implicit function theorem (Lemma 2): ∇L2 = ∂L2/∂α − ∂L2/∂w · [∂²L1/∂w²]⁻¹ · ∂²L1/∂α∂w. With g = ∂L2/∂w and x the
solution of H x = g, the implicit part is −x · ∂²L1/∂α∂w. The methods differ only in how they compute x.
"""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor
from torch.linalg import vector_norm

from idarts.errors import InputError
from idarts.hypergrad.isolation import Randomness, full_precision
from idarts.hypergrad.method import Measure, Result, SecondOrder, State, Symmetry, require
from idarts.hypergrad.problem import ALONE, Averaging, Problem
from idarts.hypergrad.products import ExactProducts, FiniteDifferences, Products
from idarts.hypergrad.rules import Rule
from idarts.hypergrad.vectors import Layout, Tensors, relative


@dataclass
class System:
    """(H + λ) x = g: the curvature of the inner loss, the weight decay, and the outer gradient."""

    products: Products
    gauss_newton: bool
    g: Tensor
    weight_decay: Tensor | None = None  # 0-d, or one entry per weight; None is 0
    averaging: Averaging = ALONE
    diagnostics: bool = False
    symmetry: Symmetry | None = None  # of the first two products, if they were compared
    _first: tuple[Tensor, Tensor] | None = None

    def curvature(self, v: Tensor) -> Tensor:
        """H v, of the loss alone."""
        image = self.averaging.vector(self.products.gauss_newton(v) if self.gauss_newton else self.products.hessian(v))
        self.compare(v, image)
        return image

    def apply(self, v: Tensor, damping: float = 0.0) -> Tensor:
        """(H + λ + damping) v."""
        return self._shifted(self.curvature(v), v, damping)

    def joint(self, v: Tensor, damping: float = 0.0) -> tuple[Tensor, Tensors]:
        """(H + λ + damping) v and v · ∂²L1/∂w∂α, for little more than the cost of one."""
        products = self.products
        image, mixed = products.joint_gauss_newton(v) if self.gauss_newton else products.joint(v)
        image = self.averaging.vector(image)
        self.compare(v, image)
        return self._shifted(image, v, damping), mixed

    def _shifted(self, image: Tensor, v: Tensor, damping: float) -> Tensor:
        if self.weight_decay is None:
            return torch.add(image, v, alpha=damping) if damping else image
        return torch.addcmul(image, self.weight_decay + damping, v)

    def shift(self, damping: float = 0.0) -> Tensor | float | None:
        """λ + damping; None if both are 0."""
        if self.weight_decay is None:
            return damping or None
        return self.weight_decay + damping

    def compare(self, v: Tensor, image: Tensor) -> None:
        """Compare ⟨v, Hu⟩ with ⟨u, Hv⟩ for the first two products: if an operation is suspect, or on request."""
        if self.symmetry is not None or not (self.products.suspects or self.diagnostics):
            return
        if isinstance(self.products, FiniteDifferences):
            return
        if self._first is None:
            self._first = v.clone(), image.clone()  # a solver may change them in place
            return
        (u, first), self._first = self._first, None
        distances = vector_norm(v - u), vector_norm(v), vector_norm(first)
        self.symmetry = Symmetry(torch.dot(v, first), torch.dot(u, image), *distances)

    def compare_all(self, matrix: Tensor) -> None:
        """Compare a whole matrix of products with its transpose."""
        if not isinstance(self.products, FiniteDifferences):
            one, zero = torch.ones_like(matrix[0, 0]), torch.zeros_like(matrix[0, 0])
            self.symmetry = Symmetry(vector_norm(matrix - matrix.T), zero, one, one, vector_norm(matrix))

    def load(self, vector: Tensor) -> Tensor:
        """A vector from a state, on this system's device; an error if it belongs to another problem."""
        return self.products.layout.load(vector)


@dataclass
class Solution:
    """x, the state for the next call, and what the solver measured."""

    x: Tensor
    state: State = None
    measures: Mapping[str, Measure] = field(default_factory=dict)
    terms: int | None = None  # terms or iterations that were used
    step: Measure | None = None  # γ
    warning: str | None = None  # what the caller must know
    mixed: Tensors | None = None  # x · ∂²L1/∂w∂α, where the solver has computed it


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
        with full_precision(problem.devices):
            return self._implicit(problem, state, outer_loss, g, direct)

    def _implicit(self, problem: Problem, state: State, outer_loss: Tensor, g: Tensor, direct: Tensors) -> Result:
        gauss_newton = self.curvature == "gauss_newton"
        random = Randomness.now(problem.devices) if problem.diagnostics else None
        products = self.products_at(problem, problem.inner[0], problem.w, split=gauss_newton)
        system = System(products, gauss_newton, g, self.decay(problem.layout), problem.averaging, problem.diagnostics)
        solution = self.solve(system, state)
        checks: dict[str, Tensor] = {}
        if random is None:
            mixed = products.mixed(solution.x) if solution.mixed is None else solution.mixed
        else:
            mixed, checks = self._check(problem, system, solution.x, random)
        products.release()
        return Result(
            outer_loss=outer_loss,
            direct=direct,
            implicit=tuple([-m for m in mixed]),
            gradient_evaluations=1 + products.gradient_evaluations,
            hvps=products.hvps,
            inner_loss=products.loss,
            inner_gradient=products.gradient,
            solution=solution.x,
            state=solution.state,
            measures={**solution.measures, **checks},
            terms=solution.terms,
            step=solution.step,
            symmetry=system.symmetry,
            suspects=products.suspects,
            warning=solution.warning,
        )

    def decay(self, layout: Layout) -> Tensor | None:
        own, step = super().decay(layout), getattr(self, "step", None)
        more = step.decay(layout) if isinstance(step, Rule) else None
        return own if more is None else more if own is None else own + more

    def _check(
        self, problem: Problem, system: System, x: Tensor, random: Randomness
    ) -> tuple[Tensors, dict[str, Tensor]]:
        """The mixed product, and the quality of x: with a joint product the residual g − (H + λ)x is almost free.

        One product is compared with the same one of the other kind, on the same random numbers.
        """
        products = system.products
        if system.gauss_newton:
            image, mixed = products.gauss_newton(x), products.mixed(x)
        else:
            image, mixed = products.joint(x)
        total = system.averaging.vector(image)
        system.compare(x, total)
        residual = system.g - total if system.weight_decay is None else system.g - total - system.weight_decay * x
        checks = {
            "residual": relative(residual, system.g),
            "alignment": torch.nn.functional.cosine_similarity(x, system.g, dim=0),
        }
        random.restore()
        kind = ExactProducts if self.products == "finite_difference" else FiniteDifferences
        other = kind(problem.inner[0], problem.w, problem.a, layout=problem.layout).joint(x)
        if system.gauss_newton:  # it has no other kind, but the mixed product has
            layout = Layout.of(problem.a)
            pair = layout.flatten(mixed), layout.flatten(other[1])
        else:
            pair = image, other[0]
        exact = pair[1] if self.products == "finite_difference" else pair[0]
        checks["product_error"] = relative(pair[0] - pair[1], exact)
        return mixed, checks
