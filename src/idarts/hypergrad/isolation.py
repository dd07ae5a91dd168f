"""The context in which losses are evaluated, so that a hypergradient has no side effects."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager

import torch
from torch import Tensor


def random_states(devices: Iterable[torch.device]) -> list[Tensor]:
    """The states of torch's random generators on the CPU and on these devices.

    >>> states = random_states([])
    >>> first = torch.rand(2)
    >>> set_random_states([], states)
    >>> torch.equal(first, torch.rand(2))
    True
    """
    others = (device for device in devices if device.type != "cpu")
    return [torch.get_rng_state(), *(torch.get_device_module(device).get_rng_state(device) for device in others)]


def set_random_states(devices: Iterable[torch.device], states: Sequence[Tensor]) -> None:
    """Restore what `random_states` returned for the same devices; for other devices, only the CPU's state."""
    others = (device for device in devices if device.type != "cpu")
    torch.set_rng_state(states[0].cpu())
    for device, state in zip(others, states[1:], strict=False):
        torch.get_device_module(device).set_rng_state(state.cpu(), device)


@contextmanager
def isolated(devices: Collection[torch.device]) -> Iterator[None]:
    """Gradients are on, whatever the caller's mode; the random state is restored, even if a loss raises."""
    states = random_states(devices)
    try:
        with torch.inference_mode(False), torch.enable_grad():
            yield
    finally:
        set_random_states(devices, states)


@contextmanager
def full_precision(devices: Iterable[torch.device]) -> Iterator[None]:
    """Autocast is off: second derivatives in bfloat16 or float16 are noise."""
    with ExitStack() as stack:
        for device_type in {device.type for device in devices}:
            stack.enter_context(torch.autocast(device_type, enabled=False))
        yield
