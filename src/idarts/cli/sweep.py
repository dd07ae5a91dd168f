"""`idarts sweep`: many searches from one file."""

import shlex
import sys
from argparse import RawDescriptionHelpFormatter
from pathlib import Path

from jsonargparse import ArgumentParser, Namespace

from idarts.errors import IdartsError, InputError
from idarts.experiments.engines import NAMES, Engine, local, on_ray, on_slurm
from idarts.experiments.plan import EXAMPLE, Plan, read_plan
from idarts.experiments.results import RESULTS
from idarts.experiments.sweep import LOGS, RETRIES, slots, sweep, threads_each

_ABOUT = f"""\
FILE is YAML; every combination of spaces, methods, grid and seeds is a search of its own:

{"".join(f"  {line}" for line in EXAMPLE.splitlines(keepends=True))}
Further keys: `out`, the folder, and `slurm`, parameters for submitit such as {{timeout_min: 600}}.
A method's own settings stand above the preset's, and those of the file above both.

Each job has a folder OUT/NAME, a log OUT/{LOGS}/NAME.log, and at the end a row in OUT/{RESULTS}.
The same command goes on with a sweep that was stopped or killed, and tries failed jobs again.
"""


def add_arguments(parser: ArgumentParser) -> None:
    """The file, where to write, and where the jobs run."""
    parser.formatter_class = RawDescriptionHelpFormatter
    parser.epilog = _ABOUT
    parser.add_argument("file", type=str, metavar="FILE", help="the sweep, as below")
    parser.add_argument("--out", type=str, help="folder of the sweep (default: the file's `out`, else sweeps/FILE)")
    parser.add_argument("--engine", type=str, default="local", help=f"where jobs run: {', '.join(NAMES)}")
    parser.add_argument("--address", type=str, help="Ray's cluster: host:port, auto, or local to start one here")
    parser.add_argument("--jobs", type=int, help="jobs at a time (default: one a core, or one on a GPU; else all)")
    threads = "threads of a job (default: its share of the cores, at most OMP_NUM_THREADS; with Ray or Slurm 1)"
    parser.add_argument("--threads", type=int, help=threads)
    parser.add_argument("--gpus", type=int, default=0, help="GPUs that a job asks Ray or Slurm for")
    parser.add_argument("--retries", type=int, default=RETRIES, help="how often a job that died is tried again")


def run(args: Namespace) -> None:
    """Run what is left of a sweep, and say where its table is, or how to go on."""
    _require_sensible(args)
    file = Path(args.file)
    plan = read_plan(file)
    out = Path(args.out) if args.out else plan.out or Path("sweeps") / file.stem
    jobs = args.jobs or min(len(plan.jobs), slots() if args.engine == "local" else 256)
    threads = args.threads or (threads_each(jobs) if args.engine == "local" else 1)
    try:
        failed = sweep(
            plan, out, _engine(args, plan, out, threads), jobs=jobs, threads=threads, retries=args.retries, tell=_tell
        )
    except KeyboardInterrupt:
        print(f"stopped; what is finished is in {out}, and the same command goes on from here:")
        print(f"  {_command(args)}")
        raise
    if failed:
        name, why = next(iter(failed.items()))
        raise IdartsError(
            f"{len(failed)} of {len(plan.jobs)} jobs failed, first {name} ({why}); {out}/{LOGS} says more, "
            "and the same command tries them again"
        )
    print(f"table: {out}/{RESULTS}")
    print(f"look:  idarts compare {shlex.quote(str(out))}")


def _require_sensible(args: Namespace) -> None:
    if args.engine not in NAMES:
        raise InputError(f"--engine is {args.engine!r}, expected {', '.join(NAMES)}")
    if (args.engine == "ray") != (args.address is not None):
        raise InputError("--engine ray and --address belong together; --address local starts a cluster here")
    for name, least in (("jobs", 1), ("threads", 1), ("retries", 0), ("gpus", 0)):
        if args[name] is not None and args[name] < least:
            raise InputError(f"--{name} is {args[name]}, expected at least {least}")
    if args.gpus and args.engine == "local":
        raise InputError("--gpus is for Ray and Slurm; here, name a device in the file's settings, such as cuda:1")


def _engine(args: Namespace, plan: Plan, out: Path, threads: int) -> Engine:
    if args.engine == "ray":
        return on_ray(args.address, threads, args.gpus)
    if args.engine == "slurm":
        return on_slurm(out / "slurm", threads, args.gpus, plan.slurm)
    return local()


def _command(args: Namespace) -> str:
    """The command as it was typed, but for defaults."""
    words = ["idarts", "sweep", args.file]
    usual = {"engine": "local", "gpus": 0, "retries": RETRIES}
    for option in ("out", "engine", "address", "jobs", "threads", "gpus", "retries"):
        if args[option] != usual.get(option):
            words += [f"--{option}", str(args[option])]
    return shlex.join(words)


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
