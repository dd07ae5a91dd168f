"""What one hypergradient costs: time and peak memory in units of one ∇_w L1 of the plain net, next to other libraries.

Run `make bench`, or `python benchmarks/hypergradient.py` with whatever peers are installed. All rows run in one
process, in interleaved rounds, and each row's fastest round counts: only such ratios carry over to other machines.
"""

import argparse
import json
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from time import process_time

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from idarts.hypergrad import (
    F2SA,
    ConjugateGradient,
    FirstOrder,
    Identity,
    Method,
    Neumann,
    Nystrom,
    OneStep,
    ReverseMode,
    Running,
    TruncatedReverse,
)
from measure import Run, fastest, peak_bytes
from nets import Fused, Lean, Plain
from peers import PEERS, missing
from point import STEP, K, Point

EXACT, AUTO = f"Neumann K={K}", f"Neumann K={K}, step=auto"
METHODS: dict[str, Method] = {
    "FirstOrder": FirstOrder(),
    "OneStep": OneStep(STEP),
    "Identity": Identity(),
    EXACT: Neumann(K, STEP),
    f"{EXACT}, finite differences": Neumann(K, STEP, products="finite_difference"),
    f"{EXACT}, Gauss–Newton": Neumann(K, STEP, curvature="gauss_newton"),
    AUTO: Neumann(K, "auto"),
    "ConjugateGradient, 3 iterations": ConjugateGradient(iterations=3),
    "Nystrom, rank 3": Nystrom(rank=3, damping=1.0),
    "TruncatedReverse, 2 of 3 steps": TruncatedReverse(steps=3, terms=2, step=STEP),
    "ReverseMode, 3 steps": ReverseMode(steps=3, step=STEP),
    "Running": Running(STEP),
    "Running, Gauss–Newton": Running(STEP, curvature="gauss_newton"),
    "F2SA": F2SA(STEP),
}
OWN = ("plain", "lean")  # nets whose own gradient is measured, too
LENGTHS = (1, 2, 4, 8, 16)


@dataclass(frozen=True)
class Entry:
    """What stands behind a row: the runs with their shares in its cost, and the implicit part that they find."""

    name: str
    net: str
    point: Point
    runs: tuple[tuple[float, Run], ...]
    implicit: Callable[[], Tensor]
    reference: Method  # gives the same quantity when its products are exact

    @property
    def key(self) -> str:
        return f"{self.name} | {self.net}"


@dataclass(frozen=True)
class Row:
    """A line of the table. Time and memory are in units of the plain net's gradient."""

    name: str
    net: str
    time: float
    memory: float
    error: float | None  # of the implicit part, relative to float64 and exact products
    updates: int  # of BatchNorm's statistics, on the side


def ours(name: str, net: str, point: Point) -> Entry:
    method = METHODS[name]
    state = point.hypergradient(method).state if isinstance(method, F2SA | Running) else None
    runs: tuple[tuple[float, Run], ...] = ((1.0, lambda: point.hypergradient(method, state)),)
    if isinstance(method, Neumann) and method.step == "auto":  # most calls use the eigenvalue, one in so many renews it
        young = point.hypergradient(method).state
        old, share = {**young, "age": method.refresh - 1}, 1 / method.refresh
        runs = (
            (1 - share, lambda: point.hypergradient(method, young)),
            (share, lambda: point.hypergradient(method, old)),
        )
    return Entry(name, net, point, runs, lambda: point.hypergradient(method).implicit[0], method)


def entries(points: dict[str, Point]) -> list[Entry]:
    found = [ours(name, net, points[net]) for net in ("plain", "lean") for name in METHODS]
    found += [ours(EXACT, net, points[net]) for net in ("plain, lean layers", "fused")]
    for name, make in PEERS.items():
        reason = missing(name)
        if reason is not None:
            print(f"{name} is left out: {reason}")
            continue
        for net in ("plain", "lean") if name == "Betty" else ("plain",):
            peer = make(points[net].task())
            found.append(Entry(name, net, points[net], ((1.0, peer.run),), peer.implicit, METHODS[EXACT]))
    return found


