"""`idarts reproduce`: the paper's tables and figures as commands."""

import shlex
import sys
from argparse import Namespace
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

from idarts.cli.parser import Parser, add_action, add_option
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


def add_arguments(parser: Parser) -> None:
    """One action for each experiment."""
    experiments = parser.add_subparsers(metavar="EXPERIMENT", required=True)
    for name, experiment in EXPERIMENTS.items():
        _add_options(add_action(experiments, name, experiment.summary, partial(_reproduce, name)), name)


def _add_options(parser: Parser, name: str) -> None:
    parser.set_defaults(jobs=1, tables=None, methods=None, equal_cost=False)
    parser.add_argument("--preset", default="cpu", metavar="NAME", help=f"size: {', '.join(PRESETS)} (default: cpu)")
    numbers = "number of seeds (3: seeds 1, 2 and 3), or a list of them (4,5,6; one alone: 4,) (default: 3)"
    parser.add_argument("--seeds", default="3", metavar="SEEDS", help=numbers)
    parser.add_argument("--out", metavar="FOLDER", help=f"folder of the results (default: reproduce/{name}-PRESET)")
    if name == _NO_SEARCH:
        return
    tables = "folder of the benchmark tables (default: IDARTS_TABLES, then the cache)"
    parser.add_argument("--tables", metavar="DIR", help=tables)
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="searches at a time, one process each")
    if name == "table-1":
        rows = f"rows, separated by commas (default: {','.join(METHODS)})"
        parser.add_argument("--methods", metavar="NAMES", help=rows)
        equal = "end the rounds of every search after as many gradient evaluations as those of iDARTS take"
        add_option(parser, "--equal-cost", action="store_true", help=equal)


def run(args: Namespace) -> None:
    """Run what is left of an experiment, then print where its page is, or how to resume."""
    args.run_action(args)


def _reproduce(name: str, args: Namespace) -> None:
    if args.jobs < 1:
        raise InputError(f"--jobs is {args.jobs}, expected at least 1")
    out = Path(args.out or f"reproduce/{name}-{args.preset}")
    request = Request(
        out=out,
        preset=args.preset,
        seeds=seeds(args.seeds),
        tables=Path(args.tables) if args.tables else None,
        methods=tuple(row.strip() for row in args.methods.split(",")) if args.methods else None,
        equal_cost=args.equal_cost,
        search=_search_here,
        parallel=args.jobs,
    )
    try:
        with terminated_as_interrupted(), local() as call:
            if args.jobs > 1:
                request = replace(request, search=partial(_search_there, call, threads_each(args.jobs)))
            page = reproduce(name, request, lambda line: print(line, file=sys.stderr, flush=True))
    except KeyboardInterrupt:
        print(f"stopped; finished jobs are in {out}, and the same command resumes from there:")
        print(f"  {_command(name, args)}")
        raise
    print(page)


def seeds(text: str) -> tuple[int, ...]:
    """The seeds that a text stands for.

    >>> seeds("3"), seeds("4,7"), seeds("4,")
    ((1, 2, 3), (4, 7), (4,))
    """
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts or not all(part.isascii() and part.isdigit() for part in parts):
        raise InputError(f"--seeds is {text!r}, expected a number of seeds such as 3, or a list such as 1,2,3")
    if "," in text:
        return tuple(map(int, parts))
    return tuple(range(1, int(text) + 1))


def _command(name: str, args: Namespace) -> str:
    """The command as it was typed, without defaults."""
    words = ["idarts", "reproduce", name, "--preset", args.preset, "--seeds", args.seeds]
    for option, value in {"out": args.out, "tables": args.tables, "methods": args.methods}.items():
        words += [f"--{option}", value] if value is not None else []
    words += ["--jobs", str(args.jobs)] if args.jobs > 1 else []
    return shlex.join([*words, *(["--equal-cost"] if args.equal_cost else [])])


def _search_here(settings: RunConfig, folder: Path, resume: bool) -> None:
    with Progress() as progress:
        run_search(settings, folder, resume=resume, watch=progress, tell=progress.message)


def _search_there(call: Call, threads: int, settings: RunConfig, folder: Path, _: bool) -> None:
    """A search in another process, which resumes what is in the folder, and ends with this one."""
    log = folder.parent / f"{folder.name}.log"
    folder.parent.mkdir(parents=True, exist_ok=True)
    paths = {"folder": str(folder.resolve()), "log": str(log.resolve())}
    outcome: Outcome = call(work, {**paths, "settings": asdict(settings), "threads": threads})
    if outcome.failure:
        raise IdartsError(f"{outcome.failure}; see {log}")
