"""The network that DARTS trains from scratch with a pair of cells, on CIFAR-sized and ImageNet-sized images."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import torch
from torch import Tensor, nn

from idarts.arch import Architecture, Cell, Skeleton
from idarts.spaces.operations import FactorizedReduce, operation, relu_conv_bn

_STEM_MULTIPLIER = 3  # the CIFAR stem is three times as wide as the first cells


class DartsNetwork(nn.Module):
    """A stack of normal cells with a reduction cell at one third and two thirds of the depth.

    `forward` gives logits; while training with the auxiliary head, (logits, auxiliary logits). `drop_path` is the
    probability that training drops an operation's output for a sample; it may be changed at any time.

    >>> from idarts.arch import parse
    >>> net = DartsNetwork(parse("DARTS_V2"), Skeleton(depth=3, channels=4, classes=10, image=32), auxiliary=True)
    >>> logits, auxiliary = net(torch.zeros(2, 3, 32, 32))
    >>> logits.shape == auxiliary.shape == (2, 10)
    True
    """

    def __init__(
        self,
        architecture: Architecture,
        skeleton: Skeleton,
        auxiliary: bool = False,
        drop_path: float = 0.0,
        in_channels: int = 3,
    ) -> None:
        super().__init__()
        self.drop_path = drop_path
        self.stem, width = stem(in_channels, skeleton)
        self.auxiliary: nn.Module | None = None
        self.auxiliary_after = 2 * skeleton.depth // 3
        joined = {name: len(cell.output) for name, cell in architecture.cells.items()}
        places, widths = zip(*cell_places(skeleton, width, joined), strict=True)
        self.cells = nn.ModuleList(_Cell(architecture.cells[place.kind], *place) for place in places)
        if auxiliary:
            self.auxiliary = _AuxiliaryHead(widths[self.auxiliary_after], skeleton.classes, skeleton.large)
        self.classifier = nn.Linear(widths[-1], skeleton.classes)

    def forward(self, images: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        """Logits of a batch of images, and in training those of the auxiliary head, if there is one."""
        before, previous = self.stem(images)
        extra = None
        for position, cell in enumerate(self.cells):
            before, previous = previous, cell(before, previous, self.drop_path if self.training else 0.0)
            if self.training and self.auxiliary is not None and position == self.auxiliary_after:
                extra = self.auxiliary(previous)
        logits: Tensor = self.classifier(previous.mean(dim=(2, 3)))
        return logits if extra is None else (logits, extra)


class CellPlace(NamedTuple):
    """A cell's place in the stack: widths of its inputs and its own, and whether it or the previous cell reduces."""

    before: int
    previous: int
    channels: int
    reduces: bool
    previous_reduces: bool

    @property
    def kind(self) -> str:
        return "reduce" if self.reduces else "normal"


