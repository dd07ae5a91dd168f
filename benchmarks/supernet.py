"""Fused supernets against the same mathematics edge by edge: time and peak memory of a gradient and of one product.

Run `python benchmarks/supernet.py`, at the papers' sizes and at those of the proxies. Both run in one process, in
interleaved rounds, the fastest round of each counts.
The plain supernets are the readable references that the tests hold the fused ones against.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import conv2d, cross_entropy
from torch.utils.flop_counter import FlopCounterMode

from idarts.spaces import Skeleton
from idarts.spaces.darts.supernet import DartsSupernet
from idarts.spaces.nas_bench_1shot1.supernet import NasBench1Shot1Supernet
from idarts.spaces.nas_bench_201.supernet import NasBench201Supernet
from measure import Run, fastest, peak_bytes

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "spaces"))
import conversion
import plain_1shot1
import plain_201
import plain_darts

Clock = Callable[[], float]
TARGETS = {"nas-bench-201": 2.0, "darts": 1.8}


@dataclass(frozen=True)
class Setting:
    """A space at the size at which it is measured."""

    skeleton: Skeleton
    batch: int
    fused: Callable[[Skeleton], nn.Module]
    plain: Callable[[Skeleton], nn.Module]
    load: Callable[[nn.Module, nn.Module], None]


def _by_place(module: Any) -> Callable[[nn.Module, nn.Module], None]:
    def load(fused: nn.Module, plain: nn.Module) -> None:
        plain.load_state_dict(conversion.to_plain(fused.state_dict(), plain.state_dict(), module.place))

    return load


def _of_201(skeleton: Skeleton, batch: int) -> Setting:
    return Setting(skeleton, batch, NasBench201Supernet, plain_201.Plain201, _by_place(plain_201))


def _of_1shot1(skeleton: Skeleton, batch: int) -> Setting:
    fused, plain = partial(NasBench1Shot1Supernet, "S1"), partial(plain_1shot1.Plain1Shot1, "S1")
    return Setting(skeleton, batch, fused, plain, _by_place(plain_1shot1))


def _of_darts(skeleton: Skeleton, batch: int) -> Setting:
    return Setting(skeleton, batch, DartsSupernet, plain_darts.PlainDarts, _by_place(plain_darts))


# The papers' sizes with batches for one core, and the proxies: 64 images of 16 pixels and few channels.
SETTINGS = {
    "nas-bench-201": _of_201(Skeleton(5, 16, 10, 32), 64),
    "nas-bench-201-proxy": _of_201(Skeleton(1, 8, 10, 16), 64),
    "nas-bench-1shot1": _of_1shot1(Skeleton(3, 16, 10, 32), 64),
    "nas-bench-1shot1-proxy": _of_1shot1(Skeleton(1, 8, 10, 16), 64),
    "darts": _of_darts(Skeleton(8, 16, 10, 32), 16),
    "darts-proxy": _of_darts(Skeleton(5, 8, 10, 16), 64),
}


@dataclass(frozen=True)
class Row:
    """One measurement of both supernets."""

    space: str
    what: str
    plain_seconds: float
    fused_seconds: float
    plain_bytes: int
    fused_bytes: int

    @property
    def speed(self) -> float:
        return self.plain_seconds / self.fused_seconds

    @property
    def memory(self) -> float:
        return self.fused_bytes / self.plain_bytes


class Work:
    """A gradient in (w, α), and a Hessian-vector product on a retained graph, of one supernet on one batch."""

    def __init__(self, net: nn.Module, batch: tuple[Tensor, Tensor]) -> None:
        self.net, self.batch = net, batch
        self.w = tuple(p for name, p in net.named_parameters() if not name.startswith("alpha"))

    def loss(self) -> Tensor:
        return cross_entropy(self.net(self.batch[0]), self.batch[1])

    def gradient(self) -> Tensor:
        loss = self.loss()
        torch.autograd.grad(loss, tuple(self.net.parameters()))
        return loss.detach()

    def graph(self) -> tuple[Tensor, ...]:
        return torch.autograd.grad(self.loss(), self.w, create_graph=True)

    def product(self, grads: tuple[Tensor, ...]) -> None:
        torch.autograd.grad(grads, self.w, [torch.ones_like(g) for g in grads], retain_graph=True, allow_unused=True)


def measure(space: str, rounds: int, clock: Clock) -> tuple[list[Row], float]:
    """The rows of one space, and the convolutions' floating-point operations in one gradient."""
    setting = SETTINGS[space]
    torch.manual_seed(0)
    fused, plain = setting.fused(setting.skeleton), setting.plain(setting.skeleton)
    setting.load(fused, plain)
    side = setting.skeleton.image
    batch = torch.randn(setting.batch, 3, side, side), torch.randint(setting.skeleton.classes, (setting.batch,))
    works = {"fused": Work(fused, batch), "plain": Work(plain, batch)}
    torch.testing.assert_close(works["fused"].gradient(), works["plain"].gradient(), rtol=1e-4, atol=1e-5)
    with FlopCounterMode(display=False) as counter:
        works["plain"].gradient()
    flops = float(counter.get_total_flops())
    rows = [_compare(space, "gradient", {name: work.gradient for name, work in works.items()}, rounds, clock)]
    runs: dict[str, Run] = {name: partial(work.product, work.graph()) for name, work in works.items()}
    return [*rows, _compare(space, "Hessian-vector product", runs, rounds, clock)], flops


