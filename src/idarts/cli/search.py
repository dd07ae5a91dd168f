"""`idarts search`: Algorithm 1 from one command."""

import shlex
from pathlib import Path

from jsonargparse import ArgumentParser, Namespace

from idarts.arch import as_text
from idarts.cli.progress import Progress
from idarts.cli.settings import add_run_arguments, chosen, given, layer, record, require_no_other, typed
from idarts.engine.folder import folder_name
from idarts.engine.run import Interrupted
from idarts.searching.presets import PRESETS
from idarts.searching.run import RunConfig
from idarts.searching.run import run as run_search
from idarts.searching.settings import METHODS


def add_arguments(parser: ArgumentParser) -> None:
    """Where to write, how to go on, and every field of the settings."""
    add_run_arguments(parser, RunConfig, PRESETS, "SPACE-METHOD-DATA-SEED")
    parser.usage = "idarts search [--preset NAME] [--config FILE] [--out FOLDER] [--SETTING VALUE ...]"


def set_defaults(parser: ArgumentParser, arguments: list[str]) -> None:
    """A preset's values stand below those that make a method, both below a file's and the command line's."""
    preset = chosen("preset", given("preset", parser, arguments), PRESETS)
    method = given("method", parser, arguments) or preset.get("method", "idarts")
    own = chosen("method", method, METHODS)
    if typed("--method", arguments):
        require_no_other("method", method, own, parser, arguments)
    layer(parser, arguments, preset, own, {"method": method})


def run(args: Namespace) -> None:
    """Search, telling how it goes, and say what was found and how to go on."""
    settings = record(RunConfig, args)
    out = Path(args.out or Path("runs", folder_name(settings.space, settings.method, settings.data, settings.seed)))
    try:
        with Progress() as progress:
            result = run_search(
                settings, out, resume=args.resume, overwrite=args.overwrite, on_round=progress, on_message=progress.tell
            )
    except Interrupted as stopped:
        print(f"stopped after round {stopped}; continue with:")
        print(f"  idarts search --resume --out {shlex.quote(str(out))}")
        raise
    print(f"found: {as_text(result.architecture)}")
    print(f"run:   {out}")
    print(f"look:  idarts report {out}")