def measured(found: Sequence[Entry], points: dict[str, Point], rounds: int) -> tuple[list[Row], dict[str, float], int]:
    """The table, the CPU seconds of the nets' own gradients, and the unit of memory in bytes."""
    plain = points["plain"]
    exact = Reference(Point.of(Plain, dtype=torch.float64))
    checked = [exact.check(entry) for entry in found]  # first, so that nothing is timed cold
    runs: dict[str, Run] = {net: points[net].gradient for net in OWN}
    runs |= {f"{entry.key} {i}": run for entry in found for i, (_, run) in enumerate(entry.runs)}
    seconds = fastest(runs, rounds, say, process_time)
    unit = peak_bytes(plain.gradient)
    rows = []
    for entry, (error, updates) in zip(found, checked, strict=True):
        say(f"memory of {entry.key}")
        time = sum(share * seconds[f"{entry.key} {i}"] for i, (share, _) in enumerate(entry.runs))
        memory = max(peak_bytes(run) for _, run in entry.runs)
        rows.append(Row(entry.name, entry.net, time / seconds["plain"], memory / unit, error, updates))
    return rows, {net: seconds[net] for net in OWN}, unit


class Reference:
    """Implicit parts in float64 with exact products, on the plain net."""

    def __init__(self, point: Point) -> None:
        self._point = point
        self._known: dict[Method, Tensor] = {}

    def check(self, entry: Entry) -> tuple[float | None, int]:
        """The relative error of an entry's implicit part, and its updates of BatchNorm's statistics."""
        say(f"check of {entry.key}")
        count = entry.point.net.stem_norm.num_batches_tracked
        assert count is not None
        before = int(count)
        implicit, expected = entry.implicit(), self._implicit(entry.reference)
        error = float((implicit.double() - expected).norm() / expected.norm())
        return error if expected.any() else None, int(count) - before

    def _implicit(self, method: Method) -> Tensor:
        if isinstance(method, Neumann):
            method = replace(method, products="exact")
        if method not in self._known:
            self._known[method] = self._point.hypergradient(method).implicit[0]
        return self._known[method]


def same_mathematics() -> float:
    """The largest relative difference of the gradient, with respect to w and α, between the nets, in float64."""
    gradients = []
    for kind, layers in ((Plain, False), (Plain, True), (Lean, False), (Fused, False)):
        point = Point.of(kind, layers=layers, dtype=torch.float64)
        loss = cross_entropy(point.net(point.valid[0]), point.valid[1])
        grads = torch.autograd.grad(loss, tuple(point.net.parameters()))
        gradients.append(torch.cat([loss[None], *(g.reshape(-1) for g in grads)]).detach())
    plain, *others = gradients
    return max(float((other - plain).norm() / plain.norm()) for other in others)


def memory_by_length(point: Point, unit: int) -> dict[str, list[float]]:
    """Peak memory of the series, and of reverse mode through as many steps, against their length."""

    def peak(method: Method) -> float:
        say(f"memory of {type(method).__name__}")
        return peak_bytes(lambda: point.hypergradient(method)) / unit

    return {
        "Neumann": [peak(Neumann(k, STEP)) for k in LENGTHS],
        "TruncatedReverse": [peak(TruncatedReverse(steps=k, terms=k, step=STEP)) for k in LENGTHS],
    }


