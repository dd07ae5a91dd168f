"""Parallel operations computed as one: the parts of fused supernets.

All edges that leave one node read the same tensor. Their convolutions of one kind become one wider or grouped
convolution, and their BatchNorms one BatchNorm whose weight is α. A weighted sum remains. The result is that of
computing edge by edge.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from idarts.layers.lean import batch_norm, conv2d, relu
from idarts.layers.reading import Reads, batch_to_space, sum_of_parts

EPS, MOMENTUM = 1e-5, 0.1
# Values of a module's result. Up to here two calls cost more than wider kernels do (`benchmarks/supernet.py`).
SMALL = 131_072


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

    @property
    def kind(self) -> Hashable:
        """Equal for two modules that can run as one: depthwise, and different in their kernels only."""
        blocks = [block.block for block in self.blocks if isinstance(block, _ParallelBlock)]
        separable = all(block.separable for block in blocks)
        return tuple(replace(block, kernel=0) for block in blocks) if separable else id(self)

    def forward(self, reads: Reads, scales: Tensor) -> Tensor:
        """All members; `scales` has one α for each. The input has the channels of one member."""
        return _run_together([self], [scales], reads)

    def member(self, reads: Reads, index: int, scale: Tensor) -> Tensor:
        """One member alone."""
        return _chain([self], reads, scale.expand(self.channels), slice(index, index + 1))


def run_all(modules: Sequence[nn.Module], reads: Reads, scales: Sequence[Tensor]) -> list[Tensor]:
    """Results on one node whose sum is that of all modules; those of one kind run as one where they are small.

    >>> modules = [Parallel(4, 2, [Block(kernel, separable=True)]) for kernel in (3, 5)]
    >>> [result.shape for result in run_all(modules, Reads(torch.randn(2, 4, 6, 6)), torch.ones(2, 2))]
    [torch.Size([2, 8, 6, 6])]
    """
    groups: dict[Hashable, list[tuple[Any, Tensor]]] = {}
    for module, scale in zip(modules, scales, strict=True):
        joins = isinstance(module, Parallel) and module.members * reads().numel() <= SMALL
        groups.setdefault(module.kind if joins else id(module), []).append((module, scale))
    results: list[Tensor] = []
    for group in groups.values():
        together, each = zip(*group, strict=True)
        results.append(_run_together(together, each, reads) if len(group) > 1 else together[0](reads, each[0]))
    return results


def _run_together(modules: Sequence[Parallel], scales: Sequence[Tensor], reads: Reads) -> Tensor:
    """The sum of the results of modules of one kind, whose convolutions become one."""
    scale = torch.cat([*scales]) if len(scales) > 1 else scales[0]
    x = _chain(modules, reads, scale.repeat_interleave(modules[0].channels), slice(0, modules[0].members))
    return sum_of_parts(x, len(modules)) if len(modules) > 1 else x


def _chain(modules: Sequence[Parallel], reads: Reads, scale: Tensor, part: slice) -> Tensor:
    """The members `part` of the first module, then those of the second, and so on."""
    steps: list[Any] = list(zip(*(module.blocks for module in modules), strict=True))
    x = steps[0][0].read(reads, part, len(modules))
    for blocks in steps[:-1]:
        x = relu(_run_blocks(blocks, x, None, part, reads))
    return _run_blocks(steps[-1], x, scale, part, reads)


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
        return _normalise([self], z, scale, part)


def _normalise(norms: Sequence[ParallelNorm], z: Tensor, scale: Tensor | None, part: slice) -> Tensor:
    """Normalise z, which holds the channels `part` of each norm."""
    running = [[_part(norm.running_mean, part), _part(norm.running_var, part)] for norm in norms]
    mean, var = running[0] if len(norms) == 1 else [torch.cat(each) for each in zip(*running, strict=True)]
    y = batch_norm(z, mean, var, scale, None, norms[0].training, MOMENTUM, EPS)
    if norms[0].training and len(norms) > 1:
        for (old_mean, old_var), *new in zip(running, mean.chunk(len(norms)), var.chunk(len(norms)), strict=True):
            old_mean.copy_(new[0])
            old_var.copy_(new[1])
    return y


class _ParallelBlock(nn.Module):
    def __init__(self, channels: int, members: int, block: Block) -> None:
        super().__init__()
        self.channels, self.block = channels, block
        groups = channels if block.separable else 1
        self.weight = _parallel_weight(channels, members, block.kernel, groups)
        self.pointwise = _parallel_weight(channels, members, 1) if block.separable else None
        self.norm = ParallelNorm(members * channels)

    def read(self, reads: Reads, part: slice, modules: int) -> Tensor:
        """The input of these members: one for all, or a copy for each if every channel has its own filter."""
        pixels = "all" if self.block.dilation == 1 else "phases" if self.block.stride == 1 else "even"
        return reads(pixels, copies=modules * (part.stop - part.start) if self.block.separable else 1)


def _run_blocks(blocks: Sequence[_ParallelBlock], x: Tensor, scale: Tensor | None, part: slice, reads: Reads) -> Tensor:
    """The members `part` of blocks that differ in their kernels only; the smaller kernels get a border of zeros."""
    channels, block = blocks[0].channels, blocks[0].block
    wide, members = slice(part.start * channels, part.stop * channels), len(blocks) * (part.stop - part.start)
    stride, kernel = 1 if block.dilation == 2 else block.stride, max(each.block.kernel for each in blocks)
    weight = _joined([_with_border(_part(each.weight, wide), kernel) for each in blocks])
    pointwise = [_part(each.pointwise, wide) for each in blocks if each.pointwise is not None]
    groups = members * channels if pointwise else x.shape[1] // channels
    z = conv2d(x, weight, None, stride, kernel // 2, groups=groups)
    if pointwise:
        z = conv2d(z, _joined(pointwise), groups=members)
    # Gradients of dilated convolutions are slow; plain ones on every other pixel are not. The statistics do not
    # depend on the order of the pixels, but the border that odd sides get in phases does not belong to them.
    if len(z) != reads.batch and any(side % 2 for side in reads.sides):
        z = batch_to_space(z, *reads.sides)
    return _normalise([each.norm for each in blocks], z, scale, wide)


def _joined(weights: Sequence[Tensor]) -> Tensor:
    return weights[0] if len(weights) == 1 else torch.cat([*weights])


def _with_border(weight: Tensor, kernel: int) -> Tensor:
    border = (kernel - weight.shape[3]) // 2
    return functional.pad(weight, [border] * 4) if border else weight


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
