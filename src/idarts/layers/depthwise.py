"""The gradient of a depthwise weight where oneDNN is slow: with over three columns, or more rows than the image.

Each way here calls oneDNN with narrow weights only. Except for a few rows of padding, none of the usual ones copies the
image: in channels-last layout, the even and the odd columns of an image are the channels of one half as wide.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

FAST_COLUMNS = 3  # oneDNN's gradient of a depthwise weight is eight times slower for wider kernels
Geometry = tuple[Any, ...]  # stride, padding, dilation (lists) and groups

_aten = torch.ops.aten


def may_be_slow(layer: nn.Conv2d) -> bool:
    """Whether oneDNN's gradient of a layer's weight is slow for images of the usual sizes.

    >>> [may_be_slow(nn.Conv2d(4, 4, side, groups=4)) for side in (3, 5)]
    [False, True]
    """
    depthwise = layer.groups == layer.in_channels == layer.out_channels and layer.dilation == (1, 1)
    return depthwise and layer.kernel_size[1] > FAST_COLUMNS and layer.weight.device.type == "cpu"


def is_slow(x: Tensor, weight: Tensor, geometry: Geometry) -> bool:
    """Whether oneDNN's gradient of this weight is slow.

    >>> geometry = [1, 1], [2, 2], [1, 1], 4
    >>> [is_slow(torch.zeros(1, 4, 8, 8), torch.zeros(4, 1, side, side), geometry) for side in (3, 5)]
    [False, True]
    """
    _, padding, dilation, groups = geometry
    depthwise = groups == x.shape[1] == weight.shape[0] and dilation == [1, 1] and x.device.type == "cpu"
    return depthwise and (weight.shape[3] > FAST_COLUMNS or (any(padding) and weight.shape[2] > x.shape[2]))


def depthwise_weight(g: Tensor, x: Tensor, weight: Tensor, geometry: Geometry) -> Tensor:
    """The gradient of a depthwise weight, given the gradient g at the output.

    >>> x, weight = torch.randn(2, 3, 8, 8), torch.randn(3, 1, 5, 5, requires_grad=True)
    >>> y = torch.conv2d(x, weight, padding=2, groups=3)
    >>> expected, = torch.autograd.grad(y.sum(), weight)
    >>> ours = depthwise_weight(torch.ones_like(y), x, weight, ([1, 1], [2, 2], [1, 1], 3))
    >>> torch.allclose(ours, expected, atol=1e-4)
    True
    """
    stride, (top, left), _, _ = geometry
    usual = list(weight.shape[2:]) == [2 * top + 1, 2 * left + 1] and left <= 2 and x.shape[3] % 2 == 0
    if usual and stride == [1, 1]:
        return _same_size(g, x, top, left)
    if usual and stride == [2, 2] and left == 2:
        return _half_size(g, x, top)
    return _by_windows(g, x, weight, geometry)


def _same_size(g: Tensor, x: Tensor, top: int, left: int) -> Tensor:
    """Stride 1, and an output as large as the image."""
    # Rows and columns that read nothing but padding have no gradient.
    empty = max(top + 1 - x.shape[2], 0), max(left + 1 - x.shape[3], 0)
    x, rows, top = _with_rows(x, 2 * (top - empty[0]) + 1, top - empty[0])
    left -= empty[1]
    inner = _narrow(g, x, rows, min(left, 1), top=top)
    if left > 1:
        # Columns 0, 2 and 4 read pixels of the parity of the output's.
        outer = _narrow(_parities(g), _parities(x), rows, 1, top=top).unflatten(0, (2, -1)).sum(0)
        inner = torch.cat([outer[..., :1], inner, outer[..., 2:]], dim=3)
    return functional.pad(inner, [empty[1], empty[1], empty[0], empty[0]]) if any(empty) else inner


def _half_size(g: Tensor, x: Tensor, top: int) -> Tensor:
    """Stride 2 and five columns: 0, 2 and 4 read even pixels, 1 and 3 odd ones."""
    x, rows, top = _with_rows(x, 2 * top + 1, top)
    even, odd = _narrow(torch.cat([g, g], dim=1), _parities(x), rows, 1, top=top, stride=2).chunk(2)
    columns = even[..., 0], odd[..., 0], even[..., 1], odd[..., 1], even[..., 2]
    return torch.stack(columns, dim=3)


def _with_rows(x: Tensor, rows: int, top: int) -> tuple[Tensor, int, int]:
    """The image, padded here if the weight is higher, and by the convolution otherwise; the rows; what it pads."""
    return (functional.pad(x, [0, 0, top, top]), rows, 0) if rows > x.shape[2] else (x, rows, top)


def _parities(x: Tensor) -> Tensor:
    """The even and the odd columns one after the other along the channels: a view if x is channels-last."""
    n, c, h, w = x.shape
    return x.permute(0, 2, 3, 1).reshape(n, h, w // 2, 2 * c).permute(0, 3, 1, 2)


def _narrow(g: Tensor, x: Tensor, rows: int, left: int, *, top: int, stride: int = 1) -> Tensor:
    """The gradient of 2·left + 1 columns; the stride is that of the rows."""
    like = x.new_empty(x.shape[1], 1, rows, 2 * left + 1)
    return _weight(g, x, like, [stride, 1], [top, left])


def _weight(g: Tensor, x: Tensor, weight: Tensor, stride: list[int], padding: list[int]) -> Tensor:
    window = stride, padding, [1, 1], False, [0, 0], x.shape[1]
    result: Tensor = _aten.convolution_backward(g, x, weight, None, *window, (False, True, False))[1]
    return result


def _by_windows(g: Tensor, x: Tensor, weight: Tensor, geometry: Geometry) -> Tensor:
    """Any geometry, a few columns at a time: each is the gradient of a narrow weight, and reads a copy of the image.

    Neighbours share a column. So a 5×5 weight needs borders only: cropping x would be another copy. The rows are padded
    here if the weight is higher than the image, and by the convolution otherwise.
    """
    stride, (top, left), _, _ = geometry
    rows = [0, 0]
    if weight.shape[2] > x.shape[2]:
        bottom = (g.shape[2] - 1) * stride[0] - top + weight.shape[2] - x.shape[2]
        rows, top = [top, _border(bottom, stride[0])], 0
    parts: list[Tensor] = []
    for first in range(0, max(weight.shape[3] - 1, 1), FAST_COLUMNS - 1):
        columns = weight[..., first : first + FAST_COLUMNS]
        right = (g.shape[3] - 1) * stride[1] - left + first + columns.shape[3] - x.shape[3]
        window = functional.pad(x, [left - first, _border(right, stride[1]), *rows])
        parts.append(_weight(g, window, columns, stride, [top, 0]))
    return torch.cat([*(part[..., : FAST_COLUMNS - 1] for part in parts[:-1]), parts[-1]], dim=3)


def _border(missing: int, stride: int) -> int:
    """Pixels to add, or (negative) to crop; less than a stride too many do no harm."""
    return 0 if -stride < missing < 0 else missing
