"""The network of a chain: stem, five stages of inverted residuals, a wide 1×1 convolution, classifier.

The stem is a 3×3 convolution and a separable one. With 16 channels the stages are 24, 40, 80, 112 and 160 wide; other
widths are rounded to multiples of 8. In a `large` skeleton the stem and the stages 1, 2, 3 and 5 halve the image, in a
small one the stages 2, 3 and 5. What would leave fewer than 4 × 4 pixels is not halved, so small images work, too.
"""

from typing import NamedTuple

from torch import Tensor, nn

from idarts.arch import Architecture, Skeleton
from idarts.spaces.chain_networks import ChainNetwork
from idarts.spaces.mobile.chain import CHAIN, SHAPES

WIDTHS, AT = (24, 40, 80, 112, 160), 16  # of the stages, if the skeleton has 16 channels
HALVED_BY = (0, 1, 2, 3, 5)  # the stem is 0
LEAST_SIDE = 4
HEAD = 6  # times as wide as the last stage


class Place(NamedTuple):
    """A block's place in the chain: its widths, its stride, the side of its input; a further block adds its input."""

    inputs: int
    outputs: int
    stride: int
    side: int
    further: bool


class MobileNetwork(ChainNetwork):
    """Stem, the blocks that are not skipped, head, classifier. The architecture says how many blocks a stage has.

    >>> import torch
    >>> from idarts.arch import parse
    >>> chain = parse("mobile:k3e6-skip+k5e3-skip+k3e3-skip+k7e6-skip+k3e6-k3e3")
    >>> net = MobileNetwork(chain, Skeleton(depth=2, channels=8, classes=10, image=32))
    >>> len(net.blocks), net(torch.zeros(2, 3, 32, 32)).shape
    (6, torch.Size([2, 10]))
    """

    def __init__(self, architecture: Architecture, skeleton: Skeleton, in_channels: int = 3) -> None:
        placed = CHAIN.placed(architecture, places(skeleton))
        super().__init__(
            stem(in_channels, skeleton),
            [InvertedResidual(place, *SHAPES[option]) for place, option in placed],
            *head(skeleton),
            skeleton.classes,
        )


class InvertedResidual(nn.Module):
    """Widen by a 1×1 convolution, filter each channel, narrow by a 1×1 convolution; without ReLU at the end.

    >>> import torch
    >>> InvertedResidual(Place(8, 16, 2, 9, False), kernel=5, expansion=3)(torch.zeros(1, 8, 9, 9)).shape
    torch.Size([1, 16, 5, 5])
    """

    def __init__(self, place: Place, kernel: int, expansion: int) -> None:
        super().__init__()
        wide = expansion * place.inputs
        self.further = place.further
        self.layers = nn.Sequential(
            *_convolution(place.inputs, wide),
            nn.ReLU(),
            *_convolution(wide, wide, kernel, place.stride, groups=wide),
            nn.ReLU(),
            *_convolution(wide, place.outputs),
        )

    def forward(self, x: Tensor) -> Tensor:
        """The block's output, with its input added in a further block."""
        result: Tensor = self.layers(x)
        return x + result if self.further else result


def places(skeleton: Skeleton) -> list[tuple[Place, Place]]:
    """Of every stage the place of its first block, and that of its further blocks, which are all alike.

    >>> small = Skeleton(depth=1, channels=16, classes=10, image=32)
    >>> [(first.outputs, first.stride, further.side) for first, further in places(small)]
    [(24, 1, 32), (40, 2, 16), (80, 2, 8), (112, 1, 8), (160, 2, 4)]
    """
    strides, width, stages = _strides(skeleton), skeleton.channels, []
    side = -(-skeleton.image // strides[0])
    for usual, stride in zip(WIDTHS, strides[1:], strict=True):
        first = Place(width, _rounded(usual * skeleton.channels / AT), stride, side, further=False)
        width, side = first.outputs, -(-side // stride)
        stages.append((first, Place(width, width, 1, side, further=True)))
    return stages


def stem(in_channels: int, skeleton: Skeleton) -> nn.Sequential:
    """The module that makes the first block's input from an image.

    >>> import torch
    >>> stem(3, Skeleton(depth=1, channels=8, classes=10, image=224, large=True))(torch.zeros(1, 3, 224, 224)).shape
    torch.Size([1, 8, 112, 112])
    """
    channels = skeleton.channels
    return nn.Sequential(
        *_convolution(in_channels, channels, 3, _strides(skeleton)[0]),
        nn.ReLU(),
        *_convolution(channels, channels, 3, groups=channels),
        nn.ReLU(),
        *_convolution(channels, channels),
    )


def head(skeleton: Skeleton) -> tuple[nn.Sequential, int]:
    """The module between the last block and the classifier, and its width.

    >>> head(Skeleton(depth=1, channels=16, classes=10, image=32))[1]
    960
    """
    inputs = places(skeleton)[-1][1].outputs
    return nn.Sequential(*_convolution(inputs, HEAD * inputs), nn.ReLU()), HEAD * inputs


def _convolution(inputs: int, outputs: int, kernel: int = 1, stride: int = 1, groups: int = 1) -> list[nn.Module]:
    """A convolution and its BatchNorm."""
    convolution = nn.Conv2d(inputs, outputs, kernel, stride, padding=kernel // 2, groups=groups, bias=False)
    return [convolution, nn.BatchNorm2d(outputs)]


def _strides(skeleton: Skeleton) -> list[int]:
    """Of the stem and of the first block of each stage."""
    halved_by, side, strides = HALVED_BY if skeleton.large else HALVED_BY[2:], skeleton.image, []
    for part in range(CHAIN.stages + 1):
        half = -(-side // 2)
        strides.append(2 if part in halved_by and half >= LEAST_SIDE else 1)
        side = half if strides[-1] == 2 else side
    return strides


def _rounded(width: float) -> int:
    """The nearest multiple of 8, but never more than a tenth below: the usual rule for these networks."""
    nearest = max(8, int(width + 4) // 8 * 8)
    return nearest + 8 if nearest < 0.9 * width else nearest
