"""`idarts reproduce`: the paper's tables and figures as commands, and experiments of a user's own."""

from argparse import Namespace
from pathlib import Path
from typing import Any

from idarts.cli.console import say
from idarts.cli.jobs import add_job_options, explained_stop, job_options
from idarts.cli.parser import Parser, RawHelp, add_option
from idarts.errors import InputError
from idarts.experiments import EXPERIMENTS, Experiment, Request, run_experiment
from idarts.experiments.experiment import PRESETS

_DEFAULTS = {"preset": "cpu", "seeds": "3", "out": None, "tables": None, "methods": None, "equal_cost": False}


def add_arguments(parser: Parser) -> None:
    """The experiment, its size, and where the jobs run."""
    width = max(map(len, EXPERIMENTS)) + 2
    parser.formatter_class = RawHelp
    parser.epilog = "experiments:\n" + "".join(f"  {name:{width}}{EXPERIMENTS[name].summary}\n" for name in EXPERIMENTS)
    own = "an experiment of the list below, or your own as package.module:name"
    parser.add_argument("experiment", metavar="EXPERIMENT", help=own)
    parser.add_argument("--preset", default="cpu", help=f"size: {', '.join(PRESETS)} (default: cpu)")
    seeds = "how many seeds (3: seeds 1, 2 and 3), or a list of them (4,5,6; one alone: 4,) (default: 3)"
    parser.add_argument("--seeds", default="3", help=seeds)
    parser.add_argument("--out", help="folder of the results (default: reproduce/EXPERIMENT-PRESET)")
    parser.add_argument("--tables", help="folder of the benchmark tables (default: IDARTS_TABLES, the cache)")
    parser.add_argument("--methods", help="rows of table-1 or table-2, separated by commas (default: all)")
    equal = "table-1: end the rounds of every search after as many gradient evaluations as the rounds of iDARTS take"
    add_option(parser, "--equal-cost", action="store_true", help=equal)
    add_job_options(parser, "here, or local if --jobs is more than 1", "1")


def run(args: Namespace) -> None:
    """Run the jobs of an experiment that are not done, and print where its page is, or how to continue."""
    experiment = _experiment(args.experiment)
    for option in ("tables", "methods", "equal_cost"):
        if getattr(args, option) != _DEFAULTS[option] and option not in experiment.uses:
            raise InputError(f"{experiment.name} does not use --{option.replace('_', '-')}; remove it")
    request = Request(
        out=Path(args.out or f"reproduce/{experiment.name}-{args.preset}"),
        preset=args.preset,
        seeds=seeds(args.seeds),
        tables=Path(args.tables) if args.tables else None,
        methods=tuple(name.strip() for name in args.methods.split(",")) if args.methods else None,
        equal_cost=args.equal_cost,
    )
    engine, options = job_options(args, "local" if (args.jobs or 1) > 1 else "here", request.out)
    with explained_stop(request.out, ["reproduce", args.experiment], args, _DEFAULTS):
        say(run_experiment(experiment, request, engine, **options))


def _experiment(name: str) -> Experiment:
    experiment: Any = EXPERIMENTS[EXPERIMENTS.load(name) if ":" in name else name]
    if not isinstance(experiment, Experiment):
        raise InputError(f"{name} is a {type(experiment).__name__}, expected an idarts.experiments.Experiment")
    return experiment


def seeds(text: str) -> tuple[int, ...]:
    """The seeds that an option names.

    >>> seeds("3"), seeds("4,7"), seeds("4,")
    ((1, 2, 3), (4, 7), (4,))
    """
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts or not all(part.isascii() and part.isdigit() for part in parts):
        raise InputError(f"--seeds is {text!r}, expected a number of seeds such as 3, or a list such as 1,2,3")
    if "," in text:
        return tuple(map(int, parts))
    return tuple(range(1, int(text) + 1))
