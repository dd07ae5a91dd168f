"""`idarts train`: an architecture from scratch, from one command."""

import shlex
from pathlib import Path

from jsonargparse import ArgumentParser, Namespace

from idarts.arch.forms import described_forms
from idarts.cli.progress import TRAINING, Progress
from idarts.cli.settings import add_run_arguments, chosen, given, layer, record
from idarts.engine.run import Interrupted
from idarts.training.presets import PRESETS
from idarts.training.run import run as run_training
from idarts.training.run import run_name
from idarts.training.settings import TrainConfig


def add_arguments(parser: ArgumentParser) -> None:
    """What to train, where to write, how to go on, and every field of the settings."""
    parser.add_argument("arch", nargs="?", type=str, metavar="ARCH", help=f"what to train: {described_forms()}")
    add_run_arguments(parser, TrainConfig, PRESETS, "train-ARCH-DATA-SEED")
    parser.usage = "idarts train ARCH [--preset NAME] [--config FILE] [--out FOLDER] [--SETTING VALUE ...]"


def set_defaults(parser: ArgumentParser, arguments: list[str]) -> None:
    """A preset's values stand below a file's and the command line's."""
    layer(parser, arguments, chosen("preset", given("preset", parser, arguments), PRESETS))


def run(args: Namespace) -> None:
    """Train, telling how it goes, and say what came out and how to go on."""
    if args.arch:
        args.architecture = args.arch
    settings = record(TrainConfig, args)
    out = Path(args.out or f"runs/{run_name(settings.architecture, settings)}")
    try:
        with Progress(told=TRAINING) as progress:
            result = run_training(settings, out, resume=args.resume, overwrite=args.overwrite, on_round=progress)
    except Interrupted as stopped:
        print(f"stopped after round {stopped}; continue with:")
        print(f"  idarts train --resume --out {shlex.quote(str(out))}")
        raise
    if result.accuracy is not None:
        print(f"test accuracy: {100 * result.accuracy:.2f} %")
    print(f"run:   {out}")
    print(f"model: {out}/model")
    print(f"look:  idarts report {out}")
