"""What the commands that make runs share: settings in layers, from presets, files and options, as records."""

import difflib
import json
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

from jsonargparse import ArgumentParser, Namespace

from idarts.errors import InputError
from idarts.search.config import dotted

Settings = TypeVar("Settings")


def add_run_arguments(parser: ArgumentParser, kind: type, presets: Mapping[str, Any], folder: str) -> None:
    """Where to write, how to go on, and every field of the settings."""
    parser.add_argument("--config", action="config", help="YAML file of settings; --print-config makes one")
    named = ", ".join(presets)
    parser.add_argument("--preset", metavar="NAME", help=f"named settings, which other options change: {named}")
    parser.add_argument("--out", help=f"folder of the run (default: runs/{folder})")
    parser.add_argument("--resume", action="store_true", help="go on from the last checkpoint in the folder")
    parser.add_argument("--overwrite", action="store_true", help="replace the run that is in the folder")
    parser.add_class_arguments(kind, as_group=False)


def chosen(what: str, name: str | None, known: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """The settings that a name stands for, none for no name; an unknown name's nearest neighbour is named.

    >>> chosen("preset", "smok", {"smoke": {}, "cpu": {}})
    Traceback (most recent call last):
    idarts.errors.InputError: unknown preset 'smok'; did you mean smoke?
    """
    if name is None or name in known:
        return known[name] if name else {}
    near = difflib.get_close_matches(name, known, n=1)
    raise InputError(
        f"unknown {what} {name!r}; " + (f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}")
    )


def layer(parser: ArgumentParser, kind: type, arguments: list[str], *layers: Mapping[str, Any]) -> None:
    """Defaults in layers, the later above the earlier; above them a resumed run's own, then files and options."""
    for settings in layers:
        parser.set_defaults(dotted(settings))
    out = typed("--out", arguments)
    if "--resume" in arguments and out:
        parser.set_defaults(dotted(_begun_with(Path(out), kind)))


def _begun_with(out: Path, kind: type) -> dict[str, Any]:
    """The settings in a run's folder; what is wrong with the folder is told later, when it is claimed."""
    try:
        found = json.loads((out / "config.json").read_text())
    except (OSError, ValueError):
        return {}
    names = {field.name for field in fields(kind)}
    return {name: value for name, value in found.items() if name in names} if isinstance(found, dict) else {}


def record(kind: type[Settings], args: Namespace) -> Settings:
    """The settings as a record, its groups, too."""
    values: dict[str, Any] = {}
    for field in fields(kind):  # type: ignore[arg-type] # a dataclass
        value = args[field.name]
        if isinstance(value, Namespace):
            make: Any = field.default_factory
            value = make(**{key: tuple(part) if isinstance(part, list) else part for key, part in value.items()})
        values[field.name] = value
    return kind(**values)


def typed(option: str, arguments: list[str]) -> str | None:
    """The value of an option, as it was typed.

    >>> typed("--out", ["search", "--out=runs/1"]), typed("--out", ["search"])
    ('runs/1', None)
    """
    for position, argument in enumerate(arguments):
        if argument == option and position + 1 < len(arguments):
            return arguments[position + 1]
        if argument.startswith(f"{option}="):
            return argument.partition("=")[2]
    return None
