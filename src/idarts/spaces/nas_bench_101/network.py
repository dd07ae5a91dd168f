"""NAS-Bench-101's network: three stacks of one cell, max-pooled in between."""

import torch
from torch import Tensor, nn

from idarts.arch import Architecture, Cell, Skeleton
from idarts.errors import InputError

# The benchmark keeps 0.997 of the old average at each step; PyTorch's momentum is the share of the new value.
MOMENTUM = 0.003


class NasBench101Network(nn.Module):
    """Stem, then three stacks of `depth` cells; before the second and third, a 2×2 max-pool and doubled channels.

    >>> from idarts.arch import parse
    >>> net = NasBench101Network(parse("NB101_best_cifar10"), Skeleton(depth=1, channels=8, classes=10, image=32))
    >>> net(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 10])
    """

    def __init__(self, architecture: Architecture, skeleton: Skeleton, in_channels: int = 3) -> None:
        super().__init__()
        channels = previous = skeleton.channels
        self.stem = conv_bn_relu(in_channels, channels, kernel=3)
        self.body = nn.Sequential()
        for stack in range(3):
            if stack:
                self.body.append(nn.MaxPool2d(2, ceil_mode=True))
                channels *= 2
            for _ in range(skeleton.depth):
                self.body.append(_Cell(architecture.cell, previous, channels))
                previous = channels
        self.classifier = nn.Linear(channels, skeleton.classes)

    def forward(self, images: Tensor) -> Tensor:
        """Logits of a batch of images."""
        logits: Tensor = self.classifier(self.body(self.stem(images)).mean(dim=(2, 3)))
        return logits


def conv_bn_relu(inputs: int, outputs: int, kernel: int = 1) -> nn.Sequential:
    """Convolution, BatchNorm, ReLU, as NAS-Bench-101's convolutions and projections are made.

    >>> conv_bn_relu(3, 8, 3)[1].momentum
    0.003
    """
    convolution = nn.Conv2d(inputs, outputs, kernel, padding=kernel // 2, bias=False)
    return nn.Sequential(convolution, nn.BatchNorm2d(outputs, momentum=MOMENTUM), nn.ReLU())


def vertex_operation(name: str, channels: int) -> nn.Module:
    """The operation that NAS-Bench-101 puts on a vertex.

    >>> vertex_operation("maxpool3x3", 4)(torch.zeros(1, 4, 5, 5)).shape
    torch.Size([1, 4, 5, 5])
    """
    kernels = {"conv3x3-bn-relu": 3, "conv1x1-bn-relu": 1}
    if name in kernels:
        return conv_bn_relu(channels, channels, kernels[name])
    if name == "maxpool3x3":
        return nn.MaxPool2d(3, stride=1, padding=1)
    raise InputError(f"unknown operation {name!r}, expected one of {', '.join(kernels)}, maxpool3x3")


def vertex_channels(cell: Cell, inputs: int, outputs: int) -> list[int]:
    """Channels of every vertex: those before the output share its channels, others are as wide as what they feed.

    >>> cell = Cell(5, [(0, 1), (0, 2), (1, 3), (2, 4), (3, 4)], [4], ["maxpool3x3"] * 3)
    >>> vertex_channels(cell, 16, 33)
    [16, 16, 17, 16, 33]
    """
    last = cell.nodes - 1
    feeding = [edge.source for edge in cell.edges if edge.target == last and edge.source != 0]
    if len(feeding) > outputs:
        raise InputError(f"{outputs} channels are too few for a cell with {len(feeding)} vertices before its output")
    channels = [0] * cell.nodes
    channels[0], channels[last] = inputs, outputs
    for position, vertex in enumerate(feeding):  # what does not divide evenly goes to the first of them
        channels[vertex] = outputs // len(feeding) + (position < outputs % len(feeding))
    for vertex in range(last - 1, 0, -1):
        if vertex not in feeding:
            channels[vertex] = max(channels[edge.target] for edge in cell.edges if edge.source == vertex)
    return channels


class _Cell(nn.Module):
    def __init__(self, cell: Cell, inputs: int, outputs: int) -> None:
        super().__init__()
        self.last = cell.nodes - 1
        self.parents = [[e.source for e in cell.edges if e.target == vertex] for vertex in range(cell.nodes)]
        self.channels = vertex_channels(cell, inputs, outputs)
        self.projections = nn.ModuleDict(
            {str(e.target): conv_bn_relu(inputs, self.channels[e.target]) for e in cell.edges if e.source == 0}
        )
        self.ops = nn.ModuleList(
            vertex_operation(op, self.channels[vertex]) for vertex, op in enumerate(cell.ops, start=1)
        )

    def forward(self, x: Tensor) -> Tensor:
        states = [x]
        for vertex, op in enumerate(self.ops, start=1):
            states.append(op(self._sum(states, vertex)))
        before = [states[parent] for parent in self.parents[self.last] if parent != 0]
        if not before:
            return torch.as_tensor(self.projections[str(self.last)](x))
        joined = torch.cat(before, dim=1)
        return joined + self.projections[str(self.last)](x) if 0 in self.parents[self.last] else joined

    def _sum(self, states: list[Tensor], vertex: int) -> Tensor:
        width = self.channels[vertex]
        arriving = [
            self.projections[str(vertex)](states[0]) if parent == 0 else states[parent][:, :width]
            for parent in self.parents[vertex]
        ]
        return sum(arriving[1:], start=arriving[0])
