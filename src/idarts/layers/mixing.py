"""A weighted sum of tensors that can be differentiated twice without a temporary for each product."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from idarts.layers.fallback import must_fall_back
from idarts.layers.functions import call


def mix(terms: Sequence[Tensor], weights: Tensor, rest: Sequence[Tensor] = ()) -> Tensor:
    """Σ weights[i]·terms[i] + Σ rest.

    >>> mix([torch.ones(2), torch.ones(2)], torch.tensor([1.0, 2.0]), [torch.ones(2)])
    tensor([4., 4.])
    """
    if must_fall_back(terms[0], weights, *terms, *rest):
        return sum(
            [weight * term for weight, term in zip(weights, terms, strict=True)] + list(rest), start=torch.zeros(())
        )
    result: Tensor = call(_Mix, weights, len(terms), *terms, *rest)
    return result


def _combine(weights: Sequence[Tensor | None], tensors: Sequence[Tensor | None]) -> Tensor | None:
    """Σ weight·tensor, accumulated in place. A missing tensor is left out; a missing weight counts as one."""
    total: Tensor | None = None
    for weight, tensor in zip(weights, tensors, strict=True):
        if tensor is None:
            continue
        if total is None:
            total = tensor.clone(memory_format=torch.channels_last) if weight is None else tensor * weight
        elif weight is None:
            total.add_(tensor)
        else:
            total.addcmul_(tensor, weight)
    return total


class _Mix(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weights: Tensor, count: int, *tensors: Tensor) -> Tensor:
        ctx.count = count
        ctx.save_for_backward(weights, *tensors[:count])
        total = _combine([*weights.unbind(), *[None] * (len(tensors) - count)], tensors)
        assert total is not None
        return total

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        weights, *terms = ctx.saved_tensors
        # One copy of a part of a wider tensor is cheaper than one for each term; in a graph it is one node more.
        if g.dim() == 4 and not torch.is_grad_enabled():
            g = g.contiguous(memory_format=torch.channels_last)
        grad_weights, *grads = call(_MixGrad, g, weights, ctx.needs_input_grad[0], *terms)
        rest = [g] * (len(ctx.needs_input_grad) - 2 - ctx.count)
        return grad_weights, None, *grads, *rest


class _MixGrad(torch.autograd.Function):
    """∂weights[i] = ⟨g, terms[i]⟩ and ∂terms[i] = weights[i]·g."""

    @staticmethod
    def forward(ctx: Any, g: Tensor, weights: Tensor, want_weights: bool, *terms: Tensor) -> tuple[Tensor | None, ...]:
        ctx.save_for_backward(g, weights, *terms)
        ctx.set_materialize_grads(False)
        grad_weights = torch.stack([_dot(g, term) for term in terms]) if want_weights else None
        return grad_weights, *(g * weight for weight in weights.unbind())

    @staticmethod
    def backward(ctx: Any, u_weights: Tensor | None, *u: Tensor | None) -> tuple[Tensor | None, ...]:
        g, weights, *terms = ctx.saved_tensors
        each = [None] * len(terms) if u_weights is None else list(u_weights.unbind())
        grad_g = _combine([*weights.unbind(), *each], [*u, *(terms if u_weights is not None else each)])
        grad_weights = None
        if any(part is not None for part in u) and ctx.needs_input_grad[1]:
            zero = g.new_zeros(())
            grad_weights = torch.stack([zero if part is None else _dot(part, g) for part in u])
        return grad_g, grad_weights, None, *(None if weight is None else g * weight for weight in each)


def _dot(a: Tensor, b: Tensor) -> Tensor:
    """⟨a, b⟩, in one pass if both have the same memory layout."""
    if a.dim() == 4 and a.stride() == b.stride() and a.is_contiguous(memory_format=torch.channels_last):
        a, b = a.permute(0, 2, 3, 1), b.permute(0, 2, 3, 1)
    return torch.dot(a.reshape(-1), b.reshape(-1))
