"""The options that `idarts sweep` and `idarts reproduce` share: where jobs run, how many at a time, how often."""

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from idarts.cli.console import say
from idarts.cli.parser import Parser
from idarts.cli.progress import Progress
from idarts.cli.verbosity import quiet
from idarts.errors import InputError, command
from idarts.experiments.engines import Engine, local, on_ray, on_slurm
from idarts.experiments.runner import RETRIES

ENGINES = ("here", "local", "ray", "slurm")
OPTIONS = ("engine", "address", "jobs", "threads", "gpus", "slurm", "retries")
_MANY = 256  # jobs at a time: Ray and Slurm have their own queues
_DEFAULTS = {"gpus": 0, "retries": RETRIES}


def add_job_options(parser: Parser, engine: str, jobs: str) -> None:
    """Add the options; `engine` and `jobs` explain the defaults of the two that differ."""
    where = "here (this process), local (processes on this machine), ray, slurm"
    parser.add_argument("--engine", help=f"where jobs run: {where} (default: {engine})")
    parser.add_argument("--address", help="Ray's cluster: host:port, auto, or local to start one here")
    parser.add_argument("--jobs", type=int, help=f"jobs at a time (default: {jobs})")
    threads = "threads of a job (default: its share of the cores, at most OMP_NUM_THREADS; with Ray or Slurm 1)"
    parser.add_argument("--threads", type=int, help=threads)
    parser.add_argument("--gpus", type=int, default=0, help="GPUs for each job, on Ray or Slurm")
    slurm = "parameters for submitit as JSON, such as '{\"timeout_min\": 600}'"
    parser.add_argument("--slurm", help=slurm)
    parser.add_argument("--retries", type=int, default=RETRIES, help="how often a job that died is tried again")


def job_options(
    args: Any, engine: str, out: Path, slurm: Mapping[str, Any] | None = None
) -> tuple[Engine | None, dict[str, Any]]:
    """The engine, None for this process, and the options of the runner; `engine` is the default."""
    name = args.engine or engine
    _require_sensible(args, name)
    options = {"jobs": args.jobs, "threads": args.threads, "retries": args.retries, "tell": tell, "watch": _progress}
    if name in ("here", "local"):
        return (local() if name == "local" else None), options
    threads = args.threads or 1
    options |= {"jobs": args.jobs or _MANY, "threads": threads}
    if name == "ray":
        return on_ray(args.address, threads, args.gpus), options
    return on_slurm(out / "slurm", threads, args.gpus, {**(slurm or {}), **_parameters(args.slurm)}), options


def _require_sensible(args: Any, engine: str) -> None:
    if engine not in ENGINES:
        raise InputError(f"--engine is {engine!r}, expected {', '.join(ENGINES)}")
    if (engine == "ray") != (args.address is not None):
        raise InputError("--engine ray and --address belong together; --address local starts a cluster here")
    for name, least in (("jobs", 1), ("threads", 1), ("retries", 0), ("gpus", 0)):
        value = getattr(args, name)
        if value is not None and value < least:
            raise InputError(f"--{name} is {value}, expected at least {least}")
    if args.gpus and engine in ("here", "local"):
        raise InputError("--gpus is for Ray and Slurm; here, name a device in the file's settings, such as cuda:1")
    if engine == "here" and (args.jobs or 1) > 1:
        raise InputError("--engine here runs one job at a time; use --engine local")
    if args.slurm and engine != "slurm":
        raise InputError("--slurm is for --engine slurm")


def _parameters(text: str | None) -> dict[str, Any]:
    try:
        return dict(json.loads(text)) if text else {}
    except (ValueError, TypeError):
        raise InputError(f"--slurm is {text!r}, expected JSON such as '{{\"timeout_min\": 600}}'") from None


@contextmanager
def explained_stop(out: Path, words: list[str], args: Any, options: Mapping[str, Any]) -> Iterator[None]:
    """At an interrupt, print the command that continues: `words`, and the `options` that differ from their defaults."""
    try:
        yield
    except KeyboardInterrupt:
        for name, default in {**options, **{name: _DEFAULTS.get(name) for name in OPTIONS}}.items():
            value = getattr(args, name)
            if value != default:
                words += [f"--{name.replace('_', '-')}", *([] if value is True else [str(value)])]
        say(f"stopped; finished jobs are in {out}, and the same command continues:")
        say(f"  {command(*words)}")
        raise


@contextmanager
def _progress() -> Iterator[dict[str, Any]]:
    """The options of a search in this process."""
    with Progress() as progress:
        yield {"on_round": progress, "on_message": progress.message}


def tell(line: str) -> None:
    """A line about jobs, on stderr."""
    if not quiet():
        say(line, file=sys.stderr, flush=True)
