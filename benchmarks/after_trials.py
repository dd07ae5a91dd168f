"""What the selection `trials` makes of cells that searches have selected by α alone, all with the same trials.

    IDARTS_TABLES=… IDARTS_DATA=… python benchmarks/after_trials.py docs/study/equal_cost.csv --out after_trials.csv

The file needs the columns `estimator`, `seed` and `cell`. For every seed the trials of all its cells have the same
images and initial weights, so that no training runs twice. Stop it at any time: it continues with the next row.
"""

import argparse
import csv
from pathlib import Path

import torch

from idarts.arch import Architecture, as_text, parse
from idarts.searching import Search, resolved, task_of
from idarts.searching.candidates import neighbours
from idarts.searching.selections.trials import Trial, halve
from idarts.tables import table

COLUMNS = ("estimator", "seed", "cell", "cifar10_test", "cifar100_test", "imagenet16_test", "gradient_evaluations")


def begin(seed: int, batch: int) -> Search:
    """A search at its start, whose α stands for a given cell later."""
    settings = resolved([{"preset": "cpu", "seed": seed, "batch": batch, "selection.samples": 100}])
    torch.manual_seed(seed)
    return task_of(settings)[0].search()


def winner(search: Search, trial: Trial, cell: Architecture, steps: int) -> tuple[Architecture, float]:
    """The best of a cell and its neighbours by successive halving, and the gradient evaluations of that."""
    with torch.no_grad():
        for name, mixture in search.net.path(cell).items():
            search.net.alpha[name].copy_(mixture.weights)
    selected = halve(neighbours(search), trial, steps)
    return selected.architecture, selected.gradient_evaluations


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cells", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=20, help="of the first trials (default: 20)")
    parser.add_argument("--batch", type=int, default=32, help="images in a batch (default: 32)")
    args = parser.parse_args()
    torch.set_num_threads(1)
    known = table("nas-bench-201")
    with args.cells.open(newline="") as file:
        rows = sorted(csv.DictReader(file), key=lambda row: int(row["seed"]))
    done = len(args.out.read_text().splitlines()) - 1 if args.out.exists() else 0
    with args.out.open("a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if not done:
            writer.writerow(COLUMNS)
        seed = None
        for row in rows[done:]:
            if row["seed"] != seed:
                seed = row["seed"]
                search = begin(int(seed), args.batch)
                trial = Trial.of(search, [next(search.task.valid) for _ in range(search.selection.batches)])
            cell, cost = winner(search, trial, parse(row["cell"]), args.steps)
            tests = [round(known.query(cell)[name]["test"], 2) for name in ("cifar10", "cifar100", "imagenet16")]
            writer.writerow([row["estimator"], seed, as_text(cell), *tests, round(cost)])
            file.flush()
            print(row["estimator"], seed, *tests, flush=True)


if __name__ == "__main__":
    main()
