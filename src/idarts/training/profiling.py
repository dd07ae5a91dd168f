"""The cost of a network on this machine: parameters, multiply-adds, time, memory."""

import os
import platform
import resource
import sys
import time
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only

from idarts.errors import InputError
from idarts.spaces import count_module

BATCHES = (1, 64)
SECONDS = 2.0  # to measure each batch size, at least
_WARM, _LEAST = 2, 5  # runs before the measurement, and the least number of measured runs


@dataclass(frozen=True)
class Cost:
    """One batch size: seconds of a forward pass, and its peak memory in bytes."""

    batch: int
    minimum: float
    median: float
    runs: int
    peak: int


def profile(
    net: nn.Module, image: Sequence[int], batches: Sequence[int] = BATCHES, seconds: float = SECONDS
) -> dict[str, Any]:
    """Measure a network in evaluation mode on images of the shape (C, H, W), on its own device.

    Peak memory is that of tensors (weights, images, activations): by the allocator on an accelerator, counted here on
    the CPU. `resident` is the peak of the whole process so far, with Python, torch and the operations' workspace.

    >>> cost = profile(nn.Sequential(nn.Flatten(), nn.Linear(12, 5)), (3, 2, 2), batches=[2], seconds=0)
    >>> cost["params"], cost["multiply_adds"]["conv+fc"], cost["batches"][0]["peak"]  # 4 · (65 + 2 · 12 + 2 · 5) bytes
    (65, 65, 396)
    """
    for batch in batches:
        if isinstance(batch, bool) or not isinstance(batch, int) or batch < 1:
            raise InputError(f"a batch of {batch!r} cannot be measured, expected a whole number of at least 1")
    net.eval()
    counts = count_module(net, torch.empty(1, *image))
    device = next(net.parameters()).device
    costs = [_cost(net, torch.zeros(batch, *image, device=device), seconds) for batch in batches]
    return {
        "image": list(image),
        "params": counts.params,
        "multiply_adds": counts.multiply_adds,
        "batches": [{**vars(cost), "images_per_second": cost.batch / cost.median} for cost in costs],
        "peak_is": "tensors" if device.type == "cpu" else "allocator",
        "resident": _resident(),
        "machine": _machine(device),
    }


@torch.no_grad()
def _cost(net: nn.Module, images: Tensor, seconds: float) -> Cost:
    peak = _peak(net, images)  # also the first warm-up run
    for _ in range(_WARM - 1):
        net(images)
    times: list[float] = []
    while len(times) < _LEAST or sum(times) < seconds:
        _wait(images.device)
        start = time.perf_counter()
        net(images)
        _wait(images.device)
        times.append(time.perf_counter() - start)
    return Cost(len(images), min(times), median(times), len(times), peak)


def _peak(net: nn.Module, images: Tensor) -> int:
    if images.device.type != "cpu":
        module: Any = getattr(torch, images.device.type)
        module.reset_peak_memory_stats(images.device)
        net(images)
        return int(module.max_memory_allocated(images.device))
    alive = _Alive()
    with alive:
        for tensor in [*net.parameters(), *net.buffers(), images]:
            alive.add(tensor)
        net(images)
    return alive.peak


class _Alive(TorchDispatchMode):
    """Count the bytes of all live storages, from the operation that creates one until it is freed."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.now, self.peak = 0, 0
        self._known: weakref.WeakSet[torch.UntypedStorage] = weakref.WeakSet()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        tree_map_only(Tensor, self.add, result)
        return result

    def add(self, tensor: Tensor) -> None:
        storage = tensor.untyped_storage()
        if storage not in self._known:
            self._known.add(storage)
            self.now += storage.nbytes()
            self.peak = max(self.peak, self.now)
            weakref.finalize(storage, self._free, storage.nbytes())

    def _free(self, size: int) -> None:
        self.now -= size


def _wait(device: torch.device) -> None:
    if device.type != "cpu":
        torch.accelerator.synchronize(device)


def _resident() -> int:
    """The peak memory of this process so far, in bytes."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _machine(device: torch.device) -> dict[str, Any]:
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else _processor()
    return {"device": str(device), "name": name, "threads": torch.get_num_threads(), "torch": torch.__version__}


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            names = [line.partition(":")[2].strip() for line in file if line.startswith("model name")]
    except OSError:
        names = []
    return names[0] if names else f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores"
