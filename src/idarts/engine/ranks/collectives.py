"""Sums and means over all ranks, with a count of what they send. With one rank they return their argument."""

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
    """What this rank has given to collectives. A ring sends 2(N − 1)/N times as many bytes over the wire."""

    calls: int = 0
    bytes: int = 0

    def count(self, tensor: Tensor) -> None:
        self.calls += 1
        self.bytes += tensor.numel() * tensor.element_size()


_counting: list[Traffic] = []


@contextmanager
def traffic() -> Iterator[Traffic]:
    """Count the collectives on tensors in this block.

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
    """The sum over all ranks, bitwise the same on each.

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
    """The mean over all ranks, bitwise the same on each."""
    return tensor if world() == 1 else all_sum(tensor) / world()


def average_gradients(grads: Sequence[Tensor | None], seen: Tensor) -> tuple[Sequence[Tensor | None], Tensor]:
    """The means of gradients and, in the same collective, of the measures that were seen with them.

    A parameter without a gradient has none on any rank, because all ranks run the same paths.
    """
    if world() == 1:
        return grads, seen
    used = [grad for grad in grads if grad is not None]
    flat = all_mean(torch.cat([part.reshape(-1).to(seen.dtype) for part in (*used, seen)]))
    *means, seen = flat.split([part.numel() for part in (*used, seen)])
    averaged = iter(mean.view_as(grad).to(grad.dtype) for mean, grad in zip(means, used, strict=True))
    return [None if grad is None else next(averaged) for grad in grads], seen


@torch.no_grad()
def copy_from_first(module: nn.Module) -> None:
    """Give all ranks the parameters and buffers of the first one."""
    if world() == 1:
        return
    with explained("start"):
        for tensor in (*module.parameters(), *module.buffers()):
            dist.broadcast(tensor.detach(), src=0)


@torch.no_grad()
def average_buffers(modules: Iterable[nn.Module]) -> None:
    """Average the buffers (BatchNorm's running statistics), so that all ranks have the same state."""
    buffers = [buffer for module in modules for buffer in module.buffers() if buffer.is_floating_point()]
    if world() == 1 or not buffers:
        return
    flat = all_mean(torch.cat([buffer.reshape(-1) for buffer in buffers]))
    for buffer, mean in zip(buffers, flat.split([buffer.numel() for buffer in buffers]), strict=True):
        buffer.copy_(mean.view_as(buffer))


def joint_statistics(wanted: bool) -> AbstractContextManager[None]:
    """If wanted, BatchNorm in this block normalises by the joint statistics of all ranks' shares.

    Unlike torch's SyncBatchNorm this can be differentiated twice, and it runs on CPUs.
    """
    return statistics_by(_rows) if wanted and world() > 1 else nullcontext()


def _rows(mine: Tensor) -> Tensor:
    """The vectors of all ranks as rows of a matrix; differentiable any number of times."""
    matrix: Tensor = mine.new_zeros(world(), len(mine)).index_copy(
        0, torch.tensor([rank()], device=mine.device), mine.unsqueeze(0)
    )
    total: Tensor = _Sum.apply(matrix)  # type: ignore[no-untyped-call] # torch's `apply` has no types
    return total


class _Sum(torch.autograd.Function):
    """A sum over ranks is its own transpose, so the gradients of all ranks are summed as well."""

    @staticmethod
    def forward(_ctx: Any, x: Tensor) -> Tensor:
        return all_sum(x)

    @staticmethod
    def backward(_ctx: Any, grad: Tensor) -> Tensor:
        total: Tensor = _Sum.apply(grad)  # type: ignore[no-untyped-call]
        return total
