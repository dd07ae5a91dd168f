"""`idarts sweep`: many searches from one file."""

import shlex
import sys
from argparse import Namespace, RawDescriptionHelpFormatter
from pathlib import Path

from idarts.cli.parser import Parser, one_of
from idarts.errors import IdartsError, InputError
from idarts.experiments.engines import NAMES, Engine, local, on_ray, on_slurm
from idarts.experiments.plan import EXAMPLE, Plan, read_plan
from idarts.experiments.results import RESULTS
from idarts.experiments.sweep import LOGS, RETRIES, slots, sweep, threads_each

_ABOUT = f"""\
FILE is YAML; every combination of spaces, methods, grid and seeds is one search:

{"".join(f"  {line}" for line in EXAMPLE.splitlines(keepends=True))}
More keys: `out`, the folder, and `slurm`, parameters for submitit such as {{timeout_min: 600}}.
A method's settings stand above the preset's, and those of the file above both.

Each job has a folder OUT/NAME, a log OUT/{LOGS}/NAME.log, and at the end a row in OUT/{RESULTS}.
The same command resumes a sweep that was stopped or killed, and tries failed jobs again.
"""


def add_arguments(parser: Parser) -> None:
    """The file, where to write, and where the jobs run."""
    parser.formatter_class = RawDescriptionHelpFormatter
    parser.epilog = _ABOUT
    parser.add_argument("file", metavar="FILE", help="the sweep, as below")
    parser.add_argument("--out", help="folder of the sweep (default: the file's `out`, else sweeps/FILE)")
    parser.add_argument(
        "--engine", type=one_of("--engine", NAMES), default="local", help=f"where jobs run: {', '.join(NAMES)}"
    )
    parser.add_argument("--address", help="Ray's cluster: host:port, auto, or local to start one here")
    parser.add_argument(
        "--jobs", type=int, help="jobs at a time (default: one per core, or one on a GPU; with Ray or Slurm all)"
    )
    threads = "threads of a job (default: its share of the cores, at most OMP_NUM_THREADS; with Ray or Slurm 1)"
    parser.add_argument("--threads", type=int, help=threads)
    parser.add_argument("--gpus", type=int, default=0, help="GPUs of a job, with Ray or Slurm")
    parser.add_argument("--retries", type=int, default=RETRIES, help="how often to retry a job that died")


def run(args: Namespace) -> None:
    """Run what is left of a sweep, then print where its table is, or how to resume."""
    _require_sensible(args)
    file = Path(args.file)
    plan = read_plan(file)
    out = Path(args.out) if args.out else plan.out or Path("sweeps") / file.stem
    jobs = args.jobs or min(len(plan.jobs), slots() if args.engine == "local" else 256)
    threads = args.threads or (threads_each(jobs) if args.engine == "local" else 1)
    try:
        failed = sweep(
            plan,
            out,
            _engine(args, plan, out, threads),
            jobs=jobs,
            threads=threads,
            retries=args.retries,
            tell=_print_line,
        )
    except KeyboardInterrupt:
        print(f"stopped; finished jobs are in {out}, and the same command resumes from there:")
        print(f"  {_command(args)}")
        raise
    if failed:
        name, why = next(iter(failed.items()))
        raise IdartsError(
            f"{len(failed)} of {len(plan.jobs)} jobs failed, first {name} ({why}); see {out}/{LOGS}, "
            "and the same command tries them again"
        )
    print(f"table:   {out}/{RESULTS}")
    print(f"compare: {shlex.join(['idarts', 'compare', str(out)])}")


def _require_sensible(args: Namespace) -> None:
    if (args.engine == "ray") != (args.address is not None):
        raise InputError("--engine ray needs --address, and no other engine has one; --address local starts Ray here")
    for name, least in (("jobs", 1), ("threads", 1), ("retries", 0), ("gpus", 0)):
        value = getattr(args, name)
        if value is not None and value < least:
            raise InputError(f"--{name} is {value}, expected at least {least}")
    if args.gpus and args.engine == "local":
        raise InputError("--gpus is for Ray and Slurm; here, name a device in the file's settings, such as cuda:1")


def _engine(args: Namespace, plan: Plan, out: Path, threads: int) -> Engine:
    if args.engine == "ray":
        return on_ray(args.address, threads, args.gpus)
    if args.engine == "slurm":
        return on_slurm(out / "slurm", threads, args.gpus, plan.slurm)
    return local()


def _command(args: Namespace) -> str:
    """The command as it was typed, without defaults."""
    words = ["idarts", "sweep", args.file]
    usual = {"engine": "local", "gpus": 0, "retries": RETRIES}
    for option in ("out", "engine", "address", "jobs", "threads", "gpus", "retries"):
        value = getattr(args, option)
        if value != usual.get(option):
            words += [f"--{option}", str(value)]
    return shlex.join(words)


def _print_line(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
