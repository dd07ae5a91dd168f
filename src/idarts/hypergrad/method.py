"""What every method is: a frozen record that turns a problem and a state into a hypergradient and the next state."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral, Real
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

from idarts.errors import InputError, nearest
from idarts.hypergrad.problem import ALONE, Averaging, Problem
from idarts.hypergrad.products import ExactProducts, FiniteDifferences, Loss, Products
from idarts.hypergrad.rules import Rule
from idarts.hypergrad.vectors import Layout, PerParameter, Tensors

State = Any  # a plain tree: tensors and numbers in dicts, lists and tuples, which a checkpoint can hold; or None

Measure = Tensor | float  # a 0-d tensor, or a number that is already on the host


class Symmetry(NamedTuple):
    """Two products Hu and Hv, compared: ⟨v, Hu⟩ ≠ ⟨u, Hv⟩ says that a second derivative is wrong. All 0-d tensors."""

    forward: Tensor  # ⟨v, Hu⟩
    backward: Tensor  # ⟨u, Hv⟩
    distance: Tensor  # ‖v − u‖; of v only what differs from u says something
    v: Tensor  # ‖v‖
    image: Tensor  # ‖Hu‖


@dataclass
class Result:
    """The two parts of a hypergradient, the next state, and what the method knows about their quality."""

    outer_loss: Tensor
    direct: Tensors
    implicit: Tensors
    gradient_evaluations: float = 1.0
    hvps: int = 0
    inner_loss: Tensor | None = None
    inner_gradient: Tensor | None = None
    solution: Tensor | None = None
    state: State = None
    measures: Mapping[str, Measure] = field(default_factory=dict)  # tensors are read together at the end
    terms: int | None = None
    step: Measure | None = None
    symmetry: Symmetry | None = None
    suspects: Sequence[str] = ()  # operations whose second derivative may be wrong
    warning: str | None = None  # what the caller must know, where the method sees it on the host

    def averaged(self, averaging: Averaging) -> "Result":
        """Both parts and the losses, averaged over the processes in one call."""
        if averaging is ALONE:
            return self
        inner = () if self.inner_loss is None else (self.inner_loss,)
        parts = (*self.direct, *self.implicit, self.outer_loss, *inner)
        layout, count = Layout.of(parts), len(self.direct)
        means = layout.unflatten(averaging.mean(layout.flatten(parts)))
        direct, implicit, (outer_loss, *others) = means[:count], means[count : 2 * count], means[2 * count :]
        inner_loss = others[0] if others else None
        return replace(self, direct=direct, implicit=implicit, outer_loss=outer_loss, inner_loss=inner_loss)


class Method(ABC):
    """A way to estimate a hypergradient: a frozen record of its options.

    What it keeps between calls is its state, which the caller passes on. Most methods keep nothing.
    """

    @property
    def inner_losses(self) -> int:
        """The number of inner losses (training batches) that a call can use: 0 for none, otherwise 1 is enough."""
        return 1

    @property
    def needs_inner(self) -> bool:
        """Whether the inner loss is evaluated at all."""
        return self.inner_losses > 0

    @property
    def derivatives(self) -> int:
        """How often the losses must be differentiable."""
        return 2 if self.needs_inner else 1

    def init(self, problem: Problem) -> State:
        """The state before the first call."""
        return None

    @abstractmethod
    def estimate(self, problem: Problem, state: State) -> Result:
        """The hypergradient at the problem's point, with the state for the next call."""


@dataclass(frozen=True, kw_only=True)
class SecondOrder(Method):
    """Options of every method that uses second derivatives.

    `products`: `exact` (double backward) or `finite_difference` with perturbations of length `radius`.
    `weight_decay`: λ of the inner optimiser, if the inner loss does not contain it. It adds exactly λ·I to the
    curvature. One number, or one for each inner parameter.
    """

    products: Literal["exact", "finite_difference"] = "exact"
    radius: float = 1e-2
    weight_decay: PerParameter = 0.0

    def __post_init__(self) -> None:
        kinds = "exact", "finite_difference"
        require(self.products in kinds, f"products={self.products!r}", "exact or finite_difference")
        require(_number(self.radius) and bool(self.radius > 0), f"radius={self.radius!r}", "a positive number")
        decays = self.weight_decay if isinstance(self.weight_decay, list | tuple) else [self.weight_decay]
        valid = all(_number(decay) and float(torch.as_tensor(decay).min()) >= 0 for decay in decays)
        require(valid, f"weight_decay={self.weight_decay!r}", "one number of at least 0, or one for each parameter")

    @property
    def derivatives(self) -> int:
        return 2 if self.products == "exact" else 1

    def products_at(self, problem: Problem, loss: Loss, w: Tensors, *, split: bool = False) -> Products:
        if self.products == "finite_difference":
            return FiniteDifferences(loss, w, problem.a, radius=self.radius, layout=problem.layout, own=problem.own)
        return ExactProducts(loss, w, problem.a, split=split, layout=problem.layout, own=problem.own)

    def decay(self, layout: Layout) -> Tensor | None:
        """λ as a number or a flat vector; None if it is 0."""
        if isinstance(self.weight_decay, float) and not self.weight_decay:
            return None
        return layout.diagonal(self.weight_decay, "weight_decay")


def require(valid: bool, option: str, expected: str) -> None:
    """Refuse an option's value in one sentence."""
    if not valid:
        raise InputError(f"{option} is not possible here; it must be {expected}")


def require_at_least(minimum: int, **options: Any) -> None:
    """Refuse what is not a number of at least `minimum`.

    >>> require_at_least(0, damping=-1.0)
    Traceback (most recent call last):
    idarts.errors.InputError: damping=-1.0 is not possible here; it must be a number of at least 0
    """
    for name, value in options.items():
        require(_number(value) and bool(value >= minimum), f"{name}={value!r}", f"a number of at least {minimum}")


def require_count(minimum: int, **options: Any) -> None:
    """Refuse what is not a whole number of at least `minimum`."""
    for name, value in options.items():
        valid = isinstance(value, Integral) and int(value) >= minimum
        require(valid, f"{name}={value!r}", f"a whole number of at least {minimum}")


def require_step(step: object) -> None:
    """γ > 0: one number, one value per inner parameter, or the step of an optimiser."""
    values: Sequence[Any] = step if isinstance(step, list | tuple) else [step]
    valid = len(values) > 0 and all(_number(value) and torch.as_tensor(value).min().item() > 0 for value in values)
    if isinstance(step, str):  # a misspelt `auto`
        meant = nearest(step, ["auto"], "it must be a positive number or auto")
        raise InputError(f"step={step!r} is not possible here; {meant}")
    if not isinstance(step, Rule):
        require(valid, f"step={step!r}", "positive")


def _number(value: object) -> bool:
    return isinstance(value, Real | Tensor)
