"""`idarts train`: an architecture from scratch, from one command."""

import shlex
from argparse import SUPPRESS, Namespace
from dataclasses import replace
from pathlib import Path

from idarts.arch import as_text
from idarts.arch.forms import described_forms
from idarts.cli.parser import Parser
from idarts.cli.progress import Progress
from idarts.cli.settings import RunSettings, add_run_arguments, print_settings, read_settings, resumable
from idarts.cli.views import TRAINING
from idarts.data import load_typed
from idarts.engine.folder import current_architecture
from idarts.training.presets import PRESETS
from idarts.training.run import run as run_training
from idarts.training.run import run_name
from idarts.training.settings import TrainConfig

SETTINGS = RunSettings(TrainConfig(), PRESETS, loaders={"data": load_typed})


def add_arguments(parser: Parser) -> None:
    """The architecture, where to write, how to resume, and every setting."""
    parser.add_argument(
        "architecture", nargs="?", default=SUPPRESS, metavar="ARCH", help=f"what to train: {described_forms()}"
    )
    now = "train what a search that has not finished stands for now: ARCH is its run folder"
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
        print_settings(settings)
        return
    with resumable("train", out, settings, SETTINGS), Progress(view=TRAINING) as progress:
        result = run_training(settings, out, resume=args.resume, overwrite=args.overwrite, on_round=progress)
    if result.accuracy is not None:
        print(f"test accuracy: {100 * result.accuracy:.2f} %")
    print(f"run:           {out}")
    print(f"model:         {out}/model")
    print(f"report:        {shlex.join(['idarts', 'report', str(out)])}")
