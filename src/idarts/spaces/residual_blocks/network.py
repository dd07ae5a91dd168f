"""The network of a chain of blocks: stem, three stages, classifier.

The stages have 1, 2 and 4 times the channels of the skeleton. The second and the third halve the image.
"""

from typing import Any, NamedTuple

from torch import Tensor, nn

from idarts.arch import Architecture, Skeleton
from idarts.spaces import chain_prices
from idarts.spaces.chain_networks import ChainNetwork
from idarts.spaces.prices import Milliseconds
from idarts.spaces.residual_blocks.chain import CHAIN, SHAPES
from idarts.spaces.supernet import require_size

EXPANSION = 2  # of inverted blocks


class Place(NamedTuple):
    """A block's place in the chain: its widths, its stride, and the side of its input."""

    inputs: int
    outputs: int
    stride: int
    side: int

    @property
    def keeps_shape(self) -> bool:
        """Whether the output has the shape of the input."""
        return self.inputs == self.outputs and self.stride == 1


class BlockNetwork(ChainNetwork):
    """Stem, the blocks that are not skipped, head, classifier. The architecture says how many blocks a stage has.

    >>> import torch
    >>> from idarts.arch import parse
    >>> chain = parse("residual-blocks:conv3-skip+sep3-inv5+inv3-inv3")
    >>> net = BlockNetwork(chain, Skeleton(depth=2, channels=8, classes=10, image=32))
    >>> len(net.blocks), net(torch.zeros(2, 3, 32, 32)).shape
    (5, torch.Size([2, 10]))
    """

    def __init__(self, architecture: Architecture, skeleton: Skeleton, in_channels: int = 3) -> None:
        require_size(skeleton.image, skeleton.image)
        placed = CHAIN.placed(architecture, places(skeleton))
        blocks = [Block(place, option) for place, option in placed]
        super().__init__(stem(in_channels, skeleton), blocks, *head(skeleton), skeleton.classes)


class Block(nn.Module):
    """A block alone: its input (in a first block halved and widened) and what the option makes of it.

    >>> import torch
    >>> Block(Place(8, 16, 2, 9), "inv5")(torch.zeros(1, 8, 9, 9)).shape
    torch.Size([1, 16, 5, 5])
    """

    def __init__(self, place: Place, option: str) -> None:
        super().__init__()
        self.shortcut = shortcut(place)
        self.layers = layers(place, option)

    def forward(self, x: Tensor) -> Tensor:
        """The sum of both."""
        result: Tensor = self.shortcut(x) + self.layers(x)
        return result


def places(skeleton: Skeleton) -> list[tuple[Place, Place]]:
    """Of every stage the place of its first block, and that of its further blocks, which are all alike.

    >>> [first for first, _ in places(Skeleton(depth=2, channels=16, classes=10, image=32))][1:]
    [Place(inputs=16, outputs=32, stride=2, side=32), Place(inputs=32, outputs=64, stride=2, side=16)]
    """
    width, side, stages = skeleton.channels, skeleton.image, []
    for stage in range(CHAIN.stages):
        first = Place(width, skeleton.channels * 2**stage, 2 if stage else 1, side)
        width, side = first.outputs, -(-side // first.stride)
        stages.append((first, Place(width, width, 1, side)))
    return stages


def stem(in_channels: int, skeleton: Skeleton) -> nn.Sequential:
    """The module that makes the first block's input from an image."""
    return nn.Sequential(*_convolution(in_channels, skeleton.channels, 3))


def head(skeleton: Skeleton) -> tuple[nn.Sequential, int]:
    """The module between the last block and the classifier, and its width. Blocks end without BatchNorm and ReLU."""
    width = places(skeleton)[-1][1].outputs
    return nn.Sequential(nn.BatchNorm2d(width), nn.ReLU()), width


def shortcut(place: Place) -> nn.Module:
    """What a block adds to: its input, brought into the shape of its output."""
    if place.keeps_shape:
        return nn.Identity()
    pool = [nn.AvgPool2d(2, ceil_mode=True)] if place.stride == 2 else []
    return nn.Sequential(*pool, *([] if place.inputs == place.outputs else _convolution(place.inputs, place.outputs)))


def layers(place: Place, option: str, affine: bool = True) -> nn.Sequential:
    """What an option makes of a block's input. The last layer is a BatchNorm; `affine` says whether it has weights.

    >>> sum(weights.numel() for weights in layers(Place(8, 8, 1, 4), "sep3").parameters())
    304
    """
    kind, kernel = SHAPES[option]
    inputs, outputs, stride = place.inputs, place.outputs, place.stride
    wide = EXPANSION * inputs
    if kind == "inv":
        widen, narrow = _convolution(inputs, wide), _convolution(wide, outputs, affine=affine)
        return nn.Sequential(
            *widen, nn.ReLU(), *_convolution(wide, wide, kernel, stride, groups=wide), nn.ReLU(), *narrow
        )
    convolution = _separable if kind == "sep" else _convolution
    first, second = convolution(inputs, outputs, kernel, stride), convolution(outputs, outputs, kernel, affine=affine)
    return nn.Sequential(nn.ReLU(), *first, nn.ReLU(), *second)


def latency(skeleton: Skeleton, milliseconds: Milliseconds) -> dict[str, Any]:
    """Milliseconds of every option in the first and in a further block of each stage, and of all the rest."""
    stages = places(skeleton)

    def block(stage: int, further: bool, option: str) -> chain_prices.Block:
        place = stages[stage][further]
        return Block(place, option), (place.inputs, place.side, place.side)

    least = BlockNetwork(CHAIN.from_blocks([[CHAIN.first[0]]] * CHAIN.stages), skeleton)
    return chain_prices.latency(CHAIN, block, (least, (3, skeleton.image, skeleton.image)), milliseconds)


def _convolution(
    inputs: int, outputs: int, kernel: int = 1, stride: int = 1, groups: int = 1, affine: bool = True
) -> list[nn.Module]:
    """A convolution and its BatchNorm."""
    convolution = nn.Conv2d(inputs, outputs, kernel, stride, padding=kernel // 2, groups=groups, bias=False)
    return [convolution, nn.BatchNorm2d(outputs, affine=affine)]


def _separable(inputs: int, outputs: int, kernel: int, stride: int = 1, affine: bool = True) -> list[nn.Module]:
    """A filter for each channel, a 1×1 convolution, and its BatchNorm."""
    filters = nn.Conv2d(inputs, inputs, kernel, stride, padding=kernel // 2, groups=inputs, bias=False)
    return [filters, *_convolution(inputs, outputs, affine=affine)]