def running(rows: Sequence[Row], seconds: dict[str, float]) -> list[str]:
    """What one call with a running solution costs beyond first order, in the net's own gradients, and next to a series.

    With `Bilevel(one_loop=True)` the call's inner gradient is the weight step's, which first order has to compute.
    """
    by, lines = {(row.name, row.net): row.time for row in rows}, []
    for net in OWN:
        unit = seconds[net] / seconds["plain"]
        for name, series in (("Running", EXACT), ("Running, Gauss–Newton", f"{EXACT}, Gauss–Newton"), ("F2SA", EXACT)):
            beyond = (by[name, net] - by["FirstOrder", net]) / unit
            lines.append(
                f"{name} on {net}: {beyond:.2f} own gradients beyond first order, {beyond - 1:.2f} if the weight step "
                f"uses its inner gradient (≤ 2.2), {by[name, net] / by[series, net]:.2f} of {series} (≤ 0.75)"
            )
    return lines


def targets(rows: Sequence[Row], lengths: dict[str, list[float]]) -> list[str]:
    by = {(row.name, row.net): row for row in rows}
    best, auto, peer = by[EXACT, "lean"], by[AUTO, "lean"], by.get(("Betty", "plain"))
    line = f"{EXACT} on lean: {best.time:.2f} units of time (target ≤ 5.0), {best.memory:.2f} of memory (≤ 2.5)"
    if peer is not None:
        line += f", {best.time / peer.time:.2f} of Betty's time (≤ 0.7)"
        line += f", {best.memory / peer.memory:.2f} of Betty's memory (≤ 0.65)"
    others = [row for row in rows if row.name in PEERS and row.net == "plain"]
    if others:
        line += f", {best.time / min(row.time for row in others):.2f} of the fastest peer's (< 1)"
    series = lengths["Neumann"]
    return [
        line,
        f"step=auto costs {100 * (auto.time / best.time - 1):+.0f} % amortised (≤ 10 %)",
        f"Neumann's memory grows by {100 * (max(series) / min(series) - 1):.1f} % "
        f"from K={LENGTHS[0]} to K={LENGTHS[-1]} (≤ 5 %)",
    ]


def table(rows: Sequence[Row]) -> str:
    lines = [("method", "net", "time", "memory", "error of implicit part", "BatchNorm updates")]
    for row in rows:
        error = "–" if row.error is None else f"{row.error:.0e}"
        lines.append((row.name, row.net, f"{row.time:.2f}", f"{row.memory:.2f}", error, str(row.updates)))
    widths = [max(len(cell) for cell in column) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if i < 2 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def say(text: str) -> None:
    """Progress, apart from the result."""
    print(text, file=sys.stderr, flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--rounds", type=int, default=5, help="rounds over all rows; the fastest counts")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", type=Path, metavar="FILE", help="save the results here as well")
    options = parser.parse_args(arguments)
    torch.set_num_threads(options.threads)
    warnings.simplefilter("ignore")  # peers use what torch has deprecated; divergence is not the question here

    print(f"plain, lean and fused nets differ by {same_mathematics():.0e} in float64")
    points = {
        "plain": Point.of(Plain),
        "plain, lean layers": Point.of(Plain, layers=True),
        "lean": Point.of(Lean),
        "fused": Point.of(Fused),
    }
    rows, seconds, unit = measured(entries(points), points, options.rounds)
    lengths = memory_by_length(points["lean"], unit)
    print(f"units: {seconds['plain'] * 1e3:.0f} ms and {unit / 1e6:.0f} MB, one ∇_w L1 of the plain net\n")
    print(table(rows))
    print("\npeak memory on lean   " + "".join(f"{f'K={length}':>8}" for length in LENGTHS))
    for name, values in lengths.items():
        print(f"{name:<22}" + "".join(f"{value:8.2f}" for value in values))
    print("\n" + "\n".join([*targets(rows, lengths), *running(rows, seconds)]))
    if options.json:
        results = {
            "seconds": seconds["plain"],
            "own seconds": seconds,
            "bytes": unit,
            "threads": options.threads,
            "torch": torch.__version__,
        }
        results |= {"rows": [asdict(row) for row in rows], "memory": {"K": LENGTHS, **lengths}}
        options.json.write_text(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
