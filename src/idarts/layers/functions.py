"""The autograd functions of the lean layers: each layer's gradient is itself a function with a hand-written backward.

Notation: g is the gradient at a layer's output. In the double backward, u, u_weight and u_bias are the gradients at the
layer's gradients for x, weight and bias.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

Grads = tuple[Tensor | None, ...]
Map = Callable[[Tensor], Tensor]

_aten = torch.ops.aten


def call(function: type[torch.autograd.Function], *arguments: Any) -> Any:
    """`function.apply`, for which torch has no types."""
    apply: Callable[..., Any] = function.apply
    return apply(*arguments)


def needed(ctx: Any) -> tuple[bool, ...]:
    """Which gradients the current backward pass needs.

    `ctx.needs_input_grad` only says which tensors require a gradient, not which are `inputs` of `torch.autograd.grad`.
    Without this, a product with respect to α would compute the gradients of all convolution weights and discard them.
    """
    nodes = (node for node, _ in ctx.next_functions if node is not None)
    return tuple(requires and _will_run(next(nodes)) for requires in ctx.needs_input_grad)


def _will_run(node: Any) -> bool:
    try:
        return bool(torch._C._will_engine_execute_node(node))
    except RuntimeError:  # raised for a leaf among `inputs`, and for no other node
        return True


class BatchNorm(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        weight: Tensor | None,
        bias: Tensor | None,
        running_mean: Tensor | None,
        running_var: Tensor | None,
        training: bool,
        momentum: float,
        eps: float,
    ) -> Tensor:
        y, mean, invstd = torch.native_batch_norm(x, weight, bias, running_mean, running_var, training, momentum, eps)
        if not training:
            assert running_mean is not None
            assert running_var is not None
            mean, invstd = running_mean, (running_var + eps).rsqrt()
        ctx.save_for_backward(x, weight, mean, invstd)
        ctx.training, ctx.eps = training, eps
        return y

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Grads:
        wanted = needed(ctx)[:3]
        x, weight, mean, invstd = ctx.saved_tensors  # once: checkpointing unpacks each tensor only once
        g = _match_layout(x, g)
        if torch.is_grad_enabled():  # for second derivatives
            grads = call(_BatchNormGrad, g, x, weight, mean, invstd, ctx.training, ctx.eps, wanted[0])
        else:
            grads = _batch_norm_backward(g, x, weight, mean, invstd, ctx.training, wanted[0])
        return *(grad if want else None for grad, want in zip(grads, wanted, strict=True)), *(None,) * 5


class _BatchNormGrad(torch.autograd.Function):
    """∂x = γ·r·P g, ∂γ = Σ g·x̂, ∂β = Σ g, with r = 1/σ, x̂ = (x − μ)·r and P g = g − mean(g) − x̂·mean(g·x̂)."""

    @staticmethod
    def forward(
        ctx: Any,
        g: Tensor,
        x: Tensor,
        weight: Tensor | None,
        mean: Tensor,
        invstd: Tensor,
        training: bool,
        eps: float,
        want_x: bool,
    ) -> Grads:
        grad_x, dot, total = _batch_norm_backward(g, x, weight, mean, invstd, training, want_x)
        ctx.save_for_backward(g, x, weight, mean, invstd, total, dot)
        ctx.training, ctx.eps = training, eps
        ctx.set_materialize_grads(False)
        return grad_x, dot, total

    @staticmethod
    def backward(ctx: Any, u: Tensor | None, u_weight: Tensor | None, u_bias: Tensor | None) -> Grads:
        if torch.is_grad_enabled():  # the result must be differentiable again, which is rare
            grads = _batch_norm_double_backward_by_torch(ctx, u, u_weight, u_bias)
        else:
            grads = _batch_norm_double_backward(ctx, u, u_weight, u_bias)
        return *grads, *(None,) * 5


def _batch_norm_backward(
    g: Tensor, x: Tensor, weight: Tensor | None, mean: Tensor, invstd: Tensor, training: bool, want_x: bool
) -> tuple[Tensor | None, Tensor, Tensor]:
    grad_x: Tensor | None = None
    if training and want_x:
        grad_x, dot, total = _aten.native_batch_norm_backward(
            g, x, weight, None, None, mean, invstd, True, 0.0, [True, True, True]
        )
    else:
        total, dot = _sums(g, x, mean, invstd)
    if want_x and not training:
        grad_x = g * per_channel(invstd if weight is None else weight * invstd)
    return grad_x, dot, total


def _batch_norm_double_backward(ctx: Any, u: Tensor | None, u_weight: Tensor | None, u_bias: Tensor | None) -> Grads:
    """The gradient of ⟨u, ∂x⟩ + u_weight·∂γ + u_bias·∂β with respect to g, x and γ.

    For g it is γ·r·P u + u_weight·x̂ + u_bias. For x it comes through x̂, with dx̂ = r·P dx, and through r, with
    dr = −r²·mean(x̂·dx). Both are combinations of u, g, x̂ and 1, with coefficients per channel.
    """
    g, x, weight, mean, invstd, g_sum, g_dot = ctx.saved_tensors
    want_g, want_x, want_weight = needed(ctx)[:3]
    zero = torch.zeros_like(mean)
    u_sum = u_dot = u_g = zero
    if u is not None:
        u = _match_layout(x, u)
        u_sum, u_dot = _sums(u, x, mean, invstd)
        if want_x or want_weight:
            _, u_g = _sums(u, g, zero, torch.ones_like(zero))
    share = x.shape[1] / x.numel() if ctx.training else 0.0  # of one value in μ and r, which evaluation keeps constant
    scale = invstd if weight is None else weight * invstd
    u_pg = u_g - (u_sum * g_sum + u_dot * g_dot) * share  # ⟨u, P g⟩
    from_u = -scale * g_dot * share  # with from_g, the gradient at x̂ is from_u·u + from_g·g
    from_g = (zero if u_weight is None else u_weight) - scale * u_dot * share
    grad_g = grad_x = None
    if want_g:
        on_one = (zero if u_bias is None else u_bias) - scale * u_sum * share
        grad_g = _combine(x, mean, from_g * invstd, on_one, (u, scale))
    if want_x:
        on_xhat = (from_u * u_dot + from_g * g_dot + scale * u_pg) * -share
        on_one = (from_u * u_sum + from_g * g_sum) * -share
        terms = (u, from_u * invstd), (g, from_g * invstd)
        grad_x = _combine(x, mean, on_xhat * invstd * invstd, on_one * invstd, *terms)
    return grad_g, grad_x, u_pg * invstd if want_weight else None


def _batch_norm_double_backward_by_torch(ctx: Any, *u: Tensor | None) -> Grads:
    """The same by automatic differentiation of the gradient's formula: slow, but differentiable again."""
    g, x, weight, mean, invstd, *_ = ctx.saved_tensors
    # These are partial derivatives, but g depends on x. Views of the two do not depend on each other.
    g, x, weight = g.view_as(g), x.view_as(x), None if weight is None else weight.view_as(weight)
    over, count = (0, 2, 3), x.numel() / x.shape[1]
    mean, invstd = per_channel(mean), per_channel(invstd)
    if ctx.training:
        mean = x.mean(over, keepdim=True)
        invstd = (x.var(over, correction=0, keepdim=True) + ctx.eps).rsqrt()
    xhat = (x - mean) * invstd
    dot, total = (g * xhat).sum(over), g.sum(over)
    centred = g - (per_channel(total) + xhat * per_channel(dot)) / count if ctx.training else g
    grad_x = centred * (invstd if weight is None else per_channel(weight) * invstd)
    pairs = [(o, v) for o, v in zip((grad_x, dot, total), u, strict=True) if v is not None]
    wanted = needed(ctx)[:3]
    inputs = [t for t, want in zip((g, x, weight), wanted, strict=True) if want]
    if not pairs or not inputs:  # a higher derivative may need nothing of this layer
        return None, None, None
    outputs, vectors = zip(*pairs, strict=True)
    grads = iter(torch.autograd.grad(outputs, inputs, vectors, create_graph=True, allow_unused=True))
    return tuple(next(grads) if want else None for want in wanted)


