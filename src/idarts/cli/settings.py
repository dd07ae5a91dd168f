"""Settings on the command line: an option for every setting of a record, and from what was typed back to the record."""

import json
import sys
from argparse import SUPPRESS, Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar, get_args, get_origin

from idarts.cli.console import say
from idarts.cli.parser import Parser, Reader, add_option
from idarts.engine.run import Interrupted, Options
from idarts.engine.settings import Setting, dotted, resolve, settings_of
from idarts.engine.settings_file import load, to_yaml
from idarts.errors import InputError, command, nearest, require_known

Record = TypeVar("Record")
Layer = Mapping[str, Any]
_TYPED = ("out", "resume", "overwrite")  # not settings; `--print-config` of 0.1.0 wrote them, too


@dataclass(frozen=True)
class RunSettings(Generic[Record]):
    """The settings of a command that makes runs: what they are, and the names that stand for several of them."""

    default: Record
    presets: Mapping[str, Layer]
    methods: Mapping[str, Layer] = field(default_factory=dict)
    upgrade: Callable[[dict[str, Any]], dict[str, Any]] = dict
    """from the content of a file, also of an older version, to the settings of today"""
    offered: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """the names that help and completion list for a setting, where they are not all of a registry"""
    loaders: Mapping[str, Callable[[str], object]] = field(default_factory=dict)
    """for settings that name a user's own part without `PartOf`: what imports it when it was typed"""
    kind: str = "run"
    """what the runs are: a search, a training"""
    resolve: Callable[[Sequence[Layer]], Record] | None = None
    """from sources to settings, where more is to be checked than `idarts.engine.settings.resolve` does"""

    def options(self) -> dict[str, Setting]:
        """The settings by name."""
        return {setting.name: setting for setting in settings_of(type(self.default))}


def add_run_arguments(parser: Parser, settings: RunSettings[Any], folder: str) -> None:
    """Where to write, how to resume, where settings come from, and an option for each of them."""
    parser.add_argument(
        "--config", action="append", default=[], metavar="FILE", help="YAML file of settings; may be repeated"
    )
    presets = ", ".join(settings.presets)
    preset = Reader(str, tuple(settings.presets))
    parser.add_argument("--preset", default=SUPPRESS, type=preset, metavar="NAME", help=f"named settings: {presets}")
    add_option(parser, "--print-config", action="store_true", help="print all settings as YAML, and exit")
    parser.add_argument("--out", metavar="FOLDER", help=f"folder of the run (default: runs/{folder})")
    parser.add_argument("--resume", action="store_true", help="resume the run in the folder from its last checkpoint")
    parser.add_argument("--overwrite", action="store_true", help="replace the run in the folder")
    changed = "resume although the data has changed"
    parser.add_argument("--accept-changed-data", action="store_true", help=changed)
    parser.add_argument("--json", action="store_true", help="print the result as one JSON object, and nothing else")
    sections: dict[tuple[str, ...], Any] = {}
    for setting in settings.options().values():
        group = setting.group or ("settings",)
        if group not in sections:
            sections[group] = parser.add_argument_group(*group)  # its title and its explanation
        option = f"--{setting.name.replace('_', '-')}"
        add_option(
            sections[group],
            option,
            dest=setting.name,
            default=SUPPRESS,  # what was not typed is not there
            type=Reader(
                _reader(option, setting, settings.loaders.get(setting.name)),
                tuple(settings.offered.get(setting.name, setting.names)),
            ),
            metavar=_values(setting),
            help=_help(setting, settings),
        )
    parser.epilog = (
        "Later sources override earlier ones: files in the order given, then the command line. Within one source, "
        "a setting overrides its method, and a method overrides its preset. --print-config shows the result."
    )


def read_settings(args: Namespace, settings: RunSettings[Record]) -> Record:
    """The settings that files and the command line describe; `resolve` has the rule of precedence."""
    options = settings.options()
    typed = {name: value for name, value in vars(args).items() if name in options or name == "preset"}
    files = [_checked(file, load(file), settings) for file in map(Path, args.config)]
    sources = [*_resumed(args, settings), *files, typed]
    if settings.resolve is not None:
        return settings.resolve(sources)
    return resolve(settings.default, sources, settings.presets, settings.methods)


def print_settings(args: Namespace, record: Any) -> None:
    """All settings, as a file for `--config`; JSON is YAML, too."""
    data = json.loads(json.dumps(asdict(record)))
    say(json.dumps(data) + "\n" if args.json else to_yaml(data), end="")


