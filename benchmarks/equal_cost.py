"""The rows and the tests of the equal-cost experiments of docs/study.md.

    IDARTS_TABLES=… python benchmarks/equal_cost.py rows sweeps/equal_cost_darts docs/study/equal_cost_darts.csv
    python benchmarks/equal_cost.py test docs/study/equal_cost_darts.csv --column argmax
    python benchmarks/equal_cost.py along sweeps/collapse_long docs/study/collapse_long.csv

`rows` writes one row for each search of a sweep: the accuracy of the cell that α selects alone (`argmax`), with two
skip connections in its first cell (`two_skips`), and after the selection (`selected`). `test` compares the groups:
mean, spread, worst seed, and exact paired permutation tests with Holm's correction. `along` writes rows for some
rounds, and for each round in which a search has measured the curvature by α (`skips` are then those of all cells).
"""

import argparse
import csv
from collections import defaultdict
from collections.abc import Sequence
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import torch

from idarts.arch import Architecture, as_text, parse, space_of
from idarts.engine.folder import read_result, read_rounds
from idarts.experiments.statistics import holm, permutation
from idarts.searching import RunConfig, Search, task_of
from idarts.searching.selections.few_skips import FewSkips
from idarts.tables import find

COUNTS = ("skips", "pools", "rounds", "gradient_evaluations")
MEASURED = ("gradient_evaluations", "train_loss", "valid_loss", "entropy", "alpha_curvature", "skips")
ALONG = ("estimator", "space", "seed", "round", *MEASURED, "argmax", "two_skips", "pools", "noise", "none")
COLUMNS = ("estimator", "space", "seed", "argmax", "two_skips", "selected", *COUNTS, "argmax_cell", "selected_cell")


def accuracy(space: str, architecture: Architecture) -> float | None:
    """The accuracy on CIFAR-10 by the table of the space; None for a space without one."""
    table = find(space)
    if table is None:
        return None
    answer = table.query(architecture)
    values: dict[str, float] = answer.get("cifar10", answer)
    return round(values.get("test") or values["valid"], 3)


def operations(architecture: Architecture, kind: str) -> int:
    """How many operations of a family its first cell has."""
    cell = next(iter(architecture.cells.values()))
    ops = cell.ops or [edge.op for edge in cell.edges if edge.op]
    return sum(space_of(architecture).style.family(op) == kind for op in ops)


@cache
def small_search(space: str, none: bool) -> Search:
    """A search in the space, whose α stands for that of another search."""
    return task_of(RunConfig(space=space, none=none, depth=3, channels=8))[0].search()


def with_two_skips(result: dict[str, Any]) -> Architecture:
    """What the selection `few-skips` makes of the α that a search ended with."""
    search = small_search(result["space"], result["config"]["none"])
    with torch.no_grad():
        for name, alpha in search.net.alpha.items():
            alpha.copy_(torch.tensor(result["alpha"][name]))
    return FewSkips(most=2, fewest=2)(search).architecture


def named(folder: Path, result: dict[str, Any]) -> dict[str, Any]:
    """What a search of a sweep is known by."""
    space, method, seed = result["space"], result["method"], result["seed"]
    name = folder.name.removeprefix(f"{space}-{method}").removesuffix(f"-{seed}").removeprefix("-")
    return {"estimator": name or method, "space": space, "seed": seed}


def along(sweep: Path, rounds: Sequence[int]) -> list[dict[str, Any]]:
    """Rows for some rounds of each search of a sweep that has ended, and for those with a measured curvature."""
    found = []
    for folder in sorted(path.parent for path in sweep.glob("*/result.json")):
        result = read_result(folder)
        for entry in read_rounds(folder):
            if entry["number"] in rounds or entry.get("alpha_curvature") is not None:
                values = {name: round(entry[name], 4) for name in MEASURED if entry.get(name) is not None}
                found.append({**named(folder, result), "round": entry["number"], **values, **_cells(result, entry)})
    return found


def _cells(result: dict[str, Any], entry: dict[str, Any]) -> dict[str, Any]:
    """What α selects in a round that has logged it."""
    if "architecture" not in entry:
        return {}
    space, cell = result["space"], parse(entry["architecture"])
    counts = {name: entry["architecture"].count(name) for name in ("noise", "none")}
    skips = accuracy(space, with_two_skips({**result, "alpha": entry["alpha"]}))
    return {"argmax": accuracy(space, cell), "two_skips": skips, "pools": operations(cell, "pool"), **counts}


def rows(sweep: Path) -> list[dict[str, Any]]:
    """One row for each search of a sweep that has ended."""
    found = []
    for folder in sorted(path.parent for path in sweep.glob("*/result.json")):
        result = read_result(folder)
        space = result["space"]
        alone, selected = parse(result["argmax"]), parse(result["architecture"])
        counts = {f"{kind}s": operations(alone, kind) for kind in ("skip", "pool")} | {"rounds": result["rounds"]}
        found.append(
            {
                **named(folder, result),
                "argmax": accuracy(space, alone),
                "two_skips": accuracy(space, with_two_skips(result)),
                "selected": accuracy(space, selected),
                **counts,
                "gradient_evaluations": round(result["gradient_evaluations"]),
                "argmax_cell": as_text(alone),
                "selected_cell": as_text(selected),
            }
        )
    return found


def compare(groups: dict[str, dict[str, float]]) -> None:
    """Print mean, spread and worst seed of each group, and the tests of each pair over their common seeds."""
    for name, values in groups.items():
        numbers = np.array(list(values.values()))
        mean, spread, worst = numbers.mean(), numbers.std(ddof=1), numbers.min()
        print(f"{name:15} {mean:.2f} ± {spread:.2f}  worst {worst:.2f}  {len(numbers)} seeds")
    pairs = list(combinations(groups, 2))
    tests = []
    for first, second in pairs:
        seeds = sorted(groups[first].keys() & groups[second].keys())
        tests.append(np.array([groups[first][seed] - groups[second][seed] for seed in seeds]))
    found = [permutation(differences) for differences in tests]
    for (first, second), differences, p, corrected in zip(pairs, tests, found, holm(found), strict=True):
        print(f"{first} − {second}: {differences.mean():+.2f}, p = {p:.3f}, after Holm {corrected:.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    actions = parser.add_subparsers(dest="action", required=True)
    for name in ("rows", "along"):
        writing = actions.add_parser(name)
        writing.add_argument("sweep", type=Path)
        writing.add_argument("out", type=Path)
        if name == "along":
            writing.add_argument("--rounds", type=int, nargs="+", default=[])
    testing = actions.add_parser("test")
    testing.add_argument("file", type=Path)
    testing.add_argument("--column", default="argmax")
    testing.add_argument("--by", default="estimator")
    args = parser.parse_args()
    if args.action != "test":
        ended = args.action == "rows"
        found, columns = (rows(args.sweep), COLUMNS) if ended else (along(args.sweep, args.rounds), ALONG)
        with args.out.open("w", newline="") as file:
            writer = csv.DictWriter(file, columns, lineterminator="\n")
            writer.writeheader()
            writer.writerows(found)
        return
    groups: dict[str, dict[str, float]] = defaultdict(dict)
    with args.file.open(newline="") as file:
        for row in csv.DictReader(file):
            groups[row[args.by]][row["seed"]] = float(row[args.column])
    compare(groups)


if __name__ == "__main__":
    main()
