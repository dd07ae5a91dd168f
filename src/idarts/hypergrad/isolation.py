"""Calling a hypergradient changes nothing: what surrounds the losses while they are evaluated."""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager

import torch


class RandomState:
    """The state of torch's generators on the CPU and on some devices, to be put back later.

    >>> state = RandomState([])
    >>> first = torch.rand(2)
    >>> state.restore()
    >>> torch.equal(first, torch.rand(2))
    True
    """

    def __init__(self, devices: Iterable[torch.device]) -> None:
        self._cpu = torch.get_rng_state()
        self._others = [
            (device, torch.get_device_module(device).get_rng_state(device))
            for device in devices
            if device.type != "cpu"
        ]

    def restore(self) -> None:
        torch.set_rng_state(self._cpu)
        for device, state in self._others:
            torch.get_device_module(device).set_rng_state(state, device)


@contextmanager
def isolated(devices: Iterable[torch.device]) -> Iterator[None]:
    """Gradients on, whatever the caller's mode; the random state is put back, also when a loss raises."""
    state = RandomState(devices)
    try:
        with torch.inference_mode(False), torch.enable_grad():
            yield
    finally:
        state.restore()


@contextmanager
def full_precision(devices: Iterable[torch.device]) -> Iterator[None]:
    """Autocast off: second derivatives in bfloat16 or float16 are noise."""
    with ExitStack() as stack:
        for device_type in {device.type for device in devices}:
            stack.enter_context(torch.autocast(device_type, enabled=False))
        yield
