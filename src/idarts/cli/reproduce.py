"""`idarts reproduce`: the paper's tables and figures as commands."""

import shlex
import sys
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

from jsonargparse import ArgumentParser, Namespace

from idarts.cli.progress import Progress
from idarts.errors import IdartsError, InputError
from idarts.experiments.engines import Call, local
from idarts.experiments.frame import PRESETS
from idarts.experiments.job import Outcome, work
from idarts.experiments.paper import EXPERIMENTS, Request, reproduce
from idarts.experiments.paper.table_1 import METHODS
from idarts.experiments.sweep import terminated_as_interrupted, threads_each
from idarts.searching.run import RunConfig
from idarts.searching.run import run as run_search

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
        equal = "end the rounds of every search after as many gradient evaluations as those of iDARTS take"
        parser.add_argument("--equal_cost", action="store_true", help=equal)


def run(args: Namespace) -> None:
    """Run what is left of an experiment, and say where its page is, or how to go on."""
    name, options = args.experiment, args[args.experiment]
    jobs = options.get("jobs", 1)
    if jobs < 1:
        raise InputError(f"--jobs is {jobs}, expected at least 1")
    tables, methods = options.get("tables"), options.get("methods")
    out = Path(options.out or f"reproduce/{name}-{options.preset}")
    request = Request(
        out=out,
        preset=options.preset,
        seeds=seeds(options.seeds),
        tables=Path(tables) if tables else None,
        methods=tuple(name.strip() for name in methods.split(",")) if methods else None,
        equal_cost=options.get("equal_cost", False),
        search=_search_here,
        parallel=jobs,
    )
    try:
        with terminated_as_interrupted(), local() as call:
            if jobs > 1:
                request = replace(request, search=partial(_search_there, call, threads_each(jobs)))
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
        run_search(settings, folder, resume=resume, on_round=progress, on_message=progress.tell)


def _search_there(call: Call, threads: int, settings: RunConfig, folder: Path, _: bool) -> None:
    """A search in a process of its own, which goes on with what it finds in the folder, and ends with us."""
    log = folder.parent / f"{folder.name}.log"
    folder.parent.mkdir(parents=True, exist_ok=True)
    paths = {"folder": str(folder.resolve()), "log": str(log.resolve())}
    outcome: Outcome = call(work, {**paths, "settings": asdict(settings), "threads": threads})
    if outcome.failure:
        raise IdartsError(f"{outcome.failure}; {log} says more")
