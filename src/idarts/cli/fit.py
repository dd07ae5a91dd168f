"""`idarts fit`: from a folder of images to a network."""

import json
import shutil
import sys
import time
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

from idarts.cli.console import printable, say
from idarts.cli.parser import Parser, add_option, one_of
from idarts.cli.verbosity import quiet
from idarts.data import load_typed, source_names
from idarts.engine.loggers import LOGGERS
from idarts.engine.run import Interrupted
from idarts.errors import InputError, command, require_known
from idarts.fitting import Look, Plan, Status, fit, plan, record, to_data
from idarts.fitting.look import named
from idarts.fitting.plan import SPACE
from idarts.fitting.sizes import MEASURES
from idarts.pages.numbers import duration
from idarts.pages.template import require_jinja

PAUSE = 5.0  # seconds between two plain lines
OPTIONS = ("minutes", "space", "seed", "image", "random", "flip", "data_root", "log")


def add_arguments(parser: Parser) -> None:
    """The data, the time, where to write, and what a person may know better than the rules."""
    parser.add_argument("data", metavar="DATA", help=f"a folder of images, or one of {', '.join(source_names())}")
    parser.add_argument(
        "--minutes", type=_positive("--minutes"), default=20.0, help="time for everything (default: 20)"
    )
    parser.add_argument("--out", metavar="FOLDER", help="folder to write (default: runs/fit-DATA-SEED)")
    parser.add_argument("--plan", action="store_true", help="print what would be done and how long it takes, and exit")
    parser.add_argument("--json", action="store_true", help="print the result as one JSON object")
    parser.add_argument("--resume", action="store_true", help="continue the fit in the folder, in the minutes left")
    parser.add_argument("--overwrite", action="store_true", help="replace the fit in the folder")
    parser.add_argument("--space", default=SPACE, help=f"search space (default: {SPACE})")
    parser.add_argument(
        "--image", type=_count("--image"), help="side to which images are resized (default: by data and time)"
    )
    parser.add_argument(
        "--random", type=_count("--random"), help="random networks to train (default: 3, fewer if time is short)"
    )
    parser.add_argument("--flip", type=_truth, metavar="{true,false}", help="mirror images (default: if in colour)")
    parser.add_argument("--seed", type=int, default=0, help="random seed (default: 0)")
    kinds = f"{{{','.join(MEASURES)}}}"
    parser.add_argument("--cost.kind", dest="cost_kind", metavar=kinds, help="what the found network should cost")
    parser.add_argument(
        "--cost.target", dest="cost_target", type=_positive("--cost.target"), help="how much; milliseconds for latency"
    )
    loggers = f"{', '.join(LOGGERS)}, or your own package.module:name"
    parser.add_argument(
        "--log", type=_logger, default="none", help=f"where to log besides the run folders: {loggers} (default: none)"
    )
    add_option(parser, "--data-root", dest="data_root", help="folder of a named source's files (default: IDARTS_DATA)")


def run(args: Namespace) -> None:
    """Fit, with one line of progress; then print who won, or how to resume."""
    require_jinja()
    source = named(args.data)
    load_typed(source)
    options: dict[str, Any] = {name: getattr(args, name) for name in OPTIONS}
    options["cost"] = _cost(args)
    if args.plan:
        del options["seed"], options["log"]
        _print_plan(*plan(args.data, **options), sys.stdout)
        return
    progress = Line()
    if args.resume and args.out:
        options |= _resumed(Path(args.out), args)
    try:
        with progress:
            result = fit(
                args.data,
                **options,
                out=args.out,
                resume=args.resume,
                overwrite=args.overwrite,
                on_plan=progress.plan,
                on_status=progress,
            )
    except Interrupted:
        say(f"stopped; continue with:\n  {_again(args)}", file=sys.stderr)
        raise
    if args.json:
        say(json.dumps(to_data(result)))
        return
    say(result.sentence)
    say(f"model:   {result.path / 'model'}")
    say(f"report:  {result.path / 'report.html'}")
    say(f"time:    {duration(result.seconds)}")
    say(f"use it:  {command('predict', result.path, 'IMAGE')}")


class Line:
    """One line with the time left of the whole: rewritten on a terminal, else printed now and then."""

    def __init__(self) -> None:
        self.live, self.shown, self.width, self.part = sys.stderr.isatty(), 0.0, 0, ""
        self.quiet = quiet()

    def __enter__(self) -> "Line":
        return self

    def __exit__(self, *_: object) -> None:
        if self.live and self.width:
            say(file=sys.stderr)

    def plan(self, seen: Look, made: Plan) -> None:
        """Print the plan below what is there."""
        if self.quiet:
            return
        self.__exit__()
        self.width = 0
        _print_plan(seen, made, sys.stderr)

    def __call__(self, status: Status) -> None:
        now = time.monotonic()
        if self.quiet or (now - self.shown < (0.2 if self.live else PAUSE) and status.part == self.part):
            return
        self.shown, self.part = now, status.part
        text = f"{duration(round(status.left))} left  {status.part}: {status.text}"
        if self.live:
            text = printable(text)[: shutil.get_terminal_size().columns - 1]
            sys.stderr.write(f"\r{text:<{self.width}}")
            sys.stderr.flush()
            self.width = len(text)
        else:
            say(text, file=sys.stderr, flush=True)


def _print_plan(seen: Look, made: Plan, file: Any) -> None:
    say("\n".join([*seen.lines(), *made.lines()]), file=file, flush=True)


def _resumed(out: Path, args: Namespace) -> dict[str, Any]:
    """The settings that the fit began with; those that were typed must agree with them."""
    if not (out / record.FIT).is_file():
        return {}
    before = record.read(out)["settings"]
    defaults = {"minutes": 20.0, "space": SPACE, "seed": 0, "log": "none"}
    kept = {name: before[name] for name in OPTIONS if name in before and getattr(args, name) == defaults.get(name)}
    return kept if args.cost_kind or args.cost_target else {**kept, "cost": before["cost"]}


def _cost(args: Namespace) -> dict[str, Any] | None:
    if args.cost_kind is None and args.cost_target is None:
        return None
    return {"kind": one_of("--cost.kind", MEASURES)(args.cost_kind or ""), "target": args.cost_target}


def _again(args: Namespace) -> str:
    out = ["--out", args.out] if args.out else []
    log = ["--log", args.log] if ":" in args.log else []  # it is imported only if it is typed
    return command("fit", args.data, *out, *log, "--resume")


def _positive(option: str) -> Callable[[str], float]:
    def read(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = 0.0
        if not 0 < value < float("inf"):
            raise InputError(f"{option} is {text!r}, expected a positive number")
        return value

    return read


def _count(option: str) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not text.isdecimal() or int(text) < 1:
            raise InputError(f"{option} is {text!r}, expected a whole number of at least 1")
        return int(text)

    return read


def _logger(text: str) -> str:
    if ":" in text:
        return LOGGERS.load(text)
    require_known("logger", text, LOGGERS)
    return text


def _truth(text: str) -> bool:
    if text not in ("true", "false"):
        raise InputError(f"--flip is {text!r}, expected true or false")
    return text == "true"
