"""Parallel operations computed as one: the parts of fused supernets.

All edges that leave one node read the same tensor. Their convolutions of one kind become one wider or grouped
convolution, and their BatchNorms one BatchNorm whose weight is α. A weighted sum remains. The result is that of
computing edge by edge.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from idarts.layers.lean import batch_norm, conv2d, relu

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

    The outputs are concatenated along the channels. `member` runs one chain alone.
    """

    def __init__(self, channels: int, members: int, blocks: Sequence[Block]) -> None:
        super().__init__()
        self.channels, self.members = channels, members
        self.blocks = nn.ModuleList(_ParallelBlock(channels, members, block) for block in blocks)

    def forward(self, x: Tensor, scales: Tensor) -> Tensor:
        """All members; `scales` has one α for each. The input has the channels of one member."""
        return self._chain(x, scales.repeat_interleave(self.channels), slice(0, self.members))

    def member(self, x: Tensor, index: int, scale: Tensor) -> Tensor:
        """One member alone."""
        return self._chain(x, scale.expand(self.channels), slice(index, index + 1))

    def _chain(self, x: Tensor, scale: Tensor, part: slice) -> Tensor:
        last = len(self.blocks) - 1
        for position, block in enumerate(self.blocks):
            x = block(x if position == 0 else relu(x), scale if position == last else None, part)
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
        mean, var = self.running_mean[part], self.running_var[part]
        return batch_norm(z, mean, var, scale, None, self.training, MOMENTUM, EPS)


class _ParallelBlock(nn.Module):
    def __init__(self, channels: int, members: int, block: Block) -> None:
        super().__init__()
        self.channels, self.block = channels, block
        groups = channels if block.separable else 1
        self.weight = _parallel_weight(channels, members, block.kernel, groups)
        self.pointwise = _parallel_weight(channels, members, 1) if block.separable else None
        self.norm = ParallelNorm(members * channels)

    def forward(self, x: Tensor, scale: Tensor | None, part: slice) -> Tensor:
        wide, count = slice(part.start * self.channels, part.stop * self.channels), part.stop - part.start
        shared = x.shape[1] == self.channels  # otherwise each member has its own channels
        weight, block, sides = self.weight[wide], self.block, x.shape[2:]
        stride = 1 if block.dilation == 2 else block.stride
        if block.dilation == 2:  # gradients of dilated convolutions are slow; plain ones on every other pixel are not
            x = space_to_batch(x) if block.stride == 1 else x[:, :, ::2, ::2]
        if self.pointwise is None:
            z = conv2d(x, weight, None, stride, block.kernel // 2, groups=1 if shared else count)
        else:
            x = x.repeat(1, count, 1, 1) if shared and count > 1 else x
            z = conv2d(x, weight, None, stride, block.kernel // 2, groups=count * self.channels)
            z = conv2d(z, self.pointwise[wide], groups=count)
        if block.dilation == 2 and block.stride == 1:
            z = batch_to_space(z, *sides)
        result: Tensor = self.norm(z, scale, wide)
        return result


def space_to_batch(x: Tensor) -> Tensor:
    """The four images of every other row and column, as a batch four times as large, in channels-last layout.

    >>> space_to_batch(torch.arange(16.0).view(1, 1, 4, 4))[1, 0]
    tensor([[ 1.,  3.],
            [ 9., 11.]])
    """
    x = nn.functional.pad(x, (0, x.shape[3] % 2, 0, x.shape[2] % 2))
    rows: Tensor = x.permute(0, 2, 3, 1).unflatten(2, (-1, 2)).unflatten(1, (-1, 2))
    return rows.permute(2, 4, 0, 1, 3, 5).reshape(-1, *rows.shape[1:4:2], x.shape[1]).permute(0, 3, 1, 2)


def batch_to_space(phases: Tensor, height: int, width: int) -> Tensor:
    """Undo `space_to_batch`.

    >>> x = torch.randn(2, 3, 5, 7)
    >>> torch.equal(batch_to_space(space_to_batch(x), 5, 7), x)
    True
    """
    rows: Tensor = phases.permute(0, 2, 3, 1).unflatten(0, (2, 2, -1)).permute(2, 3, 0, 4, 1, 5)
    whole = rows.reshape(rows.shape[0], 2 * rows.shape[1], 2 * rows.shape[3], rows.shape[5]).permute(0, 3, 1, 2)
    return whole[:, :, :height, :width].contiguous(memory_format=torch.channels_last)


class ParallelReduce(nn.Module):
    """`members` factorised reductions of one input: two 1×1 convolutions of every other pixel, one of them shifted."""

    def __init__(self, channels: int, members: int) -> None:
        super().__init__()
        self.channels, self.members = channels, members
        half = channels // 2
        self.straight = _parallel_weight(channels, members, 1, outputs=half)
        self.shifted = _parallel_weight(channels, members, 1, outputs=channels - half)
        self.norm = ParallelNorm(members * channels)

    def forward(self, x: Tensor, scales: Tensor) -> Tensor:
        return self._reduce(x, scales.repeat_interleave(self.channels), slice(0, self.members))

    def member(self, x: Tensor, index: int, scale: Tensor) -> Tensor:
        """One member alone."""
        return self._reduce(x, scale.expand(self.channels), slice(index, index + 1))

    def _reduce(self, x: Tensor, scale: Tensor, part: slice) -> Tensor:
        # Slicing selects the pixels, not a stride, as in `FactorizedReduce`.
        moved = nn.functional.pad(x[:, :, 1::2, 1::2], (0, x.shape[3] % 2, 0, x.shape[2] % 2))
        halves = [
            conv2d(
                source.contiguous(memory_format=torch.channels_last),
                weight.unflatten(0, (self.members, -1))[part].flatten(0, 1),
            )
            for source, weight in ((x[:, :, ::2, ::2], self.straight), (moved, self.shifted))
        ]
        # The two halves of a member are neighbours along the channels; the layout stays channels-last.
        rows = [half.permute(0, 2, 3, 1).unflatten(3, (part.stop - part.start, -1)) for half in halves]
        z = torch.cat(rows, dim=4).flatten(3).permute(0, 3, 1, 2)
        result: Tensor = self.norm(z, scale, slice(part.start * self.channels, part.stop * self.channels))
        return result


def _parallel_weight(
    channels: int, members: int, kernel: int, groups: int = 1, outputs: int | None = None
) -> nn.Parameter:
    """The weights of `members` convolutions, concatenated, each initialised as torch initialises a single one."""
    each = [nn.Conv2d(channels, outputs or channels, kernel, groups=groups, bias=False).weight for _ in range(members)]
    return nn.Parameter(torch.cat([weight.detach() for weight in each]))
