"""`idarts train`: an architecture from scratch, from one command."""

import json
from argparse import SUPPRESS, Namespace
from dataclasses import replace
from pathlib import Path
from typing import Any

from idarts.arch import as_text, parse
from idarts.arch.forms import described_forms
from idarts.cli.console import say
from idarts.cli.parser import Parser
from idarts.cli.progress import Progress
from idarts.cli.settings import RunSettings, add_run_arguments, how, print_settings, read_settings, resumable
from idarts.cli.views import TRAINING
from idarts.data import load_typed, source_names
from idarts.engine.folder import MODEL, current_architecture, read_result
from idarts.engine.run import Options
from idarts.errors import command
from idarts.training.presets import PRESETS
from idarts.training.run import TrainResult, run_name
from idarts.training.run import run as run_training
from idarts.training.settings import TrainConfig


def upgrade(data: dict[str, Any]) -> dict[str, Any]:
    """Settings as 0.1.0 printed them, in today's names; today's settings stay as they are.

    >>> upgrade({"arch": "DARTS_V2", "architecture": "", "epochs": 3})
    {'epochs': 3, 'architecture': 'DARTS_V2'}
    """
    if "arch" not in data:
        return data
    others = {name: value for name, value in data.items() if name not in ("arch", "architecture")}
    return {**others, "architecture": data["arch"] or data.get("architecture", "")}


_OFFERED = {"data": source_names()}
SETTINGS = RunSettings(
    TrainConfig(), PRESETS, upgrade=upgrade, offered=_OFFERED, loaders={"data": load_typed}, kind="training"
)


def add_arguments(parser: Parser) -> None:
    """The architecture, where to write, how to resume, and every setting."""
    parser.add_argument(
        "architecture", nargs="?", default=SUPPRESS, metavar="ARCH", help=f"what to train: {described_forms()}"
    )
    now = "train the current architecture of an unfinished search; ARCH is its run folder"
    parser.add_argument("--now", action="store_true", help=now)
    add_run_arguments(parser, SETTINGS, "train-ARCH-DATA-SEED")
    parser.usage = "idarts train ARCH [--preset NAME] [--config FILE] [--out FOLDER] [--SETTING VALUE ...]"


def run(args: Namespace) -> None:
    """Train with a progress display, then print the accuracy, or how to resume."""
    settings = read_settings(args, SETTINGS)
    out = Path(args.out or f"runs/{run_name(settings.architecture, settings)}")
    if args.now:
        settings = replace(settings, architecture=as_text(current_architecture(Path(settings.architecture))))
    if args.print_config:
        print_settings(args, settings)
        return
    with resumable("train", args, out, settings, SETTINGS), Progress(view=TRAINING) as progress:
        options = Options(**how(args), on_round=progress, on_message=progress.message)
        result = run_training(settings, out, **options)
    if args.json:
        say(json.dumps(_outcome(result), ensure_ascii=False))
        return
    if result.accuracy is not None:
        low, high = read_result(out)["test"]["interval"]
        say(f"test accuracy: {100 * result.accuracy:.2f} % (95 % interval {100 * low:.1f}–{100 * high:.1f} %)")
    say(f"run:           {out}")
    say(f"model:         {out}/model")
    say(f"report:        {command('report', out)}")


def _outcome(result: TrainResult) -> dict[str, Any]:
    """What `--json` prints; docs/hooks.md explains the fields."""
    written = read_result(result.path)
    test = written.get("test") or {}
    return {
        "architecture": as_text(parse(written["architecture"])),
        "accuracy": result.accuracy,
        "interval": test.get("interval"),
        "loss": test.get("loss"),
        "images": test.get("images"),
        "parameters": written["parameters"],
        "seed": written["config"]["seed"],
        "seconds": written["seconds"],
        "rounds": len(result.rounds),
        "run": str(result.path),
        "model": str(result.path / MODEL),
    }
