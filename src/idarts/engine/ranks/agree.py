"""What ranks must agree on: that files are the first one's affair, when to stop, and that they hold the same α."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

from idarts.engine.ranks.group import explained, patient, rank, world
from idarts.errors import IdartsError

Result = TypeVar("Result")


def on_first(function: Callable[[], Result]) -> Result:
    """What a function gives on the first rank, given to all; an error of it is raised on all of them.

    >>> on_first(lambda: 7)
    7
    """
    if world() == 1:
        return function()
    box: list[Any] = [None, None]
    caught: BaseException | None = None
    if rank() == 0:
        try:
            box[0] = function()
        except Exception as error:  # whatever it is, the others must not wait for the result
            caught = error
            box[1] = error if isinstance(error, IdartsError) else IdartsError(f"on rank 0: {error}")
    with explained("share a result"):
        dist.broadcast_object_list(box, group=patient())
    if caught is not None:
        raise caught
    if box[1] is not None:
        raise box[1]
    found: Result = box[0]
    return found


def wait_for_all() -> None:
    """Ranks may be ready at very different times, when each has read its data."""
    if world() > 1:
        with explained("begin"):
            dist.barrier(group=patient())


def gathered(value: Tensor) -> list[Tensor]:
    """A small tensor of every rank's, in their order, on the CPU.

    >>> gathered(torch.tensor([3]))
    [tensor([3])]
    """
    value = value.detach().cpu().contiguous()
    if world() == 1:
        return [value]
    found = [torch.empty_like(value) for _ in range(world())]
    with explained("compare"):
        dist.all_gather(found, value)
    return found


def any_of(*flags: bool) -> tuple[bool, ...]:
    """Of each flag, whether any rank raised it: the same answer on all.

    >>> any_of(True, False)
    (True, False)
    """
    if world() == 1:
        return flags
    found = torch.stack(gathered(torch.tensor(flags, dtype=torch.uint8)))
    return tuple(bool(flag) for flag in found.amax(dim=0))


def require_same(parts: Mapping[str, Sequence[Tensor]], where: str) -> None:
    """Stops all ranks with the same error if a named part is not the same on all of them, to the bit.

    >>> require_same({"α": [torch.ones(2)]}, "after round 1")
    """
    if world() == 1:
        return
    digests = torch.stack([_digest(tensors) for tensors in parts.values()])
    every = torch.stack(gathered(digests))
    for index, name in enumerate(parts):
        different = (every[:, index] != every[0, index]).nonzero().flatten().tolist()
        if different:
            ranks = ", ".join(map(str, different))
            raise IdartsError(
                f"{name} on rank {ranks} is not that of rank 0 {where}, so the ranks have drifted apart; go on from "
                "the last checkpoint with --resume, and look for what is random or different on that rank"
            )


def _digest(tensors: Sequence[Tensor]) -> Tensor:
    """A number that changes with any bit and with any exchange, by integer arithmetic, on the tensors' device."""
    total = torch.zeros((), dtype=torch.int64, device=tensors[0].device)
    for tensor in tensors:
        flat = tensor.detach().reshape(-1).contiguous()
        bits = flat.view({8: torch.int64, 4: torch.int32, 2: torch.int16}[flat.element_size()]).to(torch.int64)
        places = torch.arange(len(bits), device=bits.device) * 2 + 1
        total = total * 1_000_003 + (bits * places).sum()
    return total
