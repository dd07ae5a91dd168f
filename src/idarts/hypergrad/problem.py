"""The bilevel problem of one call, and what every method must answer."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Literal

import torch
from torch import Tensor

from idarts.errors import InputError
from idarts.hypergrad.isolation import full_precision
from idarts.hypergrad.products import ExactProducts, FiniteDifferences, Loss, Products, filled, gradient, scalar
from idarts.hypergrad.spectrum import Spectrum
from idarts.hypergrad.vectors import Layout, PerParameter, Tensors


@dataclass(frozen=True)
class Averaging:
    """How processes that hold an equal share of the batches each come to one estimate; `mean` is that over them all.

    With `vectors`, ∂L2/∂w and every product with the curvature are averaged: K + 2 means for K products, and the
    estimate is that of the joined batches. Without, each process goes by its own curvature, all with one γ, and only
    what comes out is averaged.
    """

    mean: Callable[[Tensor], Tensor]
    vectors: bool = True

    def vector(self, v: Tensor) -> Tensor:
        return self.mean(v) if self.vectors else v

    def number(self, x: Tensor) -> Tensor:
        """What a decision hangs on, which must be the same everywhere; of averaged vectors it is already."""
        return x if self.vectors else self.mean(x)

    def spectrum(self, found: Spectrum) -> Spectrum:
        """One that was just measured, by each on its own."""
        if self.vectors:
            return found
        both = self.number(torch.cat([found.vector, found.eigenvalue.reshape(1)]))
        return Spectrum(both[:-1], both[-1], found.age)

    def answer(self, found: "Answer") -> "Answer":
        """Both parts of the hypergradient, and the losses, in one mean."""
        if self is ALONE:
            return found
        inner = () if found.inner_loss is None else (found.inner_loss,)
        parts = (*found.direct, *found.implicit, found.outer_loss, *inner)
        layout, count = Layout.of(parts), len(found.direct)
        means = layout.unflatten(self.mean(layout.flatten(parts)))
        direct, implicit, (outer_loss, *others) = means[:count], means[count : 2 * count], means[2 * count :]
        inner_loss = others[0] if others else None
        return replace(found, direct=direct, implicit=implicit, outer_loss=outer_loss, inner_loss=inner_loss)


ALONE = Averaging(lambda tensor: tensor)


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
    averaging: Averaging = ALONE

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
        averaging: Averaging = ALONE,
    ) -> "Problem":
        losses = (inner,) if callable(inner) else tuple(inner)
        if not losses:
            raise InputError("inner_loss is an empty sequence; give one loss, or one for each inner step")
        leaves = _leaves(w, "inner parameters w"), _leaves(a, "outer parameters a")
        return cls(losses, outer, *leaves, Layout.of(leaves[0]), spectrum, diagnostics, averaging)

    def outer_gradient(self, w: Tensors) -> tuple[Tensor, Tensor, Tensors]:
        """L2, ∂L2/∂w as a flat vector and ∂L2/∂α at (w, α), by one joint backward."""
        loss = scalar(self.outer(w, self.a), "outer")
        with full_precision({t.device for t in w}):
            grads = gradient(loss, (*w, *self.a), "outer", of=len(w))
        g = self.averaging.vector(self.layout.flatten(grads[: len(w)]))
        return loss.detach(), g, filled(grads[len(w) :], self.a)


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
        decays = self.weight_decay if isinstance(self.weight_decay, list | tuple) else [self.weight_decay]
        numbers = all(isinstance(decay, Real | Tensor) for decay in decays)
        right = numbers and all(float(torch.as_tensor(decay).min()) >= 0 for decay in decays)
        require(right, f"weight_decay={self.weight_decay!r}", "one number of at least 0, or one for each parameter")

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
    numbers = len(values) > 0 and all(isinstance(value, Real | Tensor) for value in values)
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
