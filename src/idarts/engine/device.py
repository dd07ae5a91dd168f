"""Devices by name."""

import torch

from idarts.engine.ranks import local_rank, world
from idarts.errors import InputError


def device_named(name: str) -> torch.device:
    """The device of a name; `auto` is the accelerator if there is one, else the CPU.

    >>> device_named("cpu")
    device(type='cpu')
    """
    accelerator = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    if name == "auto":
        return _of_rank(accelerator or torch.device("cpu"))
    try:
        device = torch.device(name)
    except RuntimeError:
        raise InputError(f"device is {name!r}, expected auto, cpu, or one such as cuda or cuda:1") from None
    if device.type != "cpu" and (accelerator is None or accelerator.type != device.type):
        raise InputError(f"device is {name!r}, but this machine has {accelerator or 'no accelerator'}; use auto or cpu")
    count = 1 if device.type == "cpu" else torch.accelerator.device_count()
    if device.index is not None and device.index >= count:
        raise InputError(f"device is {name!r}, but this machine has {count} of them; the first is {device.type}:0")
    if device.type == "cpu":
        return torch.device("cpu")
    return _of_rank(device)


def _of_rank(device: torch.device) -> torch.device:
    """Each rank of one machine has its own device."""
    if world() == 1 or device.type == "cpu" or ":" in str(device):
        return device
    return torch.device(device.type, local_rank() % torch.accelerator.device_count())
