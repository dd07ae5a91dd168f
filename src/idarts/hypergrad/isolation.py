"""The context in which losses are evaluated, so that a hypergradient has no side effects."""

import random
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves


def random_states(devices: Iterable[torch.device]) -> list[Tensor]:
    """The states of torch's random generators on the CPU and on these devices.

    >>> states = random_states([])
    >>> first = torch.rand(2)
    >>> set_random_states([], states)
    >>> torch.equal(first, torch.rand(2))
    True
    """
    others = [torch.get_device_module(device).get_rng_state(device) for device in devices if device.type != "cpu"]
    return [torch.get_rng_state(), *others]


def set_random_states(devices: Iterable[torch.device], states: Sequence[Tensor]) -> None:
    """Restore what `random_states` returned for the same devices; for other devices, only the CPU's state."""
    others = [device for device in devices if device.type != "cpu"]
    torch.set_rng_state(states[0].cpu())
    for device, state in zip(others, states[1:], strict=False):
        torch.get_device_module(device).set_rng_state(state.cpu(), device)


@contextmanager
def forked(tensors: Any) -> Iterator[None]:
    """Restore torch's random states at the end: on the CPU, and on the devices of the tensors in these containers.

    >>> with forked((torch.zeros(2), [torch.zeros(1)])):
    ...     inside = torch.rand(1)
    >>> torch.equal(inside, torch.rand(1))
    True
    """
    devices = list(dict.fromkeys(leaf.device for leaf in tree_leaves(tensors) if isinstance(leaf, Tensor)))
    before = random_states(devices)
    try:
        yield
    finally:
        set_random_states(devices, before)


class Randomness(NamedTuple):
    """The states of all global generators that a loss may draw from: those of torch, of NumPy and of Python.

    >>> saved = Randomness.now([])
    >>> first = torch.rand(1).item(), random.random()
    >>> saved.restore()
    >>> (torch.rand(1).item(), random.random()) == first
    True
    """

    devices: Collection[torch.device]
    of_torch: list[Tensor]
    of_python: Any
    of_numpy: Any  # None if the process has not imported numpy.random, which takes longer to save than all the others

    @classmethod
    def now(cls, devices: Collection[torch.device]) -> "Randomness":
        numpy = sys.modules.get("numpy.random")
        return cls(devices, random_states(devices), random.getstate(), numpy and numpy.get_state(legacy=False))

    def restore(self) -> None:
        set_random_states(self.devices, self.of_torch)
        random.setstate(self.of_python)
        if self.of_numpy is not None:
            sys.modules["numpy.random"].set_state(self.of_numpy)

    def __enter__(self) -> "Randomness":
        return self

    def __exit__(self, *error: object) -> None:
        self.restore()


def isolated(devices: Collection[torch.device]) -> AbstractContextManager[object]:
    """Gradients are on in any mode of the caller; the random states are restored, even if a loss raises."""
    before = Randomness.now(devices)
    if torch.is_grad_enabled() and not torch.is_inference_mode_enabled():
        return before
    stack = ExitStack()
    for context in (before, torch.inference_mode(False), torch.enable_grad()):
        stack.enter_context(context)
    return stack


def full_precision(devices: Collection[torch.device]) -> AbstractContextManager[object]:
    """Autocast is off: second derivatives in bfloat16 or float16 are noise."""
    cast = [device.type for device in devices if torch.is_autocast_enabled(device.type)]
    if not cast:
        return _NOTHING
    stack = ExitStack()
    for device_type in set(cast):
        stack.enter_context(torch.autocast(device_type, enabled=False))
    return stack


_NOTHING = nullcontext()
