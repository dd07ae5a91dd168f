"""`idarts search`: a search from one command."""

import json
from argparse import Namespace
from pathlib import Path
from typing import Any

from idarts.arch import as_text
from idarts.arch.space import all_spaces
from idarts.cli.console import say
from idarts.cli.parser import Parser
from idarts.cli.progress import Progress
from idarts.cli.settings import RunSettings, add_run_arguments, how, print_settings, read_settings, resumable
from idarts.data import load_typed as load_source
from idarts.data import source_names
from idarts.engine.folder import folder_name, read_result
from idarts.engine.run import Options
from idarts.errors import command
from idarts.searching import METHODS, PRESETS, RunConfig, SearchResult, resolved, upgrade
from idarts.searching import run as run_search
from idarts.tables import load_typed as load_table

_LOADERS = {"data": load_source, "tables": load_table}
_OFFERED = {
    "space": [space.name for space in all_spaces() if space.has("supernet")],
    "method": list(METHODS),
    "data": source_names(),
}
SETTINGS = RunSettings(RunConfig(), PRESETS, METHODS, upgrade, _OFFERED, _LOADERS, "search", resolved)


def add_arguments(parser: Parser) -> None:
    """Where to write, how to resume, and every setting."""
    add_run_arguments(parser, SETTINGS, "SPACE-METHOD-DATA-SEED")
    parser.usage = "idarts search [--preset NAME] [--config FILE] [--out FOLDER] [--SETTING VALUE ...]"


def run(args: Namespace) -> None:
    """Search with a progress display, then print the architecture, or how to resume."""
    settings = read_settings(args, SETTINGS)
    if args.print_config:
        print_settings(args, settings)
        return
    out = Path(args.out or Path("runs", folder_name(settings.space, settings.method, settings.data, settings.seed)))
    with resumable("search", args, out, settings, SETTINGS), Progress() as progress:
        options = Options(**how(args), on_round=progress, on_message=progress.message)
        result = run_search(settings, out, **options)
    if args.json:
        say(json.dumps(_outcome(result), ensure_ascii=False))
        return
    say(f"architecture: {as_text(result.architecture)}")
    if result.verdict is not None:
        say(f"decision:     {result.verdict.sentence}")
    say(f"run:          {out}")
    say(f"report:       {command('report', out)}")


def _outcome(result: SearchResult) -> dict[str, Any]:
    """What `--json` prints; docs/hooks.md explains the fields."""
    written = read_result(result.path)
    kept = {name: written[name] for name in ("space", "method", "seed", "seconds", "gradient_evaluations", "table")}
    return {
        "architecture": as_text(result.architecture),
        "decision": None if result.verdict is None else result.verdict.sentence,
        **kept,
        "cost": written["cost"],
        "rounds": len(result.rounds),
        "run": str(result.path),
    }
