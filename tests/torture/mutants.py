"""Mutation testing: small faults in the source, one at a time; each should make a test fail.

`make mutants` draws a seeded sample and runs, for each mutant, the tests that a table names for its file. An own
script, because a mutant should cost seconds: importing torch and pytest takes as long as many of these tests, so one
warm process forks a child for each mutant. cosmic-ray starts a cold process for each; mutmut forks, but draws no
sample, and first runs the whole suite to learn which tests belong to a function.
"""

import argparse
import compileall
import contextlib
import hashlib
import importlib
import json
import os
import shlex
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NoReturn

from mutations import Mutation, mutations
from tests_of_files import TABLE, Table

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = "src/idarts"
WARM = ("torch", "pytest", "hypothesis", "numpy", "pydantic", "safetensors.torch", "sklearn.datasets")
# A warm pytest cannot rewrite the assertions of plugins that are imported already, which does not matter here.
QUIET = ("-W", "ignore::pytest.PytestAssertRewriteWarning", "-p", "no:xdist", "-p", "no:cov", "-p", "no:anyio")
BAR = 0.85  # of the mutants must be killed
Planned = tuple[str, str, Mutation]  # with its area and its tests


def sample(count: int, seed: int, root: Path, table: Table, only: str = "") -> list[Planned]:
    """So many mutations, as many of each area; a larger sample holds the smaller one."""
    areas: list[list[Planned]] = []
    for area, rows in table.items():
        tests = {file: names for pattern, names in rows.items() for file in sorted((root / PACKAGE).glob(pattern))}
        files = {file: str(file.relative_to(root)) for file in tests if only in f"{area} {file}"}
        every = [(area, tests[file], one) for file in files for one in mutations(files[file], file.read_bytes())]
        areas.append(sorted(every, key=lambda planned: hashlib.sha256(f"{seed} {planned[2].name}".encode()).digest()))
    turns = [one for place in range(max(map(len, areas))) for area in areas for one in area[place : place + 1]]
    return turns[:count]


def run(here: Path, tests: str, limit: float) -> tuple[str, float]:
    """Run tests in a copy of the repository, in a child of this process: the outcome, and the seconds that it took."""
    started, child = time.monotonic(), os.fork()
    if not child:
        _child(here, tests)
    done = status = 0
    while not done and time.monotonic() < started + limit:
        time.sleep(0.02)
        done, status = os.waitpid(child, os.WNOHANG)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)  # and all that the tests have started
    if not done:
        os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    found = "timeout" if not done else {0: "survived", 5: "no tests"}.get(code, "killed")
    return found, round(time.monotonic() - started, 1)


def _arguments(tests: str) -> list[str]:
    """As pytest takes them.

    >>> _arguments("engine/test_sgd searching/test_axes::TestTrials -k 'not slow'")
    ['tests/engine/test_sgd.py', 'tests/searching/test_axes.py::TestTrials', '-k', 'not slow']
    """
    words = [word.partition("::") for word in shlex.split(tests)]
    return ["".join(("tests/" + file + ".py", *rest) if "/test_" in file else (file,)) for file, *rest in words]


def _child(here: Path, tests: str) -> NoReturn:
    code = 1
    try:
        os.setsid()
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        output = os.open(here / "output", os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.chdir(here)
        sys.path.insert(0, str(here / "src"))
        sys.dont_write_bytecode = True  # told apart by time and size, that of one mutant passes for that of another
        os.environ |= {"PYTHONPATH": str(here / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
        code = importlib.import_module("pytest").main(
            ["-x", "-q", "-p", "no:cacheprovider", "--hypothesis-seed=0", *QUIET, *_arguments(tests)]
        )
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def work(todo: list[Planned], root: Path, out: Path) -> None:
    """Try mutants one after the other in a copy of the repository; one line of JSON for each."""
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        for name in ("src", "tests"):
            shutil.copytree(root / name, here / name, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(root / "pyproject.toml", here)
        compileall.compile_dir(here / "src", quiet=1)

        @cache
        def unchanged(tests: str) -> tuple[str, float]:
            found, seconds = run(here, tests, 1200.0)
            if found != "survived" and not (found == "no tests" and tests.startswith(PACKAGE)):
                raise SystemExit(f"{tests}: does not pass without any mutant\n{(here / 'output').read_text()[-2000:]}")
            return found, seconds

        for area, tests, one in todo:
            doctests = b">>>" in (here / one.file).read_bytes()
            own = one.file if doctests and unchanged(one.file)[0] == "survived" else ""
            limit = 20 + 3 * unchanged(tests)[1]
            source = (here / one.file).read_bytes()
            (here / one.file).write_bytes(source[: one.start] + one.new.encode() + source[one.end :])
            found, seconds = run(here, f"{own} {tests}", limit)
            (here / one.file).write_bytes(source)
            lines = [
                line for line in (here / "output").read_text().splitlines() if line.startswith(("FAILED", "ERROR"))
            ]
            record = {name: getattr(one, name) for name in ("name", "file", "line", "kind", "before", "after")}
            record |= {"area": area, "outcome": found, "seconds": seconds, "by": lines[0] if lines else None}
            with out.open("a") as results:
                results.write(json.dumps(record, ensure_ascii=False) + "\n")


def known(out: Path) -> dict[str, dict[str, Any]]:
    """The last record of each mutant."""
    lines = out.read_text().splitlines() if out.exists() else []
    return {record["name"]: record for record in map(json.loads, lines)}


def report(records: list[dict[str, Any]]) -> float:
    """Print a table and the survivors; the share that was killed."""
    for area in dict.fromkeys(record["area"] for record in records):
        counts = Counter(record["outcome"] for record in records if record["area"] == area)
        print(
            f"{area:12} {counts.total():4} mutants {counts['killed']:4} killed {counts['timeout']:3} timeouts", end=" "
        )
        print(f"{counts['survived']:3} survived")
    survivors = [record for record in records if record["outcome"] == "survived"]
    for one in survivors:
        print(f"\n{one['file']}:{one['line']} ({one['kind']})\n  - {one['before']}\n  + {one['after']}")
    share = 1 - len(survivors) / max(len(records), 1)
    print(f"\n{len(records) - len(survivors)} of {len(records)} killed: {share:.1%}")
    return share


def main(arguments: list[str], root: Path = ROOT, table: Table = TABLE) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=18)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--only", default="", help="a part of the name of an area or a file")
    parser.add_argument("--again", action="store_true", help="try survivors again")
    parser.add_argument(
        "--out", type=Path, default=Path("mutants.jsonl"), help="results; what is in it is not run again"
    )
    given = parser.parse_args(arguments)
    chosen, before = sample(given.count, given.seed, root, table, given.only), known(given.out)
    done = {name for name, record in before.items() if not (given.again and record["outcome"] == "survived")}
    todo = [one for one in chosen if one[2].name not in done]
    for name in WARM:
        importlib.import_module(name)
    processes = get_context("fork")
    workers = [
        processes.Process(target=work, args=(todo[place :: given.processes], root, given.out))
        for place in range(given.processes)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    after = known(given.out)
    share = report([after[one.name] for _, _, one in chosen if one.name in after])
    return 1 if share < BAR or any(worker.exitcode for worker in workers) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
