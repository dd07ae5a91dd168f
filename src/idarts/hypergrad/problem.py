"""The bilevel problem at one point, and how several processes share it."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from idarts.errors import InputError
from idarts.hypergrad.isolation import full_precision
from idarts.hypergrad.products import Loss, evaluate, gradient, zeros_for_none
from idarts.hypergrad.vectors import Layout, Tensors, leaves


@dataclass(frozen=True)
class Averaging:
    """How processes with equal shares of the batches compute one estimate; `mean` averages a tensor over them.

    With `vectors`, ∂L2/∂w and every curvature product are averaged (K + 2 averages for K products), and the estimate is
    that of the joined batches. Without, each process uses its own curvature but the same γ, and only the result is
    averaged.
    """

    mean: Callable[[Tensor], Tensor]
    vectors: bool = True

    def vector(self, v: Tensor) -> Tensor:
        return self.mean(v) if self.vectors else v

    def number(self, x: Tensor) -> Tensor:
        """A number that a decision depends on: all processes must agree. With averaged vectors they already do."""
        return x if self.vectors else self.mean(x)


ALONE = Averaging(lambda tensor: tensor)


@dataclass(frozen=True)
class Problem:
    """min over α of L2(w*(α), α) with w*(α) = argmin over w of L1(w, α), at one point (w, α)."""

    inner: tuple[Loss, ...]
    outer: Loss
    w: Tensors
    a: Tensors
    layout: Layout  # of w as a flat vector
    devices: set[torch.device]
    own: Tensors  # the caller's tensors, whose values (w, α) have; a loss must use its arguments instead
    diagnostics: bool = False
    averaging: Averaging = ALONE

    @classmethod
    def of(
        cls,
        inner: Loss | Sequence[Loss],
        outer: Loss,
        w: Iterable[Tensor],
        a: Iterable[Tensor],
        *,
        diagnostics: bool = False,
        averaging: Averaging = ALONE,
    ) -> "Problem":
        losses = (inner,) if callable(inner) else tuple(inner)
        if not losses:
            raise InputError("inner_loss is an empty sequence; give one loss, or one for each inner step")
        own = _checked(w, "inner parameters w"), _checked(a, "outer parameters a")
        _require_distinct(*own)
        # New leaves on the same storage: the caller's hooks do not run, and the caller's `.grad` does not change.
        new_w, new_a = leaves(own[0]), leaves(own[1])
        layout = Layout.of(new_w)
        devices = {layout.device, new_a[0].device}
        return cls(losses, outer, new_w, new_a, layout, devices, (*own[0], *own[1]), diagnostics, averaging)

    def outer_gradient(self, w: Tensors) -> tuple[Tensor, Tensor, Tensors]:
        """L2, ∂L2/∂w as a flat vector and ∂L2/∂α at (w, α), from one backward pass."""
        return self._gradients(self.outer, w, "outer")

    def inner_gradient(self, w: Tensors) -> tuple[Tensor, Tensor, Tensors]:
        """The same of L1. The difference of two of them is a second derivative, so autocast is off."""
        with full_precision(self.devices):
            return self._gradients(self.inner[0], w, "inner")

    def _gradients(self, loss: Loss, w: Tensors, which: str) -> tuple[Tensor, Tensor, Tensors]:
        value = evaluate(loss, w, self.a, which)
        with full_precision(self.devices):
            grads = gradient(value, (*w, *self.a), which, own=self.own, required=len(w))
        flat = self.averaging.vector(self.layout.flatten(grads[: len(w)]))
        return value.detach(), flat, zeros_for_none(grads[len(w) :], self.a)


def _checked(parameters: Iterable[Tensor] | Tensor, what: str) -> Tensors:
    if isinstance(parameters, Tensor):
        raise InputError(f"the {what} are one tensor; give a tuple of tensors")
    tensors = tuple(parameters)
    if not tensors:
        raise InputError(f"the {what} are empty; give at least one tensor")
    for index, tensor in enumerate(tensors):
        if not isinstance(tensor, Tensor) or not tensor.is_floating_point():
            raise InputError(f"number {index} of the {what} is not a floating-point tensor")
        if tensor.is_inference():
            raise InputError(f"number {index} of the {what} was made in inference mode; make a clone of it outside")
        if not tensor.requires_grad:
            raise InputError(
                f"number {index} of the {what}, of shape {tuple(tensor.shape)}, does not require grad; "
                "leave it out or call requires_grad_()"
            )
        if tensor.device != tensors[0].device:
            raise InputError(f"the {what} are on {tensors[0].device} and {tensor.device}; move them to one device")
    return tensors


def _require_distinct(w: Tensors, a: Tensors) -> None:
    if len({*map(id, w), *map(id, a)}) == len(w) + len(a):
        return
    seen: dict[int, str] = {}
    for which, tensors in (("w", w), ("a", a)):
        for index, tensor in enumerate(tensors):
            name = f"number {index} of {which}"
            if id(tensor) in seen:
                raise InputError(
                    f"{name} is the same tensor as {seen[id(tensor)]}; a parameter is inner or outer, once"
                )
            seen[id(tensor)] = name
