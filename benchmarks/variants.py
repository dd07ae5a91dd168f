"""Searches with the cpu preset, changed in what is no setting: α's first values, BatchNorm's statistics, the batches.

Run `python benchmarks/variants.py --out FILE.csv`, with IDARTS_DATA and IDARTS_TABLES set; about four minutes a search
on one core. The argmax of α is looked up in the table. What stands in the file already is not searched again.
"""

import argparse
import csv
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from idarts.arch import convert
from idarts.engine.settings import change
from idarts.searching import PRESETS, STRATEGIES, RunConfig, Search, Step, task_of
from idarts.searching.strategies.gradient import Gradient
from idarts.tables import table

COLUMNS = ("setting", "seed", "cell", "cifar10_test", "cifar100_test", "imagenet16_test", "gradient_evaluations")


class Joined:
    """A stream of so many batches joined."""

    def __init__(self, stream: Any, batches: int) -> None:
        self.stream, self.batches = stream, batches

    def __next__(self) -> tuple[Tensor, ...]:
        return tuple(map(torch.cat, zip(*(next(self.stream) for _ in range(self.batches)), strict=True)))


class FourBatches(Gradient):
    """Both losses of a hypergradient are means over four batches; weight steps see one."""

    def step(self) -> Step:
        task = self.search.task
        joined: Any = {"train": Joined(task.train, 4), "valid": Joined(task.valid, 4)}
        self.search.task = replace(task, **joined)
        try:
            return super().step()
        finally:
            self.search.task = task


class RunningStatistics(Gradient):
    """Hypergradients by BatchNorm's running statistics, not by the batch's own."""

    def step(self) -> Step:
        self.search.net.eval()
        try:
            return super().step()
        finally:
            self.search.net.train()


class WideStart(Gradient):
    """α starts at a normal draw of standard deviation 0.5, not 0.001."""

    def __init__(self, search: Search) -> None:
        super().__init__(search)
        with torch.no_grad():
            for alpha in self.alphas:
                alpha.mul_(500)


VARIANTS = {"four batches": FourBatches, "running statistics": RunningStatistics, "α from N(0, 0.5²)": WideStart}


def searched(strategy: type[Gradient], seed: int, rounds: int | None) -> dict[str, Any]:
    changes = {**PRESETS["cpu"], "seed": seed, "strategy": STRATEGIES.own(strategy)}
    settings = change(RunConfig(), changes)
    settings = replace(settings, rounds=rounds or settings.rounds)
    torch.manual_seed(seed)
    search = task_of(settings)[0].search()
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
        for name, strategy in VARIANTS.items():
            if (name, seed) not in done:
                row = {"setting": name, "seed": seed, **searched(strategy, seed, args.rounds)}
                with args.out.open("a", newline="") as file:
                    csv.DictWriter(file, COLUMNS, lineterminator="\n").writerow(row)
                print(*row.values(), flush=True)


if __name__ == "__main__":
    main()
