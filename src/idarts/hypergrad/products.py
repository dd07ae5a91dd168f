"""Products with the second derivatives of the inner loss L1 at one point (w, α), without building a matrix.

`hessian(v)` is ∂²L1/∂w² · v; `mixed(v)` is v · ∂²L1/∂w∂α, a tuple like α. Exact products differentiate one retained
gradient graph again. Finite differences follow the paper's appendix B.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from inspect import signature
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from idarts.errors import InputError, NotDifferentiableError
from idarts.hypergrad.graph import TWICE, Graph, require_arguments, translate
from idarts.hypergrad.isolation import Randomness
from idarts.hypergrad.vectors import Layout, Tensors, leaves, length

Loss = Callable[[Tensors, Tensors], Tensor]

# The cost of a product in gradient evaluations, counted in convolutions: a gradient needs three per layer.
HESSIAN_COST, MIXED_COST, GAUSS_NEWTON_COST, DIFFERENCE_COST = 2.0, 4 / 3, 4 / 3, 2.0
JOINT_GAUSS_NEWTON_COST = 2.0  # with the mixed product


@runtime_checkable
class SplitLoss(Protocol):
    """A loss L1 = criterion(outputs(w, α)) that gives access to both, which the Gauss–Newton matrix needs.

    Where α is part of the criterion, as in data cleaning, it is `criterion(outputs, a)`.
    """

    def outputs(self, w: Tensors, a: Tensors) -> Tensor: ...

    @property
    def criterion(self) -> Callable[..., Tensor]: ...


class Products(ABC):
    """Counts the cost; the two kinds of products implement the rest."""

    loss: Tensor
    gradient: Tensor  # ∂L1/∂w, flat

    suspects: Sequence[str] = ()  # operations whose second derivative may be wrong, should a product be so

    def __init__(self, w: Tensors, a: Tensors, layout: Layout | None = None) -> None:
        self.w, self.a, self.layout = w, a, layout or Layout.of(w)
        self.hvps = 0
        self.gradient_evaluations = 1.0

    def hessian(self, v: Tensor) -> Tensor:
        return self.joint(v)[0]

    def mixed(self, v: Tensor) -> Tensors:
        return self.joint(v)[1]

    @abstractmethod
    def joint(self, v: Tensor) -> tuple[Tensor, Tensors]:
        """`hessian(v)` and `mixed(v)` for little more than the cost of one."""

    def gauss_newton(self, v: Tensor) -> Tensor:
        """Jᵀ (∂²ℓ/∂z²) J v with z = outputs and J = ∂z/∂w: positive semi-definite for a convex criterion ℓ."""
        raise InputError("gauss_newton needs exact products: use products='exact' with curvature='gauss_newton'")

    def joint_gauss_newton(self, v: Tensor) -> tuple[Tensor, Tensors]:
        """`gauss_newton(v)` and `mixed(v)`, which share the way to J v."""
        return self.gauss_newton(v), self.mixed(v)

    def release(self) -> None:
        """Free the graph; no product is possible afterwards."""
        self.loss = self.loss.detach()

    def _count(self, evaluations: float, hvps: int = 0) -> None:
        self.gradient_evaluations += evaluations
        self.hvps += hvps


class ExactProducts(Products):
    """Double backward through one retained gradient graph: an extra product costs less than recomputing it."""

    def __init__(
        self,
        loss: Loss,
        w: Tensors,
        a: Tensors,
        *,
        split: bool = False,
        layout: Layout | None = None,
        own: Sequence[Tensor] = (),
    ) -> None:
        super().__init__(w, a, layout)
        self._outputs: Tensor | None = None
        self._cotangent: Tensor | None = None
        try:
            if split:
                self.loss, self._outputs = _split_loss(loss, w, a)
            else:
                self.loss = scalar(loss(w, a), "inner")
            self._inspect()
            if self._outputs is None:
                grads = gradient(self.loss, w, "inner", own=own, create_graph=True)
            else:
                self._cotangent, grads = _split_gradient(self.loss, self._outputs, w, own)
        except RuntimeError as error:
            translate(error, "inner")
            raise
        self._graph: Tensor | None = self.layout.join(grads)  # so the vector of a product needs no cutting
        self.gradient = self._graph.detach()

    def _inspect(self) -> None:
        graph = Graph.of(self.loss)
        # Where the cotangent is constant, torch accepts such a function and silently leaves out its curvature.
        if graph.once_differentiable:
            raise NotDifferentiableError(TWICE.format(", ".join(sorted(graph.once_differentiable))))
        self.suspects = sorted(graph.suspects)

    def hessian(self, v: Tensor) -> Tensor:
        self._count(HESSIAN_COST, hvps=1)
        return self.layout.flatten(self._pull(v, self.w))

    def mixed(self, v: Tensor) -> Tensors:
        self._count(MIXED_COST)
        return zeros_for_none(self._pull(v, self.a), self.a)

    def joint(self, v: Tensor) -> tuple[Tensor, Tensors]:
        self._count(HESSIAN_COST, hvps=1)
        pulled = self._pull(v, (*self.w, *self.a))
        return self.layout.flatten(pulled[: len(self.w)]), zeros_for_none(pulled[len(self.w) :], self.a)

    def gauss_newton(self, v: Tensor) -> Tensor:
        self._count(GAUSS_NEWTON_COST, hvps=1)
        return self._curved(v, ())[0]

    def joint_gauss_newton(self, v: Tensor) -> tuple[Tensor, Tensors]:
        self._count(JOINT_GAUSS_NEWTON_COST, hvps=1)
        image, mixed = self._curved(v, self.a)
        return image, zeros_for_none(mixed, self.a)

    def _curved(self, v: Tensor, others: Tensors) -> tuple[Tensor, tuple[Tensor | None, ...]]:
        """The Gauss–Newton product, and the derivative of ⟨∂L1/∂w, v⟩ by other tensors."""
        outputs, cotangent = self._outputs, self._cotangent
        assert outputs is not None
        assert cotangent is not None
        jv, *mixed = self._pull(v, (cotangent, *others))  # the gradient is Jᵀ·cotangent, so its derivative there is J
        curved = None if jv is None else self._vjp(cotangent, jv, (outputs,))[0]
        image = [None] * len(self.w) if curved is None else self._vjp(outputs, curved, self.w)
        return self.layout.flatten(image), tuple(mixed)

    def release(self) -> None:
        super().release()
        self._graph = self._outputs = self._cotangent = None

    def _pull(self, v: Tensor, inputs: Tensors) -> tuple[Tensor | None, ...]:
        """v · ∂²L1/∂w∂inputs."""
        assert self._graph is not None
        return self._vjp(self._graph, v, inputs)

    def _vjp(self, output: Tensor, v: Tensor, inputs: Tensors) -> tuple[Tensor | None, ...]:
        if not output.requires_grad:  # a loss linear in w has a constant gradient
            return (None,) * len(inputs)
        try:
            return torch.autograd.grad(output, inputs, v, retain_graph=True, allow_unused=True)
        except RuntimeError as error:
            translate(error, "inner")
            raise


class FiniteDifferences(Products):
    """(∇L1(w + εv) − ∇L1(w − εv)) / 2ε with ε = radius/‖v‖. Cheap in memory, wrong at the kinks of ReLU networks."""

    def __init__(
        self,
        loss: Loss,
        w: Tensors,
        a: Tensors,
        *,
        radius: float = 1e-2,
        layout: Layout | None = None,
        own: Sequence[Tensor] = (),
    ) -> None:
        super().__init__(w, a, layout)
        self._loss, self._radius = loss, radius
        devices = {self.layout.device, *(tensor.device for tensor in a)}
        self._random = Randomness.now(devices)  # every evaluation uses the same dropout mask
        self._flat = self.layout.flatten(w)
        self.loss, self.gradient, _ = self._gradients(w, own)

    def joint(self, v: Tensor) -> tuple[Tensor, Tensors]:
        self._count(DIFFERENCE_COST, hvps=1)
        epsilon = self._radius / length(v)
        _, w_plus, a_plus = self._gradients(self.layout.unflatten(self._flat + epsilon * v))
        _, w_minus, a_minus = self._gradients(self.layout.unflatten(self._flat - epsilon * v))
        mixed = tuple(((p - m) / (2 * epsilon)).to(p.dtype) for p, m in zip(a_plus, a_minus, strict=True))
        return (w_plus - w_minus) / (2 * epsilon), mixed

    def _gradients(self, w: Tensors, own: Sequence[Tensor] = ()) -> tuple[Tensor, Tensor, Tensors]:
        self._random.restore()
        w = leaves(w)
        loss = evaluate(self._loss, w, self.a, "inner")
        grads = gradient(loss, (*w, *self.a), "inner", own=own, required=len(w))
        return loss.detach(), self.layout.flatten(grads[: len(w)]), zeros_for_none(grads[len(w) :], self.a)


def evaluate(loss: Loss, w: Tensors, a: Tensors, which: str) -> Tensor:
    """The loss with its graph, if it is one differentiable number."""
    try:
        return scalar(loss(w, a), which)
    except RuntimeError as error:
        translate(error, which)
        raise


def scalar(loss: object, which: str) -> Tensor:
    """The loss, if it is one differentiable number."""
    if not isinstance(loss, Tensor) or loss.numel() != 1:
        shape = tuple(loss.shape) if isinstance(loss, Tensor) else type(loss).__name__
        raise InputError(
            f"the {which} loss must return a tensor with one number, but it returned {shape}; take a mean or sum"
        )
    if not loss.requires_grad:
        raise InputError(_no_dependence(which))
    return loss if loss.dim() == 0 else loss.reshape(())


def gradient(
    loss: Tensor,
    inputs: Tensors,
    which: str,
    *,
    own: Sequence[Tensor] = (),
    required: int | None = None,
    create_graph: bool = False,
) -> tuple[Tensor | None, ...]:
    """∂loss/∂inputs. The loss must depend on one of the first `required` inputs (by default all), and not on `own`."""
    try:
        both = torch.autograd.grad(loss, (*inputs, *own), create_graph=create_graph, allow_unused=True)
    except RuntimeError as error:
        translate(error, which)
        raise
    grads = require_arguments(both, own, which)
    require_dependence(grads[:required], which)
    for g in grads:
        if g is not None and g.is_sparse:
            raise InputError(f"the {which} loss has a sparse gradient; make its nn.Embedding with sparse=False")
    return grads


def require_dependence(grads: Sequence[Tensor | None], which: str) -> None:
    if not [g for g in grads if g is not None]:
        raise InputError(_no_dependence(which))


def zeros_for_none(grads: Sequence[Tensor | None], like: Tensors) -> Tensors:
    """Zeros where autograd returned None, which means that a parameter is not used."""
    return tuple([torch.zeros_like(t) if g is None else g for g, t in zip(grads, like, strict=True)])


def _split_loss(loss: object, w: Tensors, a: Tensors) -> tuple[Tensor, Tensor]:
    """The loss and the outputs that it is computed from."""
    if not isinstance(loss, SplitLoss):
        raise InputError(
            "curvature='gauss_newton' needs the model's outputs: make the inner loss with "
            "idarts.hypergrad.lift, or give it the methods outputs(w, a) and criterion(outputs)"
        )
    outputs = loss.outputs(w, a)
    if not isinstance(outputs, Tensor) or not outputs.requires_grad:
        raise InputError("curvature='gauss_newton' needs outputs(w, a) to be one tensor that depends on w")
    arguments = (outputs, a) if len(signature(loss.criterion).parameters) > 1 else (outputs,)
    return scalar(loss.criterion(*arguments), "inner"), outputs


def _split_gradient(
    value: Tensor, outputs: Tensor, w: Tensors, own: Sequence[Tensor]
) -> tuple[Tensor, tuple[Tensor | None, ...]]:
    """∂L1/∂outputs and ∂L1/∂w = Jᵀ · ∂L1/∂outputs."""
    cotangent, *_ = gradient(value, (outputs,), "inner", own=own, create_graph=True)
    assert cotangent is not None
    if not cotangent.requires_grad:  # a criterion linear in the outputs has no curvature, but the products need J
        cotangent = cotangent.detach().requires_grad_()
    grads = torch.autograd.grad(outputs, w, cotangent, create_graph=True, allow_unused=True)
    require_dependence(grads, "inner")
    return cotangent, grads


def _no_dependence(which: str) -> str:
    return (
        f"the {which} loss does not depend on the inner parameters it is given; compute it from its argument w "
        "(idarts.hypergrad.lift makes such a function from a module)"
    )
