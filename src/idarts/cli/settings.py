"""What the commands that make runs share: settings in layers, from presets, files and options, as records."""

import json
from collections.abc import Mapping
from dataclasses import fields
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import yaml  # type: ignore[import-untyped] # it comes without types
from jsonargparse import ArgumentParser, Namespace

from idarts import data, tables
from idarts.cli.help import explain
from idarts.engine.settings import dotted
from idarts.errors import InputError, nearest, require_known

Settings = TypeVar("Settings")
FACTS = "choices"  # what a run's config.json has beside its settings


def add_run_arguments(parser: ArgumentParser, kind: type, presets: Mapping[str, Any], folder: str) -> None:
    """Where to write, how to go on, and every field of the settings."""
    parser.add_argument(
        "--config", action="config", help="YAML file of settings; --print-config makes one", metavar="FILE"
    )
    named = ", ".join(presets)
    parser.add_argument("--preset", metavar="NAME", help=f"named settings, which other options change: {named}")
    parser.add_argument("--out", metavar="FOLDER", help=f"folder of the run (default: runs/{folder})")
    parser.add_argument("--resume", action="store_true", help="go on from the last checkpoint in the folder")
    parser.add_argument("--overwrite", action="store_true", help="replace the run that is in the folder")
    parser.add_class_arguments(kind, as_group=False)
    explain(parser, kind)
    parser._option_string_actions["--print_config"].help = "print all settings as YAML, and exit"


def chosen(what: str, name: str | None, known: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """The settings that a name stands for, none for no name; an unknown name's nearest neighbour is named.

    >>> chosen("preset", "smok", {"smoke": {}, "cpu": {}})
    Traceback (most recent call last):
    idarts.errors.InputError: unknown preset 'smok'; did you mean smoke?
    """
    if name is None:
        return {}
    require_known(what, name, known)
    return known[name]


def layer(parser: ArgumentParser, arguments: list[str], *layers: Mapping[str, Any]) -> None:
    """Defaults in layers, the later above the earlier; above them a resumed run's own, then files and options."""
    for settings in layers:
        parser.set_defaults(dotted(settings))
    _load_typed(arguments)
    out = typed("--out", arguments)
    if "--resume" in arguments and out:
        parser.set_defaults(_begun_with(Path(out, "config.json"), parser))


def _load_typed(arguments: list[str]) -> None:
    """Import a user's own data source and table, which were typed as package.module:name. A file cannot do that."""
    for option, load in (("--data", data.load_typed), ("--tables", tables.load_typed)):
        if text := typed(option, arguments):
            load(text)


def _begun_with(file: Path, parser: ArgumentParser) -> dict[str, Any]:
    """The settings in a run's folder; what is wrong with the folder is told later, when it is claimed."""
    try:
        found = json.loads(file.read_text())
    except (OSError, ValueError):
        return {}
    return _known(file, found, parser) if isinstance(found, dict) else {}


def given(name: str, parser: ArgumentParser, arguments: list[str]) -> str | None:
    """A setting that stands for others, as it was typed, or else as the last file of settings has it."""
    files = [_read(file, parser).get(name) for file in _all_typed("--config", arguments)]
    values = [*files, typed(f"--{name}", arguments)]
    return next((str(value) for value in reversed(values) if value is not None), None)


def require_no_other(
    name: str, value: str, own: Mapping[str, Any], parser: ArgumentParser, arguments: list[str]
) -> None:
    """A file made for another method would turn the typed one back into that, setting by setting."""
    for file in _all_typed("--config", arguments):
        found = _read(file, parser)
        against = [key for key, mine in dotted(own).items() if found.get(key, mine) != mine]
        if found.get(name, value) != value and against:
            raise InputError(
                f"--{name} {value}, but {file} is of {found[name]} and sets {', '.join(against)} as that has it; "
                "take those lines out of the file"
            )


def _read(file: str, parser: ArgumentParser) -> dict[str, Any]:
    """A file of settings, groups as dotted names."""
    try:
        found = yaml.safe_load(Path(file).read_text())
    except (OSError, UnicodeError) as error:
        raise InputError(f"--config {file} cannot be read: {getattr(error, 'strerror', error)}") from None
    except yaml.YAMLError as error:
        where = f" in line {error.problem_mark.line + 1}" if getattr(error, "problem_mark", None) else ""
        raise InputError(f"--config {file} is no YAML{where}; --print-config makes such a file") from None
    if not isinstance(found, dict):
        raise InputError(f"--config {file} has no settings; --print-config makes such a file")
    return _known(file, found, parser)


def _known(file: Path | str, found: dict[str, Any], parser: ArgumentParser) -> dict[str, Any]:
    known = {action.dest for action in parser._actions}
    settings = dotted({name: value for name, value in found.items() if name != FACTS})
    for name in settings:
        if name not in known:
            raise InputError(f"{file}: unknown setting {name!r}; {nearest(name, known, '--help lists all')}")
    return settings


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
    return next(reversed(_all_typed(option, arguments)), None)


def _all_typed(option: str, arguments: list[str]) -> list[str]:
    separate = [after for argument, after in pairwise(arguments) if argument == option]
    return separate + [argument.partition("=")[2] for argument in arguments if argument.startswith(f"{option}=")]
