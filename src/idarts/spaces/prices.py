"""The price of every option of a space: what it adds to the cost of the final network, counted or measured.

Each space says how its options add up; see `Space.prices`.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch import nn

from idarts.arch import SPACES, Architecture, Skeleton, Space, space_of
from idarts.errors import InputError
from idarts.files import read_json
from idarts.spaces.counting import Counts, count, count_module
from idarts.spaces.supernet import Supernet

UNITS = {"parameters": "parameters", "multiply_adds": "multiply-adds", "latency": "milliseconds"}
_WARM, _LEAST = 3, 7  # runs before, and runs measured at least

Whole = Callable[[Architecture], float]
Milliseconds = Callable[[nn.Module, tuple[int, ...]], float]  # of a module, for inputs of this shape


@dataclass(frozen=True)
class Prices:
    """`base`, and what each option adds to it, in the shape of α. `whole` counts a whole network instead of the sum."""

    base: float
    options: dict[str, list[list[float]]]
    whole: Whole
    none: bool = True  # whether an architecture of the space can have `none`


def prices(
    net: Supernet,
    kind: str,
    skeleton: str | None = None,
    *,
    table: str | None = None,
    batch: Callable[[], Any] = lambda: None,
) -> Prices:
    """The prices in a supernet's space, for networks in a published skeleton, or from a table of `measure_latency`.

    `batch` gives inputs for a supernet that is a user's own model.

    >>> from idarts.spaces import space
    >>> here = space("nas-bench-201")
    >>> net = here.supernet(here.skeleton.changed(depth=1, channels=4))
    >>> known = prices(net, "parameters")
    >>> known.base, known.options["cell"][0]  # of an edge: none, skip, 1×1, 3×3, pool
    (73306.0, [0.0, 0.0, 28000.0, 243040.0, 0.0])
    """
    here = space_of(net.architecture())
    if kind == "latency":
        return _from_table(here, net, table)
    priced: Prices = here.prices(_counted(net, kind, skeleton, batch), net)
    return priced


def measure_latency(
    space: str,
    skeleton: Skeleton | None = None,
    *,
    device: str = "cpu",
    threads: int = 1,
    batch: int = 1,
    seconds: float = 0.2,
) -> dict[str, Any]:
    """Milliseconds of a space's operations and skeleton on this machine, as plain data for a JSON file.

    `cost.table` names such a file. A network's latency is taken to be a sum. `seconds` is the least time for each
    measurement.

    >>> small = Skeleton(depth=1, channels=4, classes=10, image=8)
    >>> table = measure_latency("nas-bench-201", small, seconds=0)
    >>> sorted(table["ops"]), len(table["ops"]["nor_conv_3x3"])
    (['avg_pool_3x3', 'none', 'nor_conv_1x1', 'nor_conv_3x3', 'skip_connect'], 3)
    """
    here = SPACES[space]
    chosen = here.resolve(skeleton)

    def milliseconds(module: nn.Module, shape: tuple[int, ...]) -> float:
        return _milliseconds(module.to(device), torch.zeros(batch, *shape, device=device), seconds)

    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        measured = here.latency(chosen, milliseconds)
    finally:
        torch.set_num_threads(before)
    machine = {"device": device, "threads": threads, "batch": batch, "torch": torch.__version__}
    return {"space": here.name, "macro": asdict(chosen), **machine, **measured}


def _counted(net: Supernet, kind: str, skeleton: str | None, batch: Callable[[], Any]) -> Whole:
    """The cost of a network: the one that the supernet derives, or else the one that the space builds."""
    inputs = cache(batch)  # only a derived network needs some, and a stream of batches must not lose one for nothing

    def whole(architecture: Architecture) -> float:
        module = net.derived(architecture)
        if module is None:
            return _number(count(architecture, skeleton), kind)
        if kind == "parameters":
            return float(sum(weights.numel() for weights in module.parameters()))
        given = inputs()
        if isinstance(given, Mapping):  # as `call_module` reads the inputs of a batch
            return _number(count_module(module, **given), kind)
        return _number(count_module(module, *(given if isinstance(given, tuple) else (given,))), kind)

    return whole


def _number(counts: Counts, kind: str) -> float:
    return float(counts.params if kind == "parameters" else counts.multiply_adds["conv+fc"])


@torch.no_grad()
def _milliseconds(module: nn.Module, images: torch.Tensor, seconds: float) -> float:
    module.eval()
    times: list[float] = []
    while len(times) < _WARM + _LEAST or sum(times) < seconds:
        start = time.perf_counter()
        module(images)
        if images.device.type != "cpu":
            torch.accelerator.synchronize(images.device)
        times.append(time.perf_counter() - start)
    return 1000 * median(times[_WARM:])


def _from_table(space: Space, net: Supernet, path: str | None) -> Prices:
    if path is None:
        raise InputError("cost.table names no file; write one with idarts.spaces.measure_latency")
    try:
        priced: Prices = space.latency_prices(read_json(Path(path)), net)
    except InputError as error:  # also that of a space without latencies
        raise InputError(f"cost.table: {error}") from None
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError):
        raise InputError(f"cost.table {path} is not a table of idarts.spaces.measure_latency") from None
    return priced
