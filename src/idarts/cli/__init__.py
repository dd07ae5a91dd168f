"""The command line: a thin shell. Each command is a module with `add_arguments(parser)` and `run(args)`.

Exit codes: 0 done, 1 a failure, 2 a user's mistake, 130 interrupted. A traceback only with `--debug`.
"""

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from idarts._version import __version__
from idarts.errors import InputError

if TYPE_CHECKING:
    from jsonargparse import ArgumentParser

# command → (module, one line of help). A module is imported only when its command is called: `--help` stays quick.
COMMANDS: dict[str, tuple[str, str]] = {
    "arch": ("idarts.cli.arch", "List, show, draw and convert architectures."),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; every error is one line on stderr.

    >>> main(["--version"])
    idarts 0.1.0
    0
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    debug = "--debug" in arguments
    try:
        _run([argument for argument in arguments if argument != "--debug"])
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 0
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        if debug:
            raise
        hint = "" if isinstance(error, InputError) else " (run again with --debug for the traceback)"
        print(f"idarts: {_one_line(error)}{hint}", file=sys.stderr)
        return 2 if isinstance(error, InputError) else 1
    return 0


def _run(arguments: list[str]) -> None:
    if arguments == ["--version"]:
        print(f"idarts {__version__}")
        return
    command = next((argument for argument in arguments if argument in COMMANDS), None)
    parser = _parser(command)
    if not arguments:
        parser.print_help()
        return
    args = parser.parse_args(arguments)
    if command:
        import_module(COMMANDS[command][0]).run(args[command])


def _parser(command: str | None) -> "ArgumentParser":
    from jsonargparse import ArgumentParser  # noqa: PLC0415 (keeps `import idarts` and `--version` quick)

    parser = ArgumentParser(
        prog="idarts",
        description="Search neural architectures by gradients (iDARTS), and trust what came out.",
        epilog="`idarts COMMAND --help` explains a command.",
    )
    parser.add_argument("--version", action="version", version=f"idarts {__version__}", help="show the version")
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    if COMMANDS:
        commands = parser.add_subcommands(dest="command", required=True)
        for name, (module, summary) in COMMANDS.items():
            subparser = ArgumentParser(description=summary)
            commands.add_subcommand(name, subparser, help=summary)
            if name == command:
                import_module(module).add_arguments(subparser)
    return parser


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
