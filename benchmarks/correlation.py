"""Does a short, small training rank cells as the table does? Ten cells of NAS-Bench-201, Spearman's correlation.

    IDARTS_TABLES=… IDARTS_DATA=… python benchmarks/correlation.py --json benchmarks/results/correlation.json

The protocol is NAS-Bench-201's of 12 epochs (preset `nas-bench-201-12`), reduced: fewer and smaller images, fewer cells
and channels, smaller batches.
"""

import argparse
import json
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from scipy.stats import spearmanr

from idarts.data import ImageData, load, split
from idarts.tables import Table, table
from idarts.training import train

REDUCED = {"depth": 1, "channels": 8, "batch": 64, "crop": 2}
IMAGE, IMAGES = 16, 5000


def spread(found: Table, cells: int) -> list[int]:
    """Indices at even distances in the order of CIFAR-10's test accuracy, from the worst to the best."""
    order = sorted(range(15625), key=found.accuracy)
    return [order[round(i * (len(order) - 1) / (cells - 1))] for i in range(cells)]


def some(data: ImageData, images: int) -> ImageData:
    """The first of two stratified parts in place of all training images."""
    return replace(data, train=split(data.train, (images, 1), seed=0)[0])


def main() -> None:
    """Train, look up, compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", type=int, default=10)
    parser.add_argument("--images", type=int, default=IMAGES)
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    torch.set_num_threads(1)
    found, data = table("nas-bench-201"), some(load("cifar10", image=IMAGE), args.images)
    reduced: dict[str, Any] = {**REDUCED, "epochs": args.epochs, "evaluate_epochs": args.epochs}
    rows = []
    for index in spread(found, args.cells):
        cell = f"nas-bench-201:{index}"
        with TemporaryDirectory() as folder:
            result = train(cell, data, preset="nas-bench-201-12", out=Path(folder, "run"), **reduced)
        rows.append({"index": index, "ours": 100 * (result.accuracy or 0.0), "table": found.accuracy(cell)})
        print(f"cell {index:>5}: ours {rows[-1]['ours']:.2f} %, table {rows[-1]['table']:.2f} %", flush=True)
    correlation = float(spearmanr([row["ours"] for row in rows], [row["table"] for row in rows]).statistic)
    print(f"Spearman's correlation: {correlation:.3f}")
    if args.json:
        facts = {"reduced": {**reduced, "image": IMAGE, "images": args.images}, "cells": rows, "spearman": correlation}
        args.json.write_text(json.dumps(facts, indent=1) + "\n")


if __name__ == "__main__":
    main()
