"""Devices by name, as people type them."""

import torch

from idarts.engine.ranks import local_rank, world
from idarts.errors import InputError


def device_named(name: str) -> torch.device:
    """The device that a name stands for; `auto` is the accelerator, where there is one.

    >>> device_named("cpu")
    device(type='cpu')
    """
    found = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    if name == "auto":
        return _mine(found or torch.device("cpu"))
    try:
        device = torch.device(name)
    except RuntimeError:
        raise InputError(f"device is {name!r}, expected auto, cpu, or one such as cuda or cuda:1") from None
    if device.type != "cpu" and (found is None or found.type != device.type):
        raise InputError(f"device is {name!r}, but this machine has {found or 'no accelerator'}; use auto or cpu")
    if device.index is not None and device.index >= torch.accelerator.device_count():
        raise InputError(f"device is {name!r}, but this machine has {torch.accelerator.device_count()} of them")
    return _mine(device)


def _mine(device: torch.device) -> torch.device:
    """Ranks of one machine have a device each."""
    if world() == 1 or device.type == "cpu" or ":" in str(device):
        return device
    return torch.device(device.type, local_rank() % torch.accelerator.device_count())