@contextmanager
def resumable(name: str, args: Namespace, out: Path, record: Record, settings: RunSettings[Record]) -> Iterator[None]:
    """If the run is interrupted, print the command that resumes it; not among JSON."""
    try:
        yield
    except Interrupted as stopped:
        lines = f"stopped after round {stopped}; resume with:\n  {resume_command(name, out, record, settings)}"
        say(lines, file=sys.stderr if args.json else sys.stdout)
        raise


def resume_command(name: str, out: Path, record: Record, settings: RunSettings[Record]) -> str:
    """The command that resumes a run, for a shell. It names a user's own parts: nothing from a file is imported.

    >>> from idarts.searching import RunConfig
    >>> resume_command("search", Path("my runs/1"), RunConfig(), RunSettings(RunConfig(), {}))
    "idarts search --resume --out 'my runs/1'"
    """
    values = dotted(asdict(record))  # type: ignore[call-overload] # a Record is a dataclass, but its type does not say so
    named = {name for name, setting in settings.options().items() if setting.registry is not None}
    parts = sorted(named | set(settings.loaders))
    words = [word for part in parts if ":" in str(values[part]) for word in (f"--{part}", values[part])]
    return command(name, "--resume", "--out", out, *words)


def _resumed(args: Namespace, settings: RunSettings[Any]) -> list[Layer]:
    """The settings that the run to be resumed began with. If they cannot be read, the run itself says why."""
    if not args.resume or not args.out:
        return []
    file = Path(args.out, "config.json")
    try:
        data = load(file)
    except InputError:
        return []
    kind = _kind(data)
    if kind not in (settings.kind, None):
        right = command({"search": "search", "training": "train"}[kind], "--resume", "--out", args.out)
        raise InputError(f"{args.out} holds a {kind}, not a {settings.kind}; resume it with: {right}")
    return [_checked(file, data, settings)]


def _kind(config: Mapping[str, Any]) -> str | None:
    """What a run is by its settings: those of a training name the architecture."""
    if "checkpoint_rounds" not in config:
        return None
    return "training" if "architecture" in config else "search"


def _checked(file: Path, data: dict[str, Any], settings: RunSettings[Any]) -> Layer:
    """A file's settings by dotted names; a wrong name or value is refused together with the file's name."""
    options = settings.options()
    groups = {setting.group[0] for setting in options.values() if setting.group}
    values: dict[str, Any] = {}
    try:
        for name, value in _flat(settings.upgrade(data), options):
            if name in groups:
                raise InputError(f"{name} is {value!r}, expected a group of settings such as {name}: {{rate: 0.01}}")
            if name in _TYPED:
                if value:
                    raise InputError(f"{name} is not read from a file; remove it, and type --{name}")
                continue
            if name == "preset":
                require_known("preset", value, settings.presets)
            elif name not in options:
                raise InputError(f"unknown setting {name!r}; {nearest(name, options, '--help lists all')}")
            values[name] = options[name].check(value) if name in options else value
        if "method" in values:
            require_known("method", values["method"], settings.methods)
    except InputError as error:
        raise InputError(f"{file}: {error}") from None
    return values


def _flat(data: Mapping[str, Any], options: Mapping[str, Setting], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Groups as dotted names; the value of a setting may be a mapping itself."""
    for name, value in data.items():
        if isinstance(value, Mapping) and f"{prefix}{name}" not in options:
            yield from _flat(value, options, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _reader(option: str, setting: Setting, load: Callable[[str], object] | None) -> Callable[[str], Any]:
    """From what was typed to a value; a user's own part is imported."""
    named = replace(setting, name=option)

    def read(text: str) -> Any:
        parts = setting.registry
        if load is not None:
            load(text)
        elif parts is not None and ":" in text and text not in parts:
            parts.load(text)
        return named.read(text)

    return read


def _values(setting: Setting) -> str:
    if setting.kind is bool:
        return "{true,false}"
    return f"{{{','.join(get_args(setting.kind))}}}" if get_origin(setting.kind) is Literal else "VALUE"


def _help(setting: Setting, settings: RunSettings[Any]) -> str:
    names = settings.offered.get(setting.name, tuple(setting.registry or ()))
    own = ", or your own package.module:name" if setting.registry or setting.name in settings.loaders else ""
    parts = f": {', '.join(names)}{own}" if names else ""
    default = setting.default
    shown = "" if default in (None, "") else default if isinstance(default, str) else json.dumps(default)
    return f"{setting.help}{parts}{f' (default: {shown})' if shown else ''}".replace("%", "%%")


def how(args: Namespace) -> Options:
    """How a run starts, from the command line."""
    return Options(resume=args.resume, overwrite=args.overwrite, accept_changed_data=args.accept_changed_data)
