"""Max pooling with a cheap double backward that keeps the channels-last layout; torch's own loses it."""

from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from idarts.layers.fallback import is_small, must_fall_back
from idarts.layers.functions import Linear, call

SLOW_CHANNELS = (1, 2, 3, 5, 6, 7)  # for these, torch does not vectorise channels-last pooling on a CPU

_aten = torch.ops.aten


def max_pool2d(x: Tensor, kernel: int, stride: int, padding: int = 0, ceil_mode: bool = False) -> Tensor:
    """`torch.nn.functional.max_pool2d`, differentiable any number of times.

    >>> x = torch.randn(2, 3, 7, 7, requires_grad=True)
    >>> torch.equal(max_pool2d(x, 3, 1, 1), functional.max_pool2d(x, 3, 1, 1))
    True
    """
    if must_fall_back(x):
        return functional.max_pool2d(x, kernel, stride, padding, ceil_mode=ceil_mode)
    y: Tensor = call(_MaxPool, x, kernel, stride, padding, ceil_mode)
    return y


class LeanMaxPool2d(nn.MaxPool2d):
    """`nn.MaxPool2d` with a cheap double backward; torch's own if dilated, not square, or with indices."""

    def forward(self, input: Tensor) -> Any:
        window = self.kernel_size, self.stride, self.padding
        plain = self.dilation == 1 and not self.return_indices and all(isinstance(part, int) for part in window)
        # In the contiguous layout torch's own pooling is the faster one in every order.
        if not plain or is_small(input) or input.is_contiguous():
            return super().forward(input)
        kernel, stride, padding = (int(part) for part in window if isinstance(part, int))
        return max_pool2d(input, kernel, stride, padding, self.ceil_mode)


class _MaxPool(torch.autograd.Function):
    """With the positions of the maxima fixed, pooling is a linear map: it selects, and its transpose scatters."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, *window: Any) -> Tensor:
        slow = x.shape[1] in SLOW_CHANNELS and x.device.type == "cpu"
        slow = slow and x.is_contiguous(memory_format=torch.channels_last)
        y, places = _by_axes(x, *window) if slow else _pool(x, *window)
        ctx.save_for_backward(x, places)
        ctx.window = window
        return y

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        x, places = ctx.saved_tensors
        scatter = partial(_scatter, x.detach(), places, ctx.window)  # x for its shape and layout
        return call(Linear, g, scatter, partial(_select, places)), None, None, None, None


def _pool(x: Tensor, kernel: Any, stride: Any, padding: Any, ceil_mode: bool) -> tuple[Tensor, Tensor]:
    """The maxima, and their positions in the image."""
    result: tuple[Tensor, Tensor] = _aten.max_pool2d_with_indices(x, kernel, stride, padding, 1, ceil_mode)
    return result


def _by_axes(x: Tensor, *window: Any) -> tuple[Tensor, Tensor]:
    """`_pool` for few channels: along rows, then along columns, with the other axis treated as channels."""
    y, columns = _along(x.permute(0, 3, 2, 1), *window)  # from here on (n, w, h, c), then (n, h, w, c)
    y, rows = _along(y.transpose(1, 2), *window)
    places = rows * x.shape[3] + columns.transpose(1, 2).gather(1, rows)
    return _owned(y.permute(0, 3, 1, 2)), places.permute(0, 3, 1, 2)


def _owned(view: Tensor) -> Tensor:
    """The same memory as a tensor that autograd does not know as a view, so that a ReLU in place may follow."""
    place = view.untyped_storage(), view.storage_offset(), view.size(), view.stride()
    return torch.empty(0, dtype=view.dtype, device=view.device).set_(*place)


def _along(lines: Tensor, kernel: int, stride: int, padding: int, ceil_mode: bool) -> tuple[Tensor, Tensor]:
    """The maxima along dimension 1 of (n, length, other, channels), and their positions on that line."""
    n, length, other, channels = lines.shape
    wide = lines.reshape(n, length, 1, other * channels).permute(0, 3, 1, 2)
    y, places = _pool(wide, (kernel, 1), (stride, 1), (padding, 0), ceil_mode)
    shape = n, y.shape[2], other, channels
    return y.permute(0, 2, 3, 1).reshape(shape), places.permute(0, 2, 3, 1).reshape(shape)


def _scatter(x: Tensor, places: Tensor, window: tuple[Any, ...], g: Tensor) -> Tensor:
    kernel, stride, padding, ceil_mode = window
    last = x.is_contiguous(memory_format=torch.channels_last)
    g = g.contiguous(memory_format=torch.channels_last if last else torch.contiguous_format)
    image: Tensor = _aten.max_pool2d_with_indices_backward(g, x, kernel, stride, padding, 1, ceil_mode, places)
    return image


def _select(places: Tensor, t: Tensor) -> Tensor:
    """The values at these positions of an image, in channels-last layout."""
    n, c, h, w = places.shape
    flat, where = (image.permute(0, 2, 3, 1).flatten(1, 2) for image in (t, places))
    return flat.gather(1, where).view(n, h, w, c).permute(0, 3, 1, 2)
