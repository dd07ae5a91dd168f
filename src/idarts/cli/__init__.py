"""The command line: a thin shell. Each command is a module with `add_arguments(parser)` and `run(args)`.

Exit codes: 0 done, 1 a failure, 2 a user's mistake, 130 interrupted, 141 nobody reads the output any more. An error is
one line on stderr; `idarts --debug COMMAND …` shows its traceback.
"""

import os
import select
import sys
import warnings
from argparse import Namespace
from collections.abc import Sequence

from idarts._version import __version__
from idarts.cli.console import say
from idarts.cli.memory import keep_freed_memory
from idarts.cli.parser import Parser
from idarts.cli.verbosity import verbosity
from idarts.errors import InputError

PIPE = 141  # 128 and the number of the signal SIGPIPE, as in a shell
# command → (module, one line of help). A module is imported only when its command is called: `--help` stays quick.
COMMANDS: dict[str, tuple[str, str]] = {
    "fit": ("idarts.cli.fit", "From a folder of images to a network: search, train, compare, export."),
    "search": ("idarts.cli.search", "Search for an architecture, or resume a search."),
    "methods": ("idarts.cli.methods", "List the search methods and the axes that make them."),
    "train": ("idarts.cli.train", "Train an architecture from scratch, or resume a training."),
    "arch": ("idarts.cli.arch", "List, show, draw and convert architectures."),
    "table": ("idarts.cli.table", "Look up true accuracies in benchmark tables."),
    "evaluate": ("idarts.cli.evaluate", "Evaluate a trained network: accuracy, confusions, calibration."),
    "predict": ("idarts.cli.predict", "Predict the classes of image files."),
    "export": ("idarts.cli.export", "Export a trained network: safetensors, ONNX, torch.export."),
    "profile": ("idarts.cli.profile", "Measure what a network costs on this machine."),
    "reproduce": ("idarts.cli.reproduce", "Repeat the paper's experiments: tables, figures, theorems."),
    "sweep": ("idarts.cli.sweep", "Run many searches from one file: methods, spaces, seeds, settings."),
    "compare": ("idarts.cli.compare", "Compare runs: mean and deviation, paired tests, equal-cost curves."),
    "doctor": ("idarts.cli.doctor", "Check this machine: versions, devices, data, tables, extras."),
    "report": ("idarts.cli.report", "Write a run's report: one HTML file that opens offline."),
    "watch": ("idarts.cli.watch", "Follow runs in a browser while they work."),
    "completion": ("idarts.cli.completion", "Print a script that completes commands and options in a shell."),
}
# module → the extra that installs it
EXTRAS = {"rich": "cli", "yaml": "cli", "PIL": "cli", "sklearn": "cli"}
EXTRAS |= {"scipy": "experiments", "jinja2": "report", "waitress": "watch"}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code.

    >>> main(["--version"])
    idarts 0.2.0
    0
    """
    if argv is None:  # the process is ours
        keep_freed_memory()
    code = _main(list(sys.argv[1:] if argv is None else argv))
    return code if _flush() else PIPE


def _main(arguments: list[str]) -> int:
    args = Namespace(debug=False, verbose=0, quiet=False)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            _run(arguments, args)
    except SystemExit as stop:
        if isinstance(stop.__context__, BrokenPipeError):  # rich ends like this
            return PIPE
        return stop.code if isinstance(stop.code, int) else 0
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        if isinstance(error, BrokenPipeError) and _hung_up():
            return PIPE
        if args.debug:
            raise
        return _report(error)
    return 0


def _run(arguments: list[str], args: Namespace) -> None:
    """Parse and run; options are in `args` as soon as they are known, also when a later one is wrong."""
    build_parser().parse_args(arguments, args)
    with verbosity(args.verbose, args.quiet):
        args.run_command(args)


def build_parser() -> Parser:
    """The parser of all commands; each of them loads its own arguments when it is typed."""
    parser = Parser(
        prog="idarts",
        description="Search for neural architectures with gradients (iDARTS), and check the results.",
        epilog="`idarts COMMAND --help` explains a command.",
    )
    parser.add_argument("--version", action="version", version=f"idarts {__version__}", help="show the version")
    parser.set_defaults(run_command=lambda _: parser.print_help())
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    for name, (module, summary) in COMMANDS.items():
        commands.add_parser(name, module=module, help=summary, description=summary)
    return parser


def _report(error: Exception) -> int:
    """One line on stderr, and the exit code."""
    missing = (error.name or "").split(".")[0] if isinstance(error, ModuleNotFoundError) else ""
    if missing in EXTRAS:
        _print_error(f"this needs {missing}: pip install 'idarts[{EXTRAS[missing]}]'")
        return 2
    line = " ".join(str(error).split()) or type(error).__name__
    mistake = isinstance(error, InputError)
    _print_error(line if mistake else f"{line} (`idarts --debug COMMAND …` shows the traceback)")
    return 2 if mistake else 1


def _print_error(line: str) -> None:
    """On stderr; where all ranks of a job have the same error, the first one prints it."""
    line = f"idarts: {line}"
    if "TORCHELASTIC_RUN_ID" in os.environ:
        from idarts.engine.ranks import reported_by_first  # noqa: PLC0415 (brings torch)

        if reported_by_first(line):
            return
    say(line, file=sys.stderr)


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    say(f"idarts: warning: {message}", file=sys.stderr)


def _flush() -> bool:
    """Write what is left. If the reader has ended, as `| head` does, discard it without an error."""
    try:
        if sys.stdout is not None:  # it is None after `>&-`
            sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return False
    return True


def _hung_up() -> bool:
    """Whether a broken pipe is stdout, and not one to a worker."""
    watch = select.poll()
    try:
        watch.register(sys.stdout.fileno(), 0)
    except (OSError, ValueError):  # stdout is replaced by something that is not a file
        return False
    return bool(watch.poll(0))
