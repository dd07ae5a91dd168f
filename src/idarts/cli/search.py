"""`idarts search`: Algorithm 1 from one command."""

from pathlib import Path

from jsonargparse import ArgumentParser, Namespace

from idarts.cli.progress import Progress
from idarts.cli.settings import add_run_arguments, chosen, layer, record, typed
from idarts.runs import Interrupted
from idarts.search.config import METHODS
from idarts.search.logbook import as_text
from idarts.search.presets import PRESETS
from idarts.search.run import RunConfig
from idarts.search.run import run as run_search


def add_arguments(parser: ArgumentParser) -> None:
    """Where to write, how to go on, and every field of the settings."""
    add_run_arguments(parser, RunConfig, PRESETS, "SPACE-METHOD-DATA-SEED")


def set_defaults(parser: ArgumentParser, arguments: list[str]) -> None:
    """A preset's values stand below those that make a method, both below a file's and the command line's."""
    named = chosen("preset", typed("--preset", arguments), PRESETS)
    method = typed("--method", arguments) or named.get("method", "idarts")
    layer(parser, RunConfig, arguments, named, chosen("method", method, METHODS), {"method": method})


def run(args: Namespace) -> None:
    """Search, telling how it goes, and say what was found and how to go on."""
    settings = record(RunConfig, args)
    out = Path(args.out or f"runs/{settings.space}-{settings.method}-{settings.data.replace(':', '-')}-{settings.seed}")
    try:
        with Progress() as progress:
            result = run_search(
                settings, out, resume=args.resume, overwrite=args.overwrite, watch=progress, tell=progress.tell
            )
    except Interrupted as stopped:
        print(f"stopped after round {stopped}; continue with:")
        print(f"  idarts search --resume --config {out}/config.json --out {out}")
        raise
    print(f"found: {as_text(result.architecture)}")
    print(f"run:   {out}")
    print(f"look:  idarts report {out}")