def _sums(u: Tensor, x: Tensor, mean: Tensor, invstd: Tensor) -> tuple[Tensor, Tensor]:
    """(Σ u, Σ u·(x − mean)·invstd) per channel, in one pass and without a temporary."""
    mask = [False, True, True]
    _, dot, total = _aten.native_batch_norm_backward(u, x, None, None, None, mean, invstd, True, 0.0, mask)
    return total, dot


def _combine(x: Tensor, mean: Tensor, scale: Tensor, one: Tensor, *terms: tuple[Tensor | None, Tensor]) -> Tensor:
    """scale·(x − mean) + one + Σ coefficient·tensor, every coefficient per channel, in one pass per tensor."""
    # With mean 0 and variance 1, batch normalisation is this affine map, and its kernel is the fastest one for it.
    neutral = torch.zeros_like(mean), torch.ones_like(mean)
    result: Tensor = torch.native_batch_norm(x, scale, one - scale * mean, *neutral, False, 0.0, 0.0)[0]
    for tensor, coefficient in terms:
        if tensor is not None:
            result.addcmul_(tensor, per_channel(coefficient))
    return result


def per_channel(v: Tensor) -> Tensor:
    return v.view(1, -1, 1, 1)


def _match_layout(x: Tensor, t: Tensor) -> Tensor:
    """A copy of t in the layout of x: with mixed layouts the kernels are several times slower than with this copy."""
    channels_last = x.is_contiguous(memory_format=torch.channels_last)
    return t.contiguous(memory_format=torch.channels_last if channels_last else torch.contiguous_format)


class Linear(torch.autograd.Function):
    """A linear map of one tensor, with its transpose: enough for derivatives of any order."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, apply: Map, transpose: Map) -> Tensor:
        ctx.swapped = transpose, apply
        return apply(x)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Grads:
        grad = call(Linear, g, *ctx.swapped) if torch.is_grad_enabled() else ctx.swapped[0](g)
        return grad, None, None


class ReLU(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        y = x.relu()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        (y,) = ctx.saved_tensors
        mask = partial(_mask, y.detach())
        result: Tensor = call(Linear, g, mask, mask)
        return result


def _mask(y: Tensor, t: Tensor) -> Tensor:
    result: Tensor = _aten.threshold_backward(t, y, 0)
    return result
