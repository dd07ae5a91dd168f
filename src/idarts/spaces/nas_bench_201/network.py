"""NAS-Bench-201's network: three stages of one cell, with residual blocks that halve the image between them."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from idarts.arch import Architecture, Cell, Skeleton
from idarts.spaces.operations import operation, relu_conv_bn


class NasBench201Network(nn.Module):
    """Stem, `depth` cells, block, `depth` cells, block, `depth` cells, classifier.

    >>> from idarts.arch import parse
    >>> net = NasBench201Network(parse("nas-bench-201:1462"), Skeleton(depth=1, channels=4, classes=10, image=32))
    >>> net(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 10])
    """

    def __init__(self, architecture: Architecture, skeleton: Skeleton, in_channels: int = 3) -> None:
        super().__init__()
        self.stem = stem(in_channels, skeleton)
        blocks, channels = stages(skeleton, lambda channels: _Cell(architecture.cell, channels))
        self.body = nn.Sequential(*blocks)
        self.norm = nn.BatchNorm2d(channels)
        self.classifier = nn.Linear(channels, skeleton.classes)

    def forward(self, images: Tensor) -> Tensor:
        """Logits of a batch of images."""
        features = torch.relu(self.norm(self.body(self.stem(images))))
        logits: Tensor = self.classifier(features.mean(dim=(2, 3)))
        return logits


def stem(in_channels: int, skeleton: Skeleton) -> nn.Sequential:
    """The module that makes the first cell's input from an image.

    >>> stem(3, Skeleton(depth=1, channels=4, classes=10, image=32))(torch.zeros(1, 3, 8, 8)).shape
    torch.Size([1, 4, 8, 8])
    """
    convolution = nn.Conv2d(in_channels, skeleton.channels, 3, padding=1, bias=False)
    return nn.Sequential(convolution, nn.BatchNorm2d(skeleton.channels))


def stages(skeleton: Skeleton, cell: Callable[[int], nn.Module]) -> tuple[list[nn.Module], int]:
    """Three stages of cells of growing width with blocks between them, and the last width.

    >>> blocks, channels = stages(Skeleton(depth=2, channels=4, classes=10, image=32), lambda channels: nn.Identity())
    >>> len(blocks), channels
    (8, 16)
    """
    blocks: list[nn.Module] = []
    channels = skeleton.channels
    for stage in range(3):
        if stage:
            blocks.append(ResidualBlock(channels, 2 * channels))
            channels *= 2
        blocks += [cell(channels) for _ in range(skeleton.depth)]
    return blocks, channels


class ResidualBlock(nn.Module):
    """Halve the image and widen it: two convolutions beside an average pool with a 1×1 convolution.

    >>> ResidualBlock(4, 8)(torch.zeros(1, 4, 8, 8)).shape
    torch.Size([1, 8, 4, 4])
    """

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.first = relu_conv_bn(inputs, outputs, kernel=3, stride=2)
        self.second = relu_conv_bn(outputs, outputs, kernel=3)
        self.shortcut = nn.Sequential(
            nn.AvgPool2d(2, ceil_mode=True, count_include_pad=False),  # rounds up like the strided convolution
            nn.Conv2d(inputs, outputs, 1, bias=False),
        )

    def forward(self, x: Tensor) -> Tensor:
        """The sum of both branches."""
        result: Tensor = self.shortcut(x) + self.second(self.first(x))
        return result


class _Cell(nn.Module):
    def __init__(self, cell: Cell, channels: int) -> None:
        super().__init__()
        self.edges = cell.edges
        self.ops = nn.ModuleList(operation(edge.op or "", channels) for edge in cell.edges)

    def forward(self, x: Tensor) -> Tensor:
        states: list[Tensor | None] = [x, None, None, None]  # None: zero, as nothing arrived yet
        for edge, op in zip(self.edges, self.ops, strict=True):
            source, target = states[edge.source], states[edge.target]
            if edge.op == "none":
                continue
            result = op(torch.zeros_like(x) if source is None else source)
            states[edge.target] = result if target is None else target + result
        return torch.zeros_like(x) if states[3] is None else states[3]
