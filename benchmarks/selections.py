"""Other selections on supernets whose searches are done, by their last checkpoints; cells are looked up in the table.

    IDARTS_TABLES=… IDARTS_DATA=… python benchmarks/selections.py RUN … --out FILE.csv
    … python benchmarks/selections.py RUN … --rules trials --samples 8 --candidates draws --out FILE.csv

Half a minute a run with the rules of the first line. Stop it at any time: it continues with the next row. The runs stay
as they are.
"""

import argparse
import csv
from itertools import product
from pathlib import Path
from typing import Any

import torch

from equal_cost import named
from idarts.arch import Architecture, as_text
from idarts.engine import checkpoint
from idarts.engine.folder import read_config
from idarts.engine.settings import change
from idarts.searching import RunConfig, Search, task_of, upgrade
from idarts.tables import find

RULES = ("argmax", "perturbation", "best-of")
OPTIONS = {"samples": int, "steps": int, "candidates": str}  # settings of the group `selection`


def standing(run: Path, selection: dict[str, Any]) -> Search:
    """A search where it ended, with another selection."""
    settings: dict[str, Any] = {name: value for name, value in upgrade(read_config(run)).items() if name != "choices"}
    settings["selection"] |= selection
    search = task_of(change(RunConfig(), settings))[0].search()
    found = checkpoint.latest(run / "checkpoints")
    assert found is not None, f"{run} has no checkpoint"
    search.load_state_dict(found[1])
    return search


def accuracies(space: str, architecture: Architecture) -> dict[str, float]:
    """What the space's table says of each data set: the test accuracy or, without one, the validation accuracy."""
    table = find(space)
    assert table is not None, f"the space {space} has no table"
    known = [(data, values) for data, values in table.query(architecture).items() if isinstance(values, dict)]
    parts = [(data, "test" if "test" in values else "valid", values) for data, values in known]
    return {f"{data}_{part}": round(values[part], 2) for data, part, values in parts}


def row(run: Path, selection: dict[str, Any]) -> dict[str, Any]:
    """What a selection makes of a search, and what it costs."""
    search = standing(run, selection)
    before, cell = search.spent.gradient_evaluations, search.select()
    cost = round(search.spent.gradient_evaluations - before)
    own = {"run": run.name, "estimator": named(run, read_config(run))["estimator"], "seed": search.settings.seed}
    found = {"rule": selection["rule"], "cell": as_text(cell), **accuracies(cell.space, cell)}
    return own | found | {"gradient_evaluations": cost}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--rules", nargs="+", default=RULES, help=f"(default: {' '.join(RULES)})")
    for name, kind in OPTIONS.items():
        parser.add_argument(f"--{name}", type=kind, help=f"selection.{name} (default: that of the run)")
    args = parser.parse_args()
    torch.set_num_threads(1)
    options = {name: getattr(args, name) for name in OPTIONS if getattr(args, name) is not None}
    done = max(0, len(args.out.read_text().splitlines()) - 1) if args.out.exists() else 0
    with args.out.open("a", newline="") as file:
        for place, (run, rule) in enumerate(product(args.runs, args.rules)):
            if place < done:
                continue
            found = row(run, {"rule": rule, **options})
            writer = csv.DictWriter(file, list(found), lineterminator="\n")
            if place == 0:
                writer.writeheader()
            writer.writerow(found)
            file.flush()
            print(*(value for name, value in found.items() if name != "cell"))


if __name__ == "__main__":
    main()
