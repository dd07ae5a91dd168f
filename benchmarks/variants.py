"""Searches with the cpu preset, changed in what is no setting: α's first values, BatchNorm's statistics, the batches.

Run `python benchmarks/variants.py --out FILE.csv`, with IDARTS_DATA and IDARTS_TABLES set; about four minutes a search
on one core. The argmax of α is looked up in the table. What stands in the file already is not searched again.
"""

import argparse
import csv
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from idarts.arch import convert
from idarts.engine.settings import change
from idarts.searching import Search
from idarts.searching.presets import PRESETS
from idarts.searching.round import Round
from idarts.searching.run import RunConfig, _prepare
from idarts.tables import table

COLUMNS = ("setting", "seed", "cell", "cifar10_test", "cifar100_test", "imagenet16_test", "gradient_evaluations")


class Joined:
    """A stream of so many batches joined."""

    def __init__(self, stream: Any, batches: int) -> None:
        self.stream, self.batches = stream, batches

    def __next__(self) -> tuple[Tensor, ...]:
        return tuple(map(torch.cat, zip(*(next(self.stream) for _ in range(self.batches)), strict=True)))


class FourBatches(Search):
    """Both losses of a hypergradient are means over four batches; weight steps see one."""

    def _hypergradient_step(self, train: Tensor) -> Round:
        streams = self.train, self.valid
        self.train, self.valid = (Joined(stream, 4) for stream in streams)  # type: ignore[assignment] # no state is kept
        try:
            return super()._hypergradient_step(train)
        finally:
            self.train, self.valid = streams


class RunningStatistics(Search):
    """Hypergradients by BatchNorm's running statistics, not by the batch's own."""

    def _hypergradient_step(self, train: Tensor) -> Round:
        self.net.eval()
        try:
            return super()._hypergradient_step(train)
        finally:
            self.net.train()


def wide_start(search: Search) -> None:
    """α begins at a normal draw of standard deviation 0.5, not 0.001."""
    with torch.no_grad():
        for alpha in search.a:
            alpha.mul_(500)


def of_class(kind: type[Search]) -> Callable[[Search], None]:
    def become(search: Search) -> None:
        search.__class__ = kind

    return become


VARIANTS: dict[str, Callable[[Search], None]] = {
    "four batches": of_class(FourBatches),
    "running statistics": of_class(RunningStatistics),
    "α from N(0, 0.5²)": wide_start,
}


def searched(adapt: Callable[[Search], None], seed: int, rounds: int | None) -> dict[str, Any]:
    settings: RunConfig = replace(change(RunConfig(), PRESETS["cpu"]), seed=seed)
    settings = replace(settings, rounds=rounds or settings.rounds)
    search, _ = _prepare(settings)
    adapt(search)
    for _ in search.rounds():
        pass
    cell = search.current()
    found = table("nas-bench-201").query(cell)
    accuracies = {f"{name}_test": round(found[name]["test"], 2) for name in ("cifar10", "cifar100", "imagenet16")}
    cost = round(search.gradient_evaluations)
    return {"cell": convert(cell, "string"), **accuracies, "gradient_evaluations": cost}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rounds", type=int, help="fewer than the preset's, for a first look")
    args = parser.parse_args()
    torch.set_num_threads(1)
    if not args.out.exists():
        args.out.write_text(",".join(COLUMNS) + "\n")
    with args.out.open() as file:
        done = {(row["setting"], int(row["seed"])) for row in csv.DictReader(file)}
    for seed in range(1, args.seeds + 1):
        for name, variant in VARIANTS.items():
            if (name, seed) not in done:
                row = {"setting": name, "seed": seed, **searched(variant, seed, args.rounds)}
                with args.out.open("a", newline="") as file:
                    csv.DictWriter(file, COLUMNS, lineterminator="\n").writerow(row)
                print(*row.values(), flush=True)


if __name__ == "__main__":
    main()
