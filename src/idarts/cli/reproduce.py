"""`idarts reproduce`: the paper's tables and figures as commands."""

import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from types import FrameType

from jsonargparse import ArgumentParser, Namespace

from idarts.arch.files import write_whole
from idarts.cli.progress import Progress
from idarts.errors import IdartsError, InputError
from idarts.reproduce import EXPERIMENTS, Request, reproduce
from idarts.reproduce.frame import PRESETS
from idarts.reproduce.table_1 import METHODS
from idarts.search.run import RunConfig
from idarts.search.run import run as run_search

_NO_SEARCH = "table-hypergradients"


def add_arguments(parser: ArgumentParser) -> None:
    """One sub-command for each experiment."""
    experiments = parser.add_subcommands(dest="experiment", required=True)
    for name, experiment in EXPERIMENTS.items():
        subparser = ArgumentParser(description=experiment.summary, exit_on_error=False, allow_abbrev=False)
        experiments.add_subcommand(name, subparser, help=experiment.summary)
        _add_options(subparser, name)


def _add_options(parser: ArgumentParser, name: str) -> None:
    parser.add_argument("--preset", type=str, default="cpu", help=f"size: {', '.join(PRESETS)} (default: cpu)")
    seeds = "how many seeds (3: seeds 1, 2 and 3), or a list of them (4,5,6; one alone: 4,) (default: 3)"
    parser.add_argument("--seeds", type=str, default="3", help=seeds)
    parser.add_argument("--out", type=str, help=f"folder of the results (default: reproduce/{name}-PRESET)")
    if name == _NO_SEARCH:
        return
    parser.add_argument("--tables", type=str, help="folder of the benchmark tables (default: IDARTS_TABLES, the cache)")
    parser.add_argument("--jobs", type=int, default=1, help="searches at a time, each in a process of its own")
    if name == "table-1":
        parser.add_argument("--methods", type=str, help=f"rows, separated by commas (default: {','.join(METHODS)})")
        equal = "end every search after as many gradient evaluations as iDARTS takes"
        parser.add_argument("--equal_cost", action="store_true", help=equal)


def run(args: Namespace) -> None:
    """Run what is left of an experiment, and say where its page is, or how to go on."""
    name, options = args.experiment, args[args.experiment]
    jobs = options.get("jobs", 1)
    if jobs < 1:
        raise InputError(f"--jobs is {jobs}, expected at least 1")
    tables, methods = options.get("tables"), options.get("methods")
    out = Path(options.out or f"reproduce/{name}-{options.preset}")
    processes = _Processes(jobs)
    request = Request(
        out=out,
        preset=options.preset,
        seeds=seeds(options.seeds),
        tables=Path(tables) if tables else None,
        methods=tuple(methods.split(",")) if methods else None,
        equal_cost=options.get("equal_cost", False),
        search=_search_here if jobs == 1 else processes.search,
        parallel=jobs,
    )
    try:
        with processes.stopped_with_us():
            page = reproduce(name, request, lambda line: print(line, file=sys.stderr, flush=True))
    except KeyboardInterrupt:
        print(f"stopped; what is finished is in {out}, and the same command goes on from here:")
        print(f"  {_command(name, options)}")
        raise
    print(page)


def seeds(text: str) -> tuple[int, ...]:
    """The seeds that a person asked for.

    >>> seeds("3"), seeds("4,7"), seeds("4,")
    ((1, 2, 3), (4, 7), (4,))
    """
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts or not all(part.isascii() and part.isdigit() for part in parts):
        raise InputError(f"--seeds is {text!r}, expected a number of seeds such as 3, or a list such as 1,2,3")
    if "," in text:
        return tuple(map(int, parts))
    return tuple(range(1, int(text) + 1))


def _command(name: str, options: Namespace) -> str:
    """The command as it was typed, but for defaults."""
    words = ["idarts", "reproduce", name]
    for option, value in vars(options).items():
        if value is True:
            words.append(f"--{option.replace('_', '-')}")
        elif value not in (None, False, 1):
            words += [f"--{option.replace('_', '-')}", str(value)]
    return shlex.join(words)


def _search_here(settings: RunConfig, folder: Path, resume: bool) -> None:
    with Progress() as progress:
        run_search(settings, folder, resume=resume, watch=progress, tell=progress.tell)


class _Processes:
    """Searches in processes of their own, which share the cores, and which end with us."""

    def __init__(self, number: int) -> None:
        self.threads = max(1, (os.cpu_count() or 1) // number)
        self.running: list[subprocess.Popen[bytes]] = []

    def search(self, settings: RunConfig, folder: Path, resume: bool) -> None:
        config = folder.parent / f"{folder.name}.json"
        folder.parent.mkdir(parents=True, exist_ok=True)
        write_whole(config, json.dumps(asdict(settings)).encode())
        command = [sys.executable, "-m", "idarts", "search", "--config", str(config), "--out", str(folder)]
        environment = {**os.environ, "OMP_NUM_THREADS": str(self.threads)}
        with (folder.parent / f"{folder.name}.log").open("ab") as log:
            process = subprocess.Popen(
                [*command, *(["--resume"] if resume else [])], env=environment, stdout=log, stderr=log
            )
            self.running.append(process)
            code = process.wait()
        if code:
            raise IdartsError(f"the search ended with code {code}; {log.name} says why")

    @contextmanager
    def stopped_with_us(self) -> Iterator[None]:
        """A signal to us is one to them: each writes a checkpoint and ends."""

        def stop(_: int, __: FrameType | None) -> None:
            for process in self.running:
                if process.poll() is None:
                    process.send_signal(signal.SIGINT)
            raise KeyboardInterrupt

        before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