def cell_places(skeleton: Skeleton, width: int, joined: Mapping[str, int]) -> Iterator[tuple[CellPlace, int]]:
    """The places from stem to classifier, each with the width of its output: `joined` nodes for each kind of cell.

    >>> skeleton = Skeleton(depth=3, channels=4, classes=10, image=32)
    >>> [(place.kind, width) for place, width in cell_places(skeleton, 12, {"normal": 4, "reduce": 4})]
    [('normal', 16), ('reduce', 32), ('reduce', 64)]
    """
    before, previous, channels, previous_reduces = width, width, skeleton.channels, skeleton.large
    for position in range(skeleton.depth):
        reduces = position in (skeleton.depth // 3, 2 * skeleton.depth // 3)
        channels *= 2 if reduces else 1
        place = CellPlace(before, previous, channels, reduces, previous_reduces)
        before, previous, previous_reduces = previous, channels * joined[place.kind], reduces
        yield place, previous


class _Cell(nn.Module):
    def __init__(
        self, cell: Cell, before: int, previous: int, channels: int, reduces: bool, previous_reduces: bool
    ) -> None:
        super().__init__()
        # If the previous cell reduced, the output of two cells ago is twice as large.
        self.preprocess0 = FactorizedReduce(before, channels) if previous_reduces else relu_conv_bn(before, channels)
        self.preprocess1 = relu_conv_bn(previous, channels)
        self.edges, self.nodes, self.output = cell.edges, cell.nodes, cell.output
        self.ops = nn.ModuleList(
            operation(edge.op or "", channels, stride=2 if reduces and edge.source < 2 else 1) for edge in cell.edges
        )

    def forward(self, before: Tensor, previous: Tensor, drop_path: float) -> Tensor:
        states = [self.preprocess0(before), self.preprocess1(previous)]
        for node in range(self.nodes - 2):  # edges are sorted by target, two for each node
            states.append(self._edge(2 * node, states, drop_path) + self._edge(2 * node + 1, states, drop_path))
        return torch.cat([states[node] for node in self.output], dim=1)

    def _edge(self, position: int, states: list[Tensor], drop_path: float) -> Tensor:
        op = self.ops[position]
        result: Tensor = op(states[self.edges[position].source])
        return _drop(result, drop_path) if drop_path and not isinstance(op, nn.Identity) else result


class _AuxiliaryHead(nn.Module):
    """A second classifier two thirds up. At 32 and 224 pixels it is DARTS'; other sizes are pooled to fit."""

    def __init__(self, inputs: int, classes: int, large: bool) -> None:
        super().__init__()
        self.stride = 2 if large else 3
        # DARTS' ImageNet head lacks the second BatchNorm, by an oversight that its authors kept; so do the counts.
        norm = [] if large else [nn.BatchNorm2d(768)]
        self.features = nn.Sequential(
            nn.Conv2d(inputs, 128, 1, bias=False),
            nn.BatchNorm2d(128),
            nn.ReLU(),
            nn.Conv2d(128, 768, 2, bias=False),
            *norm,
            nn.ReLU(),
        )
        self.classifier = nn.Linear(768, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = torch.relu(x)
        if min(x.shape[2:]) >= 5 + self.stride:
            x = nn.functional.avg_pool2d(x, 5, stride=self.stride)
        else:
            x = nn.functional.adaptive_avg_pool2d(x, 2)
        logits: Tensor = self.classifier(self.features(x).mean(dim=(2, 3)))
        return logits


class _ImageNetStem(nn.Module):
    """Three strided convolutions; the first cell sees the image after two and after three of them."""

    def __init__(self, in_channels: int, channels: int) -> None:
        super().__init__()
        half = max(channels // 2, 1)
        self.stem0 = nn.Sequential(
            nn.Conv2d(in_channels, half, 3, stride=2, padding=1, bias=False),
            nn.BatchNorm2d(half),
            nn.ReLU(),
            nn.Conv2d(half, channels, 3, stride=2, padding=1, bias=False),
            nn.BatchNorm2d(channels),
        )
        self.stem1 = relu_conv_bn(channels, channels, kernel=3, stride=2)

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        before = self.stem0(images)
        return before, self.stem1(before)


class _SmallStem(nn.Module):
    """One convolution, three times as wide as the first cells; both inputs of the first cell are its output."""

    def __init__(self, in_channels: int, channels: int) -> None:
        super().__init__()
        width = channels * _STEM_MULTIPLIER
        self.convolution = nn.Conv2d(in_channels, width, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(width)

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        both = self.norm(self.convolution(images))
        return both, both


def stem(in_channels: int, skeleton: Skeleton) -> tuple[nn.Module, int]:
    """The module that makes the first cell's two inputs from an image, and their width.

    >>> module, width = stem(3, Skeleton(depth=8, channels=16, classes=10, image=32))
    >>> [part.shape[1] for part in module(torch.zeros(1, 3, 8, 8))], width
    ([48, 48], 48)
    """
    if skeleton.large:
        return _ImageNetStem(in_channels, skeleton.channels), skeleton.channels
    return _SmallStem(in_channels, skeleton.channels), skeleton.channels * _STEM_MULTIPLIER


def _drop(x: Tensor, probability: float) -> Tensor:
    keep = 1.0 - probability
    drawn = torch.rand(x.shape[0], 1, 1, 1, device=x.device) < keep  # compiled, this serves every probability
    return x * (drawn.to(x.dtype) / keep)
