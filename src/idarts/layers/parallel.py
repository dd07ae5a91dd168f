"""Parallel operations computed as one: the parts of fused supernets.

All edges that leave one node read the same tensor. Their convolutions of one kind become one wider or grouped
convolution, and their BatchNorms one BatchNorm whose weight is α. A weighted sum remains. The result is that of
computing edge by edge.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from idarts.layers.lean import batch_norm, conv2d, relu
from idarts.layers.reading import Reads, batch_to_space

EPS, MOMENTUM = 1e-5, 0.1


@dataclass(frozen=True)
class Block:
    """A convolution and its BatchNorm (not affine), depthwise and pointwise if `separable`. Dilation is 1 or 2."""

    kernel: int
    stride: int = 1
    dilation: int = 1
    separable: bool = False


class Parallel(nn.Module):
    """`members` equal chains of blocks on one input, with ReLU between blocks; α scales the output of each chain.

    The outputs are concatenated along the channels. `member` runs one chain alone. Dilated convolutions may leave their
    result in phases; `Reads.total` makes images of them.
    """

    def __init__(self, channels: int, members: int, blocks: Sequence[Block]) -> None:
        super().__init__()
        self.channels, self.members = channels, members
        self.blocks = nn.ModuleList(_ParallelBlock(channels, members, block) for block in blocks)

    def forward(self, reads: Reads, scales: Tensor) -> Tensor:
        """All members; `scales` has one α for each. The input has the channels of one member."""
        return self._chain(reads, scales.repeat_interleave(self.channels), slice(0, self.members))

    def member(self, reads: Reads, index: int, scale: Tensor) -> Tensor:
        """One member alone."""
        return self._chain(reads, scale.expand(self.channels), slice(index, index + 1))

    def _chain(self, reads: Reads, scale: Tensor, part: slice) -> Tensor:
        first: Any = self.blocks[0]
        x: Tensor = first.read(reads, part)
        last = len(self.blocks) - 1
        for position, block in enumerate(self.blocks):
            x = block(relu(x) if position else x, scale if position == last else None, part, reads)
        return x


class ParallelNorm(nn.Module):
    """BatchNorm of parallel members. It has no parameters: α is its weight."""

    running_mean: Tensor
    running_var: Tensor

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.register_buffer("running_mean", torch.zeros(channels))
        self.register_buffer("running_var", torch.ones(channels))

    def forward(self, z: Tensor, scale: Tensor | None = None, part: slice = slice(None)) -> Tensor:
        """Normalise z, which holds the channels `part`."""
        mean, var = _part(self.running_mean, part), _part(self.running_var, part)
        return batch_norm(z, mean, var, scale, None, self.training, MOMENTUM, EPS)


class _ParallelBlock(nn.Module):
    def __init__(self, channels: int, members: int, block: Block) -> None:
        super().__init__()
        self.channels, self.block = channels, block
        groups = channels if block.separable else 1
        self.weight = _parallel_weight(channels, members, block.kernel, groups)
        self.pointwise = _parallel_weight(channels, members, 1) if block.separable else None
        self.norm = ParallelNorm(members * channels)

    def read(self, reads: Reads, part: slice) -> Tensor:
        """The input of these members: one for all, or a copy for each if every channel has its own filter."""
        pixels = "all" if self.block.dilation == 1 else "phases" if self.block.stride == 1 else "even"
        return reads(pixels, copies=part.stop - part.start if self.block.separable else 1)

    def forward(self, x: Tensor, scale: Tensor | None, part: slice, reads: Reads) -> Tensor:
        wide, count = slice(part.start * self.channels, part.stop * self.channels), part.stop - part.start
        weight, block = _part(self.weight, wide), self.block
        stride = 1 if block.dilation == 2 else block.stride
        if self.pointwise is None:
            z = conv2d(x, weight, None, stride, block.kernel // 2, groups=x.shape[1] // self.channels)
        else:
            z = conv2d(x, weight, None, stride, block.kernel // 2, groups=count * self.channels)
            z = conv2d(z, _part(self.pointwise, wide), groups=count)
        # Gradients of dilated convolutions are slow; plain ones on every other pixel are not. The statistics do not
        # depend on the order of the pixels, but the border that odd sides get in phases does not belong to them.
        if len(z) != reads.batch and any(side % 2 for side in reads.sides):
            z = batch_to_space(z, *reads.sides)
        result: Tensor = self.norm(z, scale, wide)
        return result


class ParallelReduce(nn.Module):
    """`members` factorised reductions of one input: two 1×1 convolutions of every other pixel, one of them shifted."""

    def __init__(self, channels: int, members: int) -> None:
        super().__init__()
        self.channels, self.members = channels, members
        half = channels // 2
        self.straight = _parallel_weight(channels, members, 1, outputs=half)
        self.shifted = _parallel_weight(channels, members, 1, outputs=channels - half)
        self.norm = ParallelNorm(members * channels)

    def forward(self, reads: Reads, scales: Tensor) -> Tensor:
        return self._reduce(reads, scales.repeat_interleave(self.channels), slice(0, self.members))

    def member(self, reads: Reads, index: int, scale: Tensor) -> Tensor:
        """One member alone."""
        return self._reduce(reads, scale.expand(self.channels), slice(index, index + 1))

    def _reduce(self, reads: Reads, scale: Tensor, part: slice) -> Tensor:
        # Slicing selects the pixels, not a stride, as in `FactorizedReduce`.
        halves = [
            conv2d(reads(pixels), weight.unflatten(0, (self.members, -1))[part].flatten(0, 1))
            for pixels, weight in (("even", self.straight), ("odd", self.shifted))
        ]
        # The two halves of a member are neighbours along the channels; the layout stays channels-last.
        rows = [half.permute(0, 2, 3, 1).unflatten(3, (part.stop - part.start, -1)) for half in halves]
        z = torch.cat(rows, dim=4).flatten(3).permute(0, 3, 1, 2)
        result: Tensor = self.norm(z, scale, slice(part.start * self.channels, part.stop * self.channels))
        return result


def _part(tensor: Tensor, part: slice) -> Tensor:
    """`tensor[part]`, or the tensor itself if that is all of it: a slice has a gradient to compute."""
    return tensor if part == slice(0, len(tensor)) else tensor[part]


def _parallel_weight(
    channels: int, members: int, kernel: int, groups: int = 1, outputs: int | None = None
) -> nn.Parameter:
    """The weights of `members` convolutions, concatenated, each initialised as torch initialises a single one."""
    each = [nn.Conv2d(channels, outputs or channels, kernel, groups=groups, bias=False).weight for _ in range(members)]
    return nn.Parameter(torch.cat([weight.detach() for weight in each]))
