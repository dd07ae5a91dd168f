"""`idarts sweep`: many searches from one file."""

import sys
from argparse import Namespace
from pathlib import Path

from idarts.cli.console import say
from idarts.cli.jobs import add_job_options, explained_stop, job_options, tell
from idarts.cli.parser import Parser, RawHelp, add_option
from idarts.errors import command
from idarts.experiments import Request, read_plan, run_experiment
from idarts.experiments.runner import LOGS
from idarts.experiments.store import RESULTS
from idarts.experiments.sweep import EXAMPLE, MOST_JOBS, Plan, TooManyJobsError

_ABOUT = f"""\
FILE is YAML; every combination of spaces, methods, grid and seeds is one search:

{"".join(f"  {line}" for line in EXAMPLE.splitlines(keepends=True))}
Further keys: `out`, the folder, and `slurm`, parameters for submitit such as {{timeout_min: 600}}.
The settings of a method override those of the preset, and the settings in the file override both.

Each job has a folder OUT/NAME, a log OUT/{LOGS}/NAME.log, and at the end a row in OUT/{RESULTS}.
The same command continues a sweep that was stopped or killed, and tries failed jobs again.
"""


def add_arguments(parser: Parser) -> None:
    """The file, where to write, and where the jobs run."""
    parser.formatter_class = RawHelp
    parser.epilog = _ABOUT
    parser.add_argument("file", metavar="FILE", help="the sweep, as below")
    most = f"largest number of searches that FILE may plan (default: {MOST_JOBS})"
    add_option(parser, "--max-jobs", type=int, default=MOST_JOBS, metavar="N", help=most)
    parser.add_argument("--out", help="folder of the sweep (default: the file's `out`, else sweeps/FILE)")
    add_job_options(parser, "local", "one for each core, or one on a GPU; with Ray or Slurm all")


def _planned(file: Path, most: int) -> Plan:
    """The plan; one that is very large is asked about, where a person can answer."""
    try:
        return read_plan(file, most, tell)
    except TooManyJobsError as error:
        if not sys.stdin.isatty() or not sys.stderr.isatty():
            raise
        say(f"{error}. Plan them now? [y/N] ", file=sys.stderr, end="", flush=True)
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            raise
    return read_plan(file, sys.maxsize, tell)


def run(args: Namespace) -> None:
    """Run the jobs of a sweep that are not done, and say where its table is, or how to continue."""
    file = Path(args.file)
    plan = _planned(file, args.max_jobs)
    out = Path(args.out) if args.out else plan.out or Path("sweeps") / file.stem
    engine, options = job_options(args, "local", out, plan.slurm)
    with explained_stop(out, ["sweep", args.file], args, {"out": None, "max_jobs": MOST_JOBS}):
        page = run_experiment(plan.experiment, Request(out), engine, **options)
    say(f"table: {out}/{RESULTS}")
    if page.exists():
        say(f"page:  {page}")
    say(f"look:  {command('compare', out)}")
