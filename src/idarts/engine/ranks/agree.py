"""What ranks must agree on: the content of files, which the first rank handles, when to stop, and the same weights."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

from idarts.engine.ranks.group import explained, rank, slow_group, world
from idarts.errors import IdartsError, InputError

Result = TypeVar("Result")


def on_first(function: Callable[[], Result]) -> Result:
    """Call a function on the first rank and return its result on all ranks. If it raises, all ranks raise.

    >>> on_first(lambda: 7)
    7
    """
    if world() == 1:
        return function()
    box: list[Any] = [None, None]  # result and error
    caught: BaseException | None = None
    if rank() == 0:
        try:
            box[0] = function()
        except Exception as error:  # the other ranks must not wait for a result, whatever the error is
            caught = error
            box[1] = error if isinstance(error, IdartsError) else IdartsError(f"on rank 0: {error}")
    with explained("share a result"):
        dist.broadcast_object_list(box, group=slow_group())
    if caught is not None:
        raise caught
    if box[1] is not None:
        raise box[1]
    result: Result = box[0]
    return result


def wait_for_all() -> None:
    """Wait until every rank has come here: reading data may take one of them much longer."""
    if world() > 1:
        with explained("start"):
            dist.barrier(group=slow_group())


def gather(value: Tensor) -> list[Tensor]:
    """A small tensor from every rank, in the order of ranks, on the CPU.

    >>> gather(torch.tensor([3]))
    [tensor([3])]
    """
    value = value.detach().cpu().contiguous()
    if world() == 1:
        return [value]
    values = [torch.empty_like(value) for _ in range(world())]
    with explained("compare"):
        dist.all_gather(values, value)
    return values


def any_of(*flags: bool) -> tuple[bool, ...]:
    """For each flag, whether it is True on any rank; the answer is the same on all.

    >>> any_of(True, False)
    (True, False)
    """
    if world() == 1:
        return flags
    every = torch.stack(gather(torch.tensor(flags, dtype=torch.uint8)))
    return tuple(bool(flag) for flag in every.amax(dim=0))


def require_equal(facts: Mapping[str, Any]) -> None:
    """Raise the same error on all ranks if a fact, such as a setting or a digest of the data, differs between them.

    >>> require_equal({"seed": 1})
    """
    if world() == 1:
        return
    every: list[Any] = [None] * world()
    with explained("compare what they are made with"):
        dist.all_gather_object(every, dict(facts), group=slow_group())
    for number, other in enumerate(every):
        for name in facts:
            if other.get(name) != every[0].get(name):
                raise InputError(
                    f"rank {number} has {name} {other.get(name)}, but rank 0 has {every[0].get(name)}; "
                    "start all ranks with the same command, data and version"
                )


def require_same(parts: Mapping[str, Sequence[Tensor]], where: str) -> None:
    """Raise the same error on all ranks if one of the named parts is not bitwise the same on all.

    >>> require_same({"α": [torch.ones(2)]}, "after round 1")
    """
    if world() == 1:
        return
    digests = torch.stack([_digest(tensors) for tensors in parts.values()])
    every = torch.stack(gather(digests))
    for index, name in enumerate(parts):
        different = (every[:, index] != every[0, index]).nonzero().flatten().tolist()
        if different:
            ranks = ", ".join(map(str, different))
            raise IdartsError(
                f"{name} on rank {ranks} differs from that of rank 0 {where}: the ranks have drifted apart; continue "
                "from the last checkpoint with --resume, and look for something random or different on that rank"
            )


def _digest(tensors: Sequence[Tensor]) -> Tensor:
    """A checksum that depends on every bit and on the order, by integer arithmetic on the tensors' device."""
    total = torch.zeros((), dtype=torch.int64, device=tensors[0].device)
    for tensor in tensors:
        flat = tensor.detach().reshape(-1).contiguous()
        bits = flat.view({8: torch.int64, 4: torch.int32, 2: torch.int16}[flat.element_size()]).to(torch.int64)
        places = torch.arange(len(bits), device=bits.device) * 2 + 1
        total = total * 1_000_003 + (bits * places).sum()
    return total
