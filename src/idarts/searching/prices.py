"""What every option of a search space adds to the cost of the final network: counted, or measured once as a table."""

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch import Tensor, nn

from idarts.arch import Architecture, Cell, Edge, nas_bench_201
from idarts.arch.rules import NAS_BENCH_201_EDGES, NAS_BENCH_201_OPS
from idarts.errors import InputError
from idarts.searching.settings import Cost
from idarts.spaces import Choice, ChoiceSupernet, Macro, Supernet, count, count_module, derive, network
from idarts.spaces.counting import Counts
from idarts.spaces.darts_supernet import EDGES, INPUTS, NODES, OP
from idarts.spaces.macro import macro
from idarts.spaces.operations import operation

UNITS = {"parameters": "parameters", "multiply_adds": "multiply-adds", "latency": "milliseconds"}
STAGES = 3
_WARM, _LEAST = 3, 7  # runs before, and runs measured at least

Whole = Callable[[Architecture], float]


@dataclass(frozen=True)
class Prices:
    """`base`, and what the options add to it, in the shape of α; `whole` looks at all of a network, not at the sum."""

    base: float
    options: dict[str, list[list[float]]]
    whole: Whole
    none: bool = True  # whether an architecture of the space can have `none`


def prices(net: Supernet, wanted: Cost, batch: Callable[[], Any] = lambda: None) -> Prices:
    """The prices in a supernet's space, of networks in the published skeleton that the settings name.

    >>> from idarts.spaces import space
    >>> found = space("nas-bench-201")
    >>> net = found.supernet(found.macro.changed(depth=1, channels=4))
    >>> found = prices(net, Cost("parameters"))
    >>> found.base, found.options["cell"][0]  # of an edge: none, skip, 1×1, 3×3, pool
    (73306.0, [0.0, 0.0, 28000.0, 243040.0, 0.0])
    """
    name = net.architecture().space
    if wanted.kind == "latency":
        return _from_table(name, wanted.table)
    if isinstance(net, ChoiceSupernet):
        return _of_choices(net, wanted.kind, batch)
    if name == nas_bench_201.SPACE:
        return _of_nas_bench_201(_counted(wanted))
    if name == "darts":
        return _of_darts(_counted(wanted))
    raise InputError(
        f"in {name} an edge changes what every operation costs; cost works in nas-bench-201, darts and with Choices"
    )


def _counted(wanted: Cost) -> Whole:
    return lambda architecture: _number(count(architecture, wanted.skeleton), wanted.kind)


def _number(counts: Counts, kind: str) -> float:
    return float(counts.params if kind == "parameters" else counts.multiply_adds["conv+fc"])


def _of_nas_bench_201(whole: Whole) -> Prices:
    """All edges are alike, so one tells of all; the skeleton is all that there is without operations."""
    rest = ["none"] * (len(NAS_BENCH_201_EDGES) - 1)
    costs = [whole(nas_bench_201.from_ops([op, *rest])) for op in NAS_BENCH_201_OPS]
    base = costs[NAS_BENCH_201_OPS.index("none")]
    return Prices(base, {"cell": [[cost - base for cost in costs] for _ in NAS_BENCH_201_EDGES]}, whole)


def _of_darts(whole: Whole) -> Prices:
    """Edges are alike, but for those that halve the image: from a reducing cell's inputs. Pools cost nothing."""

    def cell(source: int, op: str) -> Cell:
        plain = [Edge(s, target, "avg_pool_3x3") for target in range(INPUTS, NODES) for s in range(INPUTS)]
        changed = [Edge(source, 3, op) if (edge.source, edge.target) == (0, 3) else edge for edge in plain]
        return Cell(NODES, changed, range(INPUTS, NODES))

    plain = {"normal": cell(0, "avg_pool_3x3"), "reduce": cell(0, "avg_pool_3x3")}
    base = whole(Architecture("darts", plain))

    def row(name: str, source: int) -> list[float]:
        ops = [op for op in OP if op != "none"]
        return [0.0, *(whole(Architecture("darts", {**plain, name: cell(source, op)})) - base for op in ops)]

    rows = {(name, source): row(name, source) for name in plain for source in (0, INPUTS)}
    options = {name: [rows[name, INPUTS if edge[0] >= INPUTS else 0] for edge in EDGES] for name in plain}
    return Prices(base, options, whole, none=False)


