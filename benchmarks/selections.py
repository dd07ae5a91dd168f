"""Other selections on supernets whose searches are done, by their last checkpoints; cells are looked up in the table.

Run `python benchmarks/selections.py RUN … --out FILE.csv`, with IDARTS_DATA and IDARTS_TABLES set; half a minute a run.
The runs stay as they are.
"""

import argparse
import csv
from pathlib import Path
from typing import Any

from idarts.arch import as_text
from idarts.engine import checkpoint
from idarts.engine.folder import read_config
from idarts.engine.settings import change
from idarts.searching import RunConfig, Search, task_of, upgrade
from idarts.tables import table

COLUMNS = ("run", "seed", "rule", "cell", "cifar10_test", "cifar100_test", "imagenet16_test")
RULES = ("argmax", "perturbation", "best-of")


def standing(run: Path, rule: str) -> Search:
    """A search where it ended, with another rule to select by."""
    settings: dict[str, Any] = {name: value for name, value in upgrade(read_config(run)).items() if name != "choices"}
    settings["selection"] |= {"rule": rule}
    search = task_of(change(RunConfig(), settings))[0].search()
    found = checkpoint.latest(run / "checkpoints")
    assert found is not None, f"{run} has no checkpoint"
    search.load_state_dict(found[1])
    return search


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    known = table("nas-bench-201")
    with args.out.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for run in args.runs:
            for rule in RULES:
                search = standing(run, rule)
                cell = search.select()
                tests = [round(known.query(cell)[name]["test"], 2) for name in ("cifar10", "cifar100", "imagenet16")]
                writer.writerow([run.name, search.settings.seed, rule, as_text(cell), *tests])
                file.flush()
                print(run.name, rule, *tests)


if __name__ == "__main__":
    main()