def _compare(space: str, what: str, runs: dict[str, Run], rounds: int, clock: Clock) -> Row:
    seconds = fastest(runs, rounds, lambda note: say(f"{space}, {what}: {note}"), clock)
    peaks = {name: peak_bytes(run) for name, run in runs.items()}
    return Row(space, what, seconds["plain"], seconds["fused"], peaks["plain"], peaks["fused"])


def convolution_peak(clock: Clock, rounds: int = 5) -> float:
    """Floating-point operations a second of the best convolution we know here: 3×3, many channels, channels-last."""
    x = torch.randn(64, 64, 32, 32).contiguous(memory_format=torch.channels_last)
    weight = torch.randn(64, 64, 3, 3).contiguous(memory_format=torch.channels_last)
    seconds = fastest({"convolution": lambda: conv2d(x, weight, padding=1)}, rounds, lambda _: None, clock)[
        "convolution"
    ]
    return 2 * 64 * 64 * 9 * 64 * 32 * 32 / seconds


def say(text: str) -> None:
    print(text, file=sys.stderr)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--spaces", nargs="+", choices=list(SETTINGS), default=list(SETTINGS), help="which to measure")
    parser.add_argument("--rounds", type=int, default=5, help="rounds, of which the fastest counts")
    parser.add_argument("--threads", type=int, default=2, help="threads that torch uses")
    parser.add_argument("--cpu", action="store_true", help="count CPU seconds, on a machine that others use, too")
    parser.add_argument("--json", type=Path, help="file for the results")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    clock = time.process_time if args.cpu else time.perf_counter
    peak = convolution_peak(clock)
    print(f"{'space':22} {'what':24} {'plain s':>8} {'fused s':>8} {'faster':>7} {'memory':>7}")
    results = []
    for space in args.spaces:
        rows, flops = measure(space, args.rounds, clock)
        results += rows
        for row in rows:
            print(
                f"{row.space:22} {row.what:24} {row.plain_seconds:8.3f} {row.fused_seconds:8.3f} "
                f"{row.speed:6.2f}× {row.memory:6.2f}×"
            )
        share = flops / rows[0].fused_seconds / peak
        print(f"{space:22} fused gradient: {100 * share:.0f} % of the {peak / 1e9:.0f} Gflop/s of a good convolution")
        if space in TARGETS:
            worst = min(row.speed for row in rows)
            print(f"{space:22} target: at least {TARGETS[space]:.1f}× faster; least of the two: {worst:.2f}×")
    if args.json:
        args.json.write_text(json.dumps([asdict(row) for row in results], indent=1))


if __name__ == "__main__":
    main()
