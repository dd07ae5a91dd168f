"""Other tensors in the places of a module's parameters, for the time of a call and of its recomputation."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks

from idarts.hypergrad.vectors import Tensors

Place = tuple[dict[str, Any], str]  # where a submodule keeps a tensor


@dataclass(frozen=True)
class Swap:
    """The places of some parameters and of all buffers in a module, each place once.

    One submodule under two names has its places once, and one parameter in two submodules has two. So the places hold
    what they held before when the swap ends.

    >>> layer = nn.Linear(2, 1)
    >>> twice, weight = nn.Sequential(layer, nn.Identity(), layer), layer.weight
    >>> with Swap.of(twice, (weight,)).active((weight.detach() + 1,)) as values:
    ...     layer.weight is values[0]
    True
    >>> layer.weight is weight
    True
    """

    parameters: tuple[tuple[Place, int], ...]  # with the number of the tensor that goes there
    buffers: tuple[Place, ...]
    recurrent: tuple[nn.RNNBase, ...]  # these keep a second list of their parameters

    @classmethod
    def of(cls, module: nn.Module, tensors: Tensors) -> "Swap":
        numbers = {id(tensor): number for number, tensor in enumerate(tensors)}
        modules = list(module.modules())
        return cls(
            tuple(
                ((part._parameters, name), numbers[id(parameter)])
                for part in modules
                for name, parameter in part._parameters.items()
                if id(parameter) in numbers
            ),
            tuple(
                (part._buffers, name)
                for part in modules
                for name, buffer in part._buffers.items()
                if buffer is not None
            ),
            tuple(part for part in modules if isinstance(part, nn.RNNBase)),
        )

    @contextmanager
    def active(self, tensors: Tensors, *, copy_buffers: bool = True) -> Iterator[Tensors]:
        """Within the block, the module has these parameters, and copies of its buffers unless it is to change them."""
        copies: dict[int, Tensor] = {}  # a buffer in two places stays one tensor
        new: list[Tensor] = [tensors[number] for _, number in self.parameters]
        buffers = self.buffers if copy_buffers else ()
        for place, name in buffers:
            buffer: Tensor = place[name]
            if id(buffer) not in copies:
                copies[id(buffer)] = buffer.detach().clone()
            new.append(copies[id(buffer)])
        places = [*(place for place, _ in self.parameters), *buffers]
        old = [place[name] for place, name in places]
        lists = [(part, part._flat_weights, part._flat_weight_refs) for part in self.recurrent]
        try:
            for (place, name), tensor in zip(places, new, strict=True):
                place[name] = tensor
            yield tensors
        finally:
            for (place, name), before in zip(places, old, strict=True):
                place[name] = before
            for part, weights, references in lists:
                part._flat_weights, part._flat_weight_refs = weights, references


@contextmanager
def recomputing_with(swap: Swap, tensors: Tensors) -> Iterator[None]:
    """What is computed within the block and again in the backward pass sees the same swap there.

    `torch.utils.checkpoint(use_reentrant=False)` computes a part of the module again when the backward pass unpacks its
    first saved tensor. At that time the module has its own weights again, and in training BatchNorm would change its
    own statistics. So each pair of hooks that this thread enters within the block unpacks within the swap.
    """
    stack: list[tuple[Swap, Tensors]] = _swaps.__dict__.setdefault("stack", [])
    stack.append((swap, tensors))
    _count_users(1)
    try:
        yield
    finally:
        stack.pop()
        _count_users(-1)


_swaps = threading.local()
_lock, _users = threading.Lock(), 0
_enter_hooks = saved_tensors_hooks.__enter__


def _count_users(change: int) -> None:
    """torch enters hooks in our way while a block is active in any thread, and in its own way otherwise."""
    global _users  # noqa: PLW0603 - it belongs to torch's class, of which there is one in the process
    with _lock:
        _users += change
        saved_tensors_hooks.__enter__ = _enter_within_swap if _users else _enter_hooks  # type: ignore[method-assign]


def _enter_within_swap(hooks: Any) -> None:
    stack, unpack = getattr(_swaps, "stack", None), hooks.unpack_hook
    if not stack:
        return _enter_hooks(hooks)
    swap, tensors = stack[-1]

    def unpack_within_swap(packed: Any) -> Any:
        with swap.active(tensors), recomputing_with(swap, tensors):
            return unpack(packed)

    hooks.unpack_hook = unpack_within_swap
    try:
        return _enter_hooks(hooks)
    finally:
        hooks.unpack_hook = unpack  # torch has taken the other one; these hooks may be entered elsewhere again
