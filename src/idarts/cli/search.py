"""`idarts search`: Algorithm 1 from one command."""

from dataclasses import fields
from pathlib import Path
from typing import Any

from jsonargparse import ArgumentParser, Namespace

from idarts.cli.progress import Progress
from idarts.errors import InputError
from idarts.search.config import METHODS
from idarts.search.logbook import as_text
from idarts.search.presets import PRESETS
from idarts.search.run import Interrupted, RunConfig
from idarts.search.run import run as run_search


def add_arguments(parser: ArgumentParser) -> None:
    """Where to write, how to go on, and every field of the settings."""
    parser.add_argument("--config", action="config", help="YAML file of settings; --print-config makes one")
    parser.add_argument("--preset", choices=[*PRESETS], help="named settings, which other options change")
    parser.add_argument("--out", help="folder of the run (default: runs/SPACE-METHOD-DATA-SEED)")
    parser.add_argument("--resume", action="store_true", help="go on from the last checkpoint in the folder")
    parser.add_argument("--overwrite", action="store_true", help="replace the run that is in the folder")
    parser.add_class_arguments(RunConfig, as_group=False)


def set_defaults(parser: ArgumentParser, arguments: list[str]) -> None:
    """A preset's values stand below a file's and the command line's, a method's below a preset's."""
    preset = _typed("--preset", arguments)
    named = PRESETS.get(preset, {}) if preset else {}
    method = _typed("--method", arguments) or named.get("method", "idarts")
    if method not in METHODS:
        raise InputError(f"unknown method {method!r}; there are {', '.join(METHODS)}")
    for settings in (METHODS[method], named):
        parser.set_defaults(_flat(settings))
    parser.set_defaults(method=method)


def run(args: Namespace) -> None:
    """Search, telling how it goes, and say what was found and how to go on."""
    values = {field.name: args[field.name] for field in fields(RunConfig)}
    settings = RunConfig(**{name: _plain(name, value) for name, value in values.items()})
    out = Path(args.out or f"runs/{settings.space}-{settings.method}-{settings.data.replace(':', '-')}-{settings.seed}")
    try:
        with Progress() as progress:
            result = run_search(settings, out, resume=args.resume, overwrite=args.overwrite, watch=progress)
    except Interrupted as stopped:
        print(f"stopped after round {stopped}; continue with:")
        print(f"  idarts search --resume --config {out}/config.json --out {out}")
        raise
    print(f"found: {as_text(result.architecture)}")
    print(f"run:   {out}")
    print(f"look:  idarts report {out}")


def _typed(option: str, arguments: list[str]) -> str | None:
    """The value of an option, as it was typed."""
    for position, argument in enumerate(arguments):
        if argument == option and position + 1 < len(arguments):
            return arguments[position + 1]
        if argument.startswith(f"{option}="):
            return argument.partition("=")[2]
    return None


def _flat(settings: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in settings.items():
        found |= _flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {f"{prefix}{name}": value}
    return found


def _plain(name: str, value: Any) -> Any:
    """A group of settings as its record."""
    kinds = {field.name: field.default_factory for field in fields(RunConfig)}
    if not isinstance(value, Namespace):
        return value
    make: Any = kinds[name]
    parts = {key: tuple(part) if isinstance(part, list) else part for key, part in value.items()}
    return make(**parts)
