"""The autograd functions of a lean convolution; the notation is that of `functions`."""

from typing import Any

import torch
from torch import Tensor

from idarts.layers.depthwise import depthwise_weight, is_slow
from idarts.layers.functions import Grads, call, needed, per_channel

_aten = torch.ops.aten


class Conv2d(torch.autograd.Function):
    """`geometry` is stride, padding, dilation (lists) and groups."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, *geometry: Any) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.geometry = geometry
        return torch.conv2d(x, weight, bias, *geometry)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Grads:
        arguments = g, *ctx.saved_tensors, ctx.geometry, needed(ctx)[:3]
        grads = call(_Conv2dGrad, *arguments) if torch.is_grad_enabled() else _conv2d_backward(*arguments)
        return *grads, *(None,) * 4


class _Conv2dGrad(torch.autograd.Function):
    """A convolution is linear in x and in its weight, so the gradients of its gradient are convolutions, too."""

    @staticmethod
    def forward(
        ctx: Any, g: Tensor, x: Tensor, weight: Tensor, geometry: tuple[Any, ...], wanted: tuple[bool, ...]
    ) -> Grads:
        ctx.save_for_backward(g, x, weight)
        ctx.geometry = geometry
        ctx.set_materialize_grads(False)
        return _conv2d_backward(g, x, weight, geometry, wanted)

    @staticmethod
    def backward(ctx: Any, u: Tensor | None, u_weight: Tensor | None, u_bias: Tensor | None) -> Grads:
        g, x, weight = ctx.saved_tensors
        want_g, want_x, want_weight = needed(ctx)[:3]
        grad_g: Tensor | None = None
        for image, kernel in ((x, u_weight), (u, weight)):
            if want_g and image is not None and kernel is not None:
                part = torch.conv2d(image, kernel, None if grad_g is not None else u_bias, *ctx.geometry)
                grad_g = part if grad_g is None else grad_g.add_(part)
        if want_g and grad_g is None and u_bias is not None:
            grad_g = per_channel(u_bias).expand_as(g)
        wanted = want_x and u_weight is not None, want_weight and u is not None, False
        grad_x, grad_weight, _ = _conv2d_backward(
            g, x if u is None else u, weight if u_weight is None else u_weight, ctx.geometry, wanted
        )
        return grad_g, grad_x, grad_weight, None, None


def _conv2d_backward(
    g: Tensor, x: Tensor, weight: Tensor, geometry: tuple[Any, ...], wanted: tuple[bool, ...]
) -> Grads:
    if wanted[1] and is_slow(x, weight, geometry):
        grad_x, _, grad_bias = _conv2d_backward(g, x, weight, geometry, (wanted[0], False, wanted[2]))
        return grad_x, depthwise_weight(g, x, weight, geometry), grad_bias
    if not any(wanted):
        return None, None, None
    stride, padding, dilation, groups = geometry
    grads: Grads = _aten.convolution_backward(
        g, x, weight, [weight.shape[0]], stride, padding, dilation, False, [0, 0], groups, wanted
    )
    return grads
