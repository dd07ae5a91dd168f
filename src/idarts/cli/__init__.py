"""The command line: a thin shell. Each command is a module with `add_arguments(parser)` and `run(args)`, and where
its defaults depend on what was typed, as with presets, `set_defaults(parser, arguments)`.

Exit codes: 0 done, 1 a failure, 2 a user's mistake, 130 interrupted, 141 nobody reads the output any more. A traceback
only with `--debug`.
"""

import os
import re
import select
import sys
import warnings
from argparse import ArgumentError
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from idarts._version import __version__
from idarts.errors import InputError, nearest

if TYPE_CHECKING:
    from jsonargparse import ArgumentParser

PIPE = 141  # 128 and the number of the signal SIGPIPE, as shells have it
# command → (module, one line of help). A module is imported only when its command is called: `--help` stays quick.
COMMANDS: dict[str, tuple[str, str]] = {
    "search": ("idarts.cli.search", "Search an architecture, or go on with a search."),
    "train": ("idarts.cli.train", "Train an architecture from scratch, or go on with a training."),
    "arch": ("idarts.cli.arch", "List, show, draw and convert architectures."),
    "table": ("idarts.cli.table", "Look up true accuracies in benchmark tables."),
    "evaluate": ("idarts.cli.evaluate", "Evaluate a trained network: accuracy, confusions, calibration."),
    "predict": ("idarts.cli.predict", "Name the classes of image files."),
    "export": ("idarts.cli.export", "Export a trained network: safetensors, ONNX, torch.export."),
    "profile": ("idarts.cli.profile", "Measure what a network costs on this machine."),
    "reproduce": ("idarts.cli.reproduce", "Run the paper's experiments anew: tables, figures, theorems."),
    "sweep": ("idarts.cli.sweep", "Run many searches from one file: methods, spaces, seeds, settings."),
    "compare": ("idarts.cli.compare", "Compare runs: mean and deviation, paired tests, equal-cost curves."),
    "doctor": ("idarts.cli.doctor", "Say what is found on this machine, and what is missing."),
    "report": ("idarts.cli.report", "Write a run's report: one HTML file that opens offline."),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; every error is one line on stderr.

    >>> main(["--version"])
    idarts 0.1.0
    0
    """
    code = _main(list(sys.argv[1:] if argv is None else argv))
    return code if _flushed() else PIPE


def _main(arguments: list[str]) -> int:
    debug = "--debug" in arguments
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            _run([argument for argument in arguments if argument != "--debug"])
    except SystemExit as stop:
        if isinstance(stop.__context__, BrokenPipeError):  # rich ends so
            return PIPE
        return stop.code if isinstance(stop.code, int) else 0
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        if isinstance(error, BrokenPipeError) and _hung_up():
            return PIPE
        if debug:
            raise
        hint = "" if isinstance(error, InputError) else " (run again with --debug for the traceback)"
        _say(f"idarts: {_one_line(error)}{hint}")
        return 2 if isinstance(error, InputError) else 1
    return 0


def _flushed() -> bool:
    """Write what is left, unless its reader has ended, as `| head` does: then it goes nowhere, in silence."""
    try:
        if sys.stdout is not None:  # as it is after `>&-`
            sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return False
    return True


def _hung_up() -> bool:
    """Whether a broken pipe is the one that we print to, and not one to a worker."""
    watch = select.poll()
    try:
        watch.register(sys.stdout.fileno(), 0)
    except (OSError, ValueError):  # what stands for stdout is no file
        return False
    return bool(watch.poll(0))


def _run(arguments: list[str]) -> None:
    if arguments == ["--version"]:
        print(f"idarts {__version__}")
        return
    arguments = [_with_underscores(argument) for argument in arguments]
    command = next((argument for argument in arguments if argument in COMMANDS), None)
    parser = _parser(command, arguments)
    if not arguments:
        parser.print_help()
        return
    try:
        args = parser.parse_args(arguments)
    except ArgumentError as error:
        raise InputError(_explained(_one_line(error), _options(parser, arguments))) from error
    if command:
        import_module(COMMANDS[command][0]).run(args[command])


def _parser(command: str | None, arguments: list[str]) -> "ArgumentParser":
    from jsonargparse import ArgumentParser  # noqa: PLC0415 (keeps `import idarts` and `--version` quick)

    from idarts.cli.help import Help  # noqa: PLC0415 (brings jsonargparse, too)

    parser = ArgumentParser(
        prog="idarts",
        exit_on_error=False,
        allow_abbrev=False,
        description="Search neural architectures by gradients (iDARTS), and trust what came out.",
        epilog="`idarts COMMAND --help` explains a command.",
        formatter_class=Help,
    )
    parser.add_argument("--version", action="version", version=f"idarts {__version__}", help="show the version")
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    if COMMANDS:
        commands = parser.add_subcommands(dest="command", required=True)
        for name, (module, summary) in COMMANDS.items():
            subparser = ArgumentParser(
                description=summary, exit_on_error=False, allow_abbrev=False, formatter_class=Help
            )
            commands.add_subcommand(name, subparser, help=summary)
            if name == command:
                found = import_module(module)
                found.add_arguments(subparser)
                if hasattr(found, "set_defaults"):
                    found.set_defaults(subparser, arguments)
    return parser


def _options(parser: "ArgumentParser", arguments: list[str]) -> list[str]:
    """The options of the innermost command that was typed."""
    for argument in arguments:
        commands = parser._subcommands_action
        if commands and argument in commands.choices:
            parser = commands.choices[argument]
    return list(parser._option_string_actions)


def _with_underscores(argument: str) -> str:
    """`--print-config` for `--print_config`: fields are Python names, people type dashes."""
    name, equals, value = argument.partition("=")
    return f"--{name[2:].replace('-', '_')}{equals}{value}" if name.startswith("--") else argument


def _explained(message: str, options: list[str]) -> str:
    """An unknown option's nearest neighbour, where there is one."""
    unknown = re.search(r"unrecognized arguments: (--[^\s=]+)", message)
    if unknown:
        return f"unknown option {unknown[1]}; {nearest(unknown[1], options, '--help lists all options')}"
    found = re.fullmatch(r'Parser key "(.+?)": Expected an? (.+)\. Got value: (.*)', message)
    if found is None:
        return message
    key, kind, value = found.groups()
    kind = re.sub(r"<class '(.+?)'>", r"\1", kind)
    return f"--{key} is {value!r}, expected {kind}"


def _say(line: str) -> None:
    """On stderr; what all ranks of a job have to say, the first one says."""
    if "TORCHELASTIC_RUN_ID" in os.environ:
        from idarts.engine.ranks import reported_by_first  # noqa: PLC0415 (brings torch)

        if reported_by_first(line):
            return
    print(line, file=sys.stderr)


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    print(f"idarts: warning: {message}", file=sys.stderr)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
