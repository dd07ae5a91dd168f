"""The bilevel problem of one call, and what every method must answer."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor

from idarts.errors import InputError
from idarts.hypergrad.isolation import full_precision
from idarts.hypergrad.products import ExactProducts, FiniteDifferences, Loss, Products, filled, gradient, scalar
from idarts.hypergrad.spectrum import Spectrum
from idarts.hypergrad.vectors import Layout, PerParameter, Tensors


@dataclass(frozen=True)
class Problem:
    """min over α of L2(w*(α), α) with w*(α) = argmin over w of L1(w, α), at one point (w, α)."""

    inner: tuple[Loss, ...]
    outer: Loss
    w: Tensors
    a: Tensors
    layout: Layout
    spectrum: Spectrum | None
    diagnostics: bool

    @classmethod
    def of(
        cls,
        inner: Loss | Sequence[Loss],
        outer: Loss,
        w: Sequence[Tensor],
        a: Sequence[Tensor],
        *,
        spectrum: Spectrum | None,
        diagnostics: bool,
    ) -> "Problem":
        losses = (inner,) if callable(inner) else tuple(inner)
        if not losses:
            raise InputError("inner_loss is an empty sequence; give one loss, or one for each inner step")
        leaves = _leaves(w, "inner parameters w"), _leaves(a, "outer parameters a")
        return cls(losses, outer, *leaves, Layout.of(leaves[0]), spectrum, diagnostics)

    def outer_gradient(self, w: Tensors) -> tuple[Tensor, Tensor, Tensors]:
        """L2, ∂L2/∂w as a flat vector and ∂L2/∂α at (w, α), by one joint backward."""
        loss = scalar(self.outer(w, self.a), "outer")
        with full_precision({t.device for t in w}):
            grads = gradient(loss, (*w, *self.a), "outer", of=len(w))
        return loss.detach(), self.layout.flatten(grads[: len(w)]), filled(grads[len(w) :], self.a)


@dataclass
class Answer:
    """What a method found: the two parts of the hypergradient, and what it knows about their quality."""

    outer_loss: Tensor
    direct: Tensors
    implicit: Tensors
    gradient_evaluations: float = 1.0
    hvps: int = 0
    inner_loss: Tensor | None = None
    inner_gradient: Tensor | None = None
    terms: int | None = None
    step: Tensor | None = None
    spectrum: Spectrum | None = None
    measures: dict[str, Tensor] = field(default_factory=dict)  # 0-d, read in one transfer at the end


class Method(ABC):
    """A way to a hypergradient: a small frozen record of its settings."""

    @abstractmethod
    def answer(self, problem: Problem) -> Answer: ...


@dataclass(frozen=True, kw_only=True)
class SecondOrder(Method):
    """Settings that every method with second derivatives has.

    `products`: `exact` (double backward) or `finite_difference` with perturbations of length `radius`.
    `weight_decay`: λ of the inner optimiser, which stands in no loss: it enters the curvature as λ·I, exactly; one
    number or one per inner parameter.
    """

    products: Literal["exact", "finite_difference"] = "exact"
    radius: float = 1e-2
    weight_decay: PerParameter = 0.0

    def __post_init__(self) -> None:
        require(
            self.products in ("exact", "finite_difference"), f"products={self.products!r}", "exact or finite_difference"
        )
        require(self.radius > 0, f"radius={self.radius}", "a positive number")
        decays = [self.weight_decay] if isinstance(self.weight_decay, int | float) else self.weight_decay
        require(all(float(torch.as_tensor(d).min()) >= 0 for d in decays), "weight_decay < 0", "numbers of at least 0")

    def products_at(self, loss: Loss, w: Tensors, a: Tensors, *, split: bool = False) -> Products:
        if self.products == "finite_difference":
            return FiniteDifferences(loss, w, a, radius=self.radius)
        return ExactProducts(loss, w, a, split=split)


def require(condition: bool, got: str, expected: str) -> None:
    """One sentence for a setting that cannot be."""
    if not condition:
        raise InputError(f"{got} is not possible here; it must be {expected}")


def require_step(step: object) -> None:
    """γ > 0: one number, or one value per inner parameter."""
    values: Sequence[object] = step if isinstance(step, list | tuple) else [step]
    numbers = len(values) > 0 and all(isinstance(value, int | float | Tensor) for value in values)
    require(numbers and all(torch.as_tensor(v).min().item() > 0 for v in values), f"step={step!r}", "positive")


def _leaves(given: Sequence[Tensor] | Tensor, what: str) -> Tensors:
    """The same storage under new leaves: no hook of the caller's runs and no `.grad` of theirs is touched."""
    if isinstance(given, Tensor):
        raise InputError(f"the {what} are one tensor; give a tuple of tensors")
    tensors = tuple(given)
    if not tensors:
        raise InputError(f"the {what} are empty; give at least one tensor")
    for index, tensor in enumerate(tensors):
        if not isinstance(tensor, Tensor) or not tensor.is_floating_point():
            raise InputError(f"number {index} of the {what} is not a floating-point tensor")
        if not tensor.requires_grad:
            raise InputError(
                f"number {index} of the {what}, of shape {tuple(tensor.shape)}, does not require grad; "
                "leave it out or call requires_grad_()"
            )
        if tensor.device != tensors[0].device:
            raise InputError(f"the {what} lie on {tensors[0].device} and {tensor.device}; move them to one device")
    return tuple(tensor.detach().requires_grad_() for tensor in tensors)
