"""Means over all ranks, each of them counted. With one rank they give back what they were given."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from idarts.engine.ranks.group import explained, rank, world
from idarts.layers.lean import statistics_by


@dataclass
class Traffic:
    """What this rank has handed to collectives. On the wire a ring moves 2(N − 1)/N times as many bytes."""

    calls: int = 0
    bytes: int = 0

    def count(self, tensor: Tensor) -> None:
        self.calls += 1
        self.bytes += tensor.numel() * tensor.element_size()


_counting: list[Traffic] = []


@contextmanager
def traffic() -> Iterator[Traffic]:
    """Counts the collectives on tensors within the block.

    >>> with traffic() as counted:
    ...     _ = all_mean(torch.ones(3))
    >>> counted
    Traffic(calls=0, bytes=0)
    """
    counted = Traffic()
    _counting.append(counted)
    try:
        yield counted
    finally:
        _counting.remove(counted)


def all_sum(tensor: Tensor) -> Tensor:
    """The sum over all ranks, the same bits on each of them.

    >>> all_sum(torch.tensor([1.0, 2.0]))
    tensor([1., 2.])
    """
    if world() == 1:
        return tensor
    total = tensor.detach().clone(memory_format=torch.contiguous_format)
    with explained("average"):
        dist.all_reduce(total)
    for counted in _counting:
        counted.count(total)
    return total


def all_mean(tensor: Tensor) -> Tensor:
    """The mean over all ranks, the same bits on each of them."""
    return tensor if world() == 1 else all_sum(tensor) / world()


def mean_gradients(grads: Sequence[Tensor | None], seen: Tensor) -> tuple[Sequence[Tensor | None], Tensor]:
    """Gradients and, in the same collective, what was seen with them, averaged.

    A parameter that is not used has no gradient on any rank: all of them run the same paths.
    """
    if world() == 1:
        return grads, seen
    used = [grad for grad in grads if grad is not None]
    flat = all_mean(torch.cat([part.reshape(-1).to(seen.dtype) for part in (*used, seen)]))
    *means, seen = flat.split([part.numel() for part in (*used, seen)])
    found = iter(mean.view_as(grad).to(grad.dtype) for mean, grad in zip(means, used, strict=True))
    return [None if grad is None else next(found) for grad in grads], seen


@torch.no_grad()
def begin_alike(module: nn.Module) -> None:
    """All ranks take the first one's parameters and buffers."""
    if world() == 1:
        return
    with explained("begin"):
        for tensor in (*module.parameters(), *module.buffers()):
            dist.broadcast(tensor.detach(), src=0)


@torch.no_grad()
def mean_buffers(modules: Iterable[nn.Module]) -> None:
    """Averages the buffers (BatchNorm's running statistics), so that all ranks hold the same state."""
    buffers = [buffer for module in modules for buffer in module.buffers() if buffer.is_floating_point()]
    if world() == 1 or not buffers:
        return
    flat = all_mean(torch.cat([buffer.reshape(-1) for buffer in buffers]))
    for buffer, mean in zip(buffers, flat.split([buffer.numel() for buffer in buffers]), strict=True):
        buffer.copy_(mean.view_as(buffer))


def joint_statistics(wanted: bool) -> AbstractContextManager[None]:
    """Where wanted, BatchNorm within the block normalises by the statistics of all ranks' shares together.

    Unlike torch's SyncBatchNorm it can be differentiated twice, and runs on CPUs.
    """
    return statistics_by(_rows) if wanted and world() > 1 else nullcontext()


def _rows(mine: Tensor) -> Tensor:
    """All ranks' vectors as the rows of a matrix; differentiable any number of times."""
    matrix: Tensor = mine.new_zeros(world(), len(mine)).index_copy(
        0, torch.tensor([rank()], device=mine.device), mine.unsqueeze(0)
    )
    total: Tensor = _Sum.apply(matrix)  # type: ignore[no-untyped-call] # torch's `apply` has no types
    return total


class _Sum(torch.autograd.Function):
    """A sum over ranks is its own transpose: what all ranks' losses ask of it is summed, too."""

    @staticmethod
    def forward(_ctx: Any, x: Tensor) -> Tensor:
        return all_sum(x)

    @staticmethod
    def backward(_ctx: Any, grad: Tensor) -> Tensor:
        total: Tensor = _Sum.apply(grad)  # type: ignore[no-untyped-call]
        return total
