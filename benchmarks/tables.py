"""CPU time of table look-ups: the first query of a new process, and later ones. Fails above its limits.

python benchmarks/tables.py --tables FOLDER
"""

import argparse
import subprocess
import sys
import time

from idarts.arch import parse
from idarts.tables import table
from measure import fastest

CELLS = {"nas-bench-201": "nas-bench-201:1462", "nas-bench-101": "02e5a0247bbdcf2860b7e96f74961594"}
FIRST, LATER = 0.1, 0.001  # seconds
COLD = """
import sys, time
from idarts.tables import table
start = time.process_time()
table(sys.argv[1], sys.argv[2]).query(sys.argv[3])
print(time.process_time() - start)
"""
WARM = 100  # queries in one measurement


def cold(name: str, folder: str, cell: str) -> float:
    """Seconds of the first query, without the imports; the least of five processes."""
    command = [sys.executable, "-c", COLD, name, folder, cell]
    return min(float(subprocess.run(command, check=True, capture_output=True).stdout) for _ in range(5))


def warm(name: str, folder: str, cell: str) -> float:
    """Seconds of a later query."""
    opened, architecture = table(name, folder), parse(cell) if ":" in cell else cell

    def queries() -> None:
        for _ in range(WARM):
            opened.query(architecture)

    queries()
    return fastest({name: queries}, 5, lambda _: None, time.process_time)[name] / WARM


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", required=True, help="folder of the tables")
    folder = parser.parse_args().tables
    slow = False
    for name, cell in CELLS.items():
        later, first = warm(name, folder, cell), cold(name, folder, cell)  # in this order: a table is converted once
        print(f"{name}: first query {1e3 * first:.1f} ms (limit {1e3 * FIRST:.0f}), ", end="")
        print(f"later {1e6 * later:.0f} µs (limit {1e6 * LATER:.0f})")
        slow |= first > FIRST or later > LATER
    return int(slow)


if __name__ == "__main__":
    raise SystemExit(main())
