"""Numbers that the host knows, on a device."""

from collections.abc import Sequence

import torch
from torch import Tensor


def constant(values: Sequence[object], device: torch.device, dtype: torch.dtype | None = None) -> Tensor:
    """A tensor of these numbers, copied without waiting for the device.

    `torch.tensor(values, device=device)`, and a list as an index, let the host wait until a GPU has done all its work.

    >>> constant([2, 0], torch.device("cpu"))
    tensor([2, 0])
    """
    return torch.tensor(values, dtype=dtype).to(device, non_blocking=True)