def _of_choices(net: ChoiceSupernet, kind: str, batch: Callable[[], Any]) -> Prices:
    """Each branch beside the first branches of all other Choices."""
    for choice in (module for module in net.modules() if isinstance(module, Choice)):
        inner = [module for branch in choice.branches.values() for module in branch.modules()]
        if any(isinstance(module, Choice) for module in inner):
            raise InputError(
                f"Choice {choice.name!r} has Choices in it, of which none costs anything for sure; no cost"
            )
    inputs = batch() if kind == "multiply_adds" else None

    def whole(architecture: Architecture) -> float:
        module = derive(net, architecture)
        if inputs is None:
            return float(sum(weights.numel() for weights in module.parameters()))
        return _number(count_module(module, inputs), kind)

    branches = net.branches()
    first = {name: names[0] for name, names in branches.items()}
    base = whole(Architecture("choice", choices=first))
    options = {
        name: [[whole(Architecture("choice", choices={**first, name: branch})) - base for branch in names]]
        for name, names in branches.items()
    }
    return Prices(base, options, whole)


def measure_latency(
    skeleton: Macro | None = None, device: str = "cpu", threads: int = 1, batch: int = 1, seconds: float = 0.2
) -> dict[str, Any]:
    """Milliseconds of NAS-Bench-201's operations on this machine, in each of the three stages, and of the skeleton.

    It is plain data for a JSON file that `cost.table` names. A network's latency is taken to be a sum: the skeleton's
    own and that of `depth` cells in each stage. `seconds` is spent on each measurement at least.

    >>> table = measure_latency(Macro(depth=1, channels=4, classes=10, image=8), seconds=0)
    >>> sorted(table["ops"]), len(table["ops"]["nor_conv_3x3"])
    (['avg_pool_3x3', 'none', 'nor_conv_1x1', 'nor_conv_3x3', 'skip_connect'], 3)
    """
    chosen = skeleton or macro(nas_bench_201.SPACE)
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        ops: dict[str, list[float]] = {"none": [0.0] * STAGES}  # is not run at all
        for op in NAS_BENCH_201_OPS[1:]:
            ops[op] = []
            for stage in range(STAGES):
                channels, side = chosen.channels << stage, -(-chosen.image // (1 << stage))
                images = torch.zeros(batch, channels, side, side, device=device)
                ops[op].append(_milliseconds(operation(op, channels).to(device), images, seconds))
        bare = network(nas_bench_201.from_ops(["none"] * len(NAS_BENCH_201_EDGES)), chosen).to(device)
        base = _milliseconds(bare, torch.zeros(batch, 3, chosen.image, chosen.image, device=device), seconds)
    finally:
        torch.set_num_threads(before)
    machine = {"device": device, "threads": threads, "batch": batch, "torch": torch.__version__}
    return {"space": nas_bench_201.SPACE, "macro": asdict(chosen), **machine, "base": base, "ops": ops}


@torch.no_grad()
def _milliseconds(module: nn.Module, images: Tensor, seconds: float) -> float:
    module.eval()
    times: list[float] = []
    while len(times) < _WARM + _LEAST or sum(times) < seconds:
        start = time.perf_counter()
        module(images)
        if images.device.type != "cpu":
            torch.accelerator.synchronize(images.device)
        times.append(time.perf_counter() - start)
    return 1000 * median(times[_WARM:])


def _from_table(space: str, path: str | None) -> Prices:
    if space != nas_bench_201.SPACE:
        raise InputError(f"there are no latency tables for {space}, only for {nas_bench_201.SPACE}")
    if path is None:
        raise InputError("cost.table names no file; write one with idarts.searching.cost.measure_latency")
    try:
        table = json.loads(Path(path).read_text())
        base, depth = float(table["base"]), int(table["macro"]["depth"])
        row = [depth * sum(map(float, table["ops"][op])) for op in NAS_BENCH_201_OPS]
    except OSError as error:
        raise InputError(f"cost.table {path} cannot be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise InputError(f"cost.table {path} is no table of idarts.searching.cost.measure_latency") from None

    def whole(architecture: Architecture) -> float:
        return base + sum(row[NAS_BENCH_201_OPS.index(op)] for op in nas_bench_201.to_ops(architecture))

    return Prices(base, {"cell": [row for _ in NAS_BENCH_201_EDGES]}, whole)
