"""A long search on digits: does its memory, or its number of open files, grow?

Run `python benchmarks/soak.py`. A tiny supernet goes through several thousand weight steps in a separate run folder,
with its log, its event files and its checkpoints. After a warm-up, in which allocators and caches find their size,
resident memory must stay within 2 per cent, and the number of open files must stay what it is.
"""

import argparse
import json
import os
import time
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import torch

from idarts.engine.settings import change
from idarts.searching import PRESETS, Round, RunConfig, Search, run

TOLERANCE = 2.0  # per cent
WARMUP = 0.2  # share of the rounds
PARTS = 10  # of what comes after it: single readings jump about


def resident() -> int:
    """Bytes of this process in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def soak(rounds: int) -> dict[str, Any]:
    """Readings after every round, of memory and of files."""
    tiny = {"rounds": rounds, "channels": 4, "batch": 8, "depth": 1, "inner_steps": 12, "checkpoint_rounds": 50}
    settings: RunConfig = change(change(RunConfig(), PRESETS["smoke"]), tiny)
    memory: list[int] = []
    files: list[int] = []

    def watch(found: Round, search: Search) -> None:
        memory.append(resident())
        files.append(open_files())
        if found.number % max(1, rounds // 20) == 0:
            print(f"round {found.number}: {memory[-1] / 2**20:.1f} MiB, {files[-1]} files", flush=True)

    started = time.monotonic()
    with TemporaryDirectory() as folder:
        run(settings, Path(folder) / "run", on_round=watch)
    after = memory[int(WARMUP * len(memory)) :]
    parts = [median(after[at * len(after) // PARTS : (at + 1) * len(after) // PARTS]) for at in range(PARTS)]
    steps = rounds * settings.inner_steps
    return {
        "weight_steps": steps,
        "rounds": rounds,
        "seconds": round(time.monotonic() - started, 1),
        "mebibytes": [round(part / 2**20, 2) for part in parts],
        "growth_percent": round(100 * (max(parts) / parts[0] - 1), 3),
        "files": [min(files[int(WARMUP * len(files)) :]), max(files)],
        "torch": torch.__version__,
        "threads": torch.get_num_threads(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=250, help="rounds of twelve weight steps and an α step")
    parser.add_argument("--json", type=Path, default=Path(__file__).parent / "results" / "soak.json")
    args = parser.parse_args()
    torch.set_num_threads(1)
    found = soak(args.rounds)
    flat = found["growth_percent"] <= TOLERANCE
    print(f"{found['weight_steps']:,} weight steps in {found['seconds']:.0f} s")
    print(f"resident memory after the warm-up grows by {found['growth_percent']:.2f} % (≤ {TOLERANCE:g} %)")
    print(f"open files: {found['files'][0]} to {found['files'][1]}")
    args.json.parent.mkdir(exist_ok=True)
    args.json.write_text(json.dumps(found, indent=1) + "\n")
    if not flat or found["files"][0] != found["files"][1]:
        raise SystemExit("it is not flat")


if __name__ == "__main__":
    main()
