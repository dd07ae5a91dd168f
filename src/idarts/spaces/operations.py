"""Operations on edges as torch modules, for all spaces that have them.

Every operation on an edge keeps its channels and, with `stride` 2, halves the image (rounding up, so any size works).
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from idarts.errors import InputError
from idarts.layers.noise import Noise
from idarts.layers.reading import every_other


def operation(name: str, channels: int, stride: int = 1, affine: bool = True) -> nn.Module:
    """An operation by name; `affine` is that of its BatchNorm.

    >>> operation("sep_conv_3x3", 4, stride=2)(torch.zeros(1, 4, 7, 7)).shape
    torch.Size([1, 4, 4, 4])
    """
    if name not in EDGE_OPERATIONS:
        raise InputError(f"unknown operation {name!r}, expected one of {', '.join(EDGE_OPERATIONS)}")
    return EDGE_OPERATIONS[name](channels, stride, affine)


def relu_conv_bn(inputs: int, outputs: int, kernel: int = 1, stride: int = 1, affine: bool = True) -> nn.Sequential:
    """ReLU, convolution, BatchNorm.

    >>> relu_conv_bn(3, 8)(torch.zeros(1, 3, 4, 4)).shape
    torch.Size([1, 8, 4, 4])
    """
    convolution = nn.Conv2d(inputs, outputs, kernel, stride=stride, padding=kernel // 2, bias=False)
    return nn.Sequential(nn.ReLU(), convolution, nn.BatchNorm2d(outputs, affine=affine))


class Zero(nn.Module):
    """The operation `none`."""

    def __init__(self, stride: int = 1) -> None:
        super().__init__()
        self.stride = stride

    def forward(self, x: Tensor) -> Tensor:
        """Zeros, also where the input is not finite."""
        return torch.zeros_like(x[:, :, :: self.stride, :: self.stride])


class FactorizedReduce(nn.Module):
    """Halve an image without losing a pixel: 1×1 convolutions of every other pixel, one of them shifted by one.

    >>> FactorizedReduce(4, 6)(torch.zeros(1, 4, 5, 5)).shape
    torch.Size([1, 6, 3, 3])
    """

    def __init__(self, inputs: int, outputs: int, affine: bool = True) -> None:
        super().__init__()
        self.straight = nn.Conv2d(inputs, outputs // 2, 1, bias=False)
        self.shifted = nn.Conv2d(inputs, outputs - outputs // 2, 1, bias=False)
        self.norm = nn.BatchNorm2d(outputs, affine=affine)

    def forward(self, x: Tensor) -> Tensor:
        """Both halves, concatenated and normalised."""
        x = torch.relu(x)
        # Pixels are picked here, not by the convolutions' stride: torch 2.13's gradient of a channels-last 1×1
        # convolution with a stride writes past its memory on CPUs where there are few channels.
        halves = self.straight(every_other(x)), self.shifted(every_other(x, first=1))
        return torch.as_tensor(self.norm(torch.cat(halves, dim=1)))


def _separable(kernel: int) -> Callable[[int, int, bool], nn.Module]:
    """Twice ReLU, depthwise and pointwise convolution, BatchNorm; the first time with the stride."""

    def build(channels: int, stride: int, affine: bool) -> nn.Module:
        first = _depthwise(channels, kernel, stride, 1, affine)
        return nn.Sequential(*first, *_depthwise(channels, kernel, 1, 1, affine))

    return build


def _dilated(kernel: int) -> Callable[[int, int, bool], nn.Module]:
    return lambda channels, stride, affine: nn.Sequential(*_depthwise(channels, kernel, stride, 2, affine))


def _depthwise(channels: int, kernel: int, stride: int, dilation: int, affine: bool) -> list[nn.Module]:
    padding = dilation * (kernel // 2)
    return [
        nn.ReLU(),
        nn.Conv2d(channels, channels, kernel, stride, padding, dilation, groups=channels, bias=False),
        nn.Conv2d(channels, channels, 1, bias=False),
        nn.BatchNorm2d(channels, affine=affine),
    ]


def _two_strips(kernel: int) -> Callable[[int, int, bool], nn.Module]:
    """A wide and a tall convolution in place of a square one."""

    def build(channels: int, stride: int, affine: bool) -> nn.Module:
        pad = kernel // 2
        wide = nn.Conv2d(channels, channels, (1, kernel), stride=(1, stride), padding=(0, pad), bias=False)
        tall = nn.Conv2d(channels, channels, (kernel, 1), stride=(stride, 1), padding=(pad, 0), bias=False)
        return nn.Sequential(nn.ReLU(), wide, tall, nn.BatchNorm2d(channels, affine=affine))

    return build


def _skip(channels: int, stride: int, affine: bool) -> nn.Module:
    return nn.Identity() if stride == 1 else FactorizedReduce(channels, channels, affine)


EDGE_OPERATIONS: dict[str, Callable[[int, int, bool], nn.Module]] = {
    "none": lambda _channels, stride, _affine: Zero(stride),
    "skip_connect": _skip,
    "nor_conv_1x1": lambda channels, stride, affine: relu_conv_bn(channels, channels, 1, stride, affine),
    "nor_conv_3x3": lambda channels, stride, affine: relu_conv_bn(channels, channels, 3, stride, affine),
    "max_pool_3x3": lambda _channels, stride, _affine: nn.MaxPool2d(3, stride=stride, padding=1),
    "avg_pool_3x3": lambda _channels, stride, _affine: nn.AvgPool2d(3, stride, padding=1, count_include_pad=False),
    "sep_conv_3x3": _separable(3),
    "sep_conv_5x5": _separable(5),
    "sep_conv_7x7": _separable(7),
    "dil_conv_3x3": _dilated(3),
    "dil_conv_5x5": _dilated(5),
    "conv_3x1_1x3": _two_strips(3),
    "conv_7x1_1x7": _two_strips(7),
    "noise": lambda _channels, stride, _affine: Noise(stride),
}
