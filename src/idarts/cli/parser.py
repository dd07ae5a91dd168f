"""argparse with one-line errors: a wrong argument raises an `InputError` that names it as it was typed."""

import re
from argparse import (
    SUPPRESS,
    Action,
    ArgumentError,
    ArgumentParser,
    HelpFormatter,
    Namespace,
    RawDescriptionHelpFormatter,
)
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from textwrap import wrap
from typing import Any, NoReturn

from idarts.errors import InputError, nearest

_MISSING = "the following arguments are required: "  # argparse's words
_WRONG = re.compile(r"invalid (int value|float value|choice): '(.*?)'.*")  # also argparse's words
_WORDS = {"int value": "a whole number", "float value": "a number"}


class Help(HelpFormatter):
    """An option's help, followed by its default where it has one."""

    def _get_help_string(self, action: Action) -> str:
        text = action.help or ""
        silent = action.default in (None, "", SUPPRESS, []) or action.nargs == 0 or "default:" in text
        return text if silent else f"{text} (default: %(default)s)"

    def _split_lines(self, text: str, width: int) -> list[str]:
        """Names with hyphens stay whole, so that they can be copied."""
        return wrap(" ".join(text.split()), width, break_on_hyphens=False)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return "\n".join(f"{indent}{line}" for line in self._split_lines(text, width - len(indent)))


class RawHelp(RawDescriptionHelpFormatter, Help):
    """The same, but the text below the options keeps its lines."""


_HELP = partial(Help, max_help_position=28)


class Parser(ArgumentParser):
    """The parser of a command. `module` has `add_arguments` and `run`; it is imported when the command is typed.

    >>> parser = Parser(prog="count")
    >>> _ = parser.add_argument("--batch", type=int)
    >>> parser.parse_args(["--batches", "3"])
    Traceback (most recent call last):
    idarts.errors.InputError: unknown option --batches; did you mean --batch?
    """

    def __init__(self, *, module: str | None = None, **settings: Any) -> None:
        super().__init__(**{"formatter_class": _HELP, "allow_abbrev": False, "exit_on_error": False, **settings})
        self.module = module
        self.add_argument("--debug", action="store_true", default=SUPPRESS, help="show the traceback of an error")
        amount = self.add_mutually_exclusive_group()
        more, less = "print more messages to stderr; -vv prints all", "print only errors to stderr"
        amount.add_argument("-v", "--verbose", action="count", default=SUPPRESS, help=more)
        amount.add_argument("-q", "--quiet", action="store_true", default=SUPPRESS, help=less)

    def load(self) -> None:
        """Import the command's module, and add its arguments; a second call does nothing."""
        if self.module:
            command, self.module = import_module(self.module), None
            command.add_arguments(self)
            self.set_defaults(run_command=command.run)

    def parse_known_args(self, args: Iterable[str] | None = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """Parse as argparse does, but refuse unknown arguments here, where the command's own options are known."""
        self.load()
        try:
            parsed, rest = super().parse_known_args(args, namespace)
        except ArgumentError as error:
            raise InputError(self._explain(error)) from None
        if rest:
            raise InputError(self._unknown(rest[0].partition("=")[0]))
        return parsed, rest

    def error(self, message: str) -> NoReturn:
        """Called by argparse for missing arguments."""
        raise InputError(self._explain(ArgumentError(None, message)))

    def _explain(self, error: ArgumentError) -> str:
        if isinstance(error.__context__, InputError):  # raised by an option's `type`: a whole sentence
            return str(error.__context__)
        message, name = error.message, (error.argument_name or "").split("/")[-1]
        if message.startswith(_MISSING):
            return f"missing {message.removeprefix(_MISSING)}; {self.prog} --help explains the command"
        wrong = _WRONG.fullmatch(message)
        if wrong and wrong[1] in _WORDS:
            return f"{name} is {wrong[2]!r}, expected {_WORDS[wrong[1]]}"
        if wrong:  # only sub-commands have `choices`; options have `one_of`
            commands = next(action.choices for action in self._actions if action.metavar == name)
            return f"unknown {name.lower()} {wrong[2]!r}; {nearest(wrong[2], commands or [])}"
        return f"{name}: {message}" if name else message

    def _unknown(self, argument: str) -> str:
        if not argument.startswith("-"):
            return f"unexpected argument {argument!r}; {self.prog} --help explains the command"
        options = [name for name, action in self._option_string_actions.items() if action.help is not SUPPRESS]
        return f"unknown option {argument}; {meant(argument, options, f'{self.prog} --help lists all options')}"


def meant(typed: str, options: Iterable[str], otherwise: str) -> str:
    """The option that was meant: the same name in a group, a longer name, or a similar one with the same first letter.

    >>> meant("--rate", ["--batch", "--weights.rate", "--alpha.rate"], "")
    'did you mean --weights.rate or --alpha.rate?'
    >>> meant("--arch", ["--batch"], "see --help"), meant("--arch", ["--batch", "--architecture"], "")
    ('see --help', 'did you mean --architecture?')
    """
    name = typed.lstrip("-").replace("_", "-")
    options = list(options)
    same = [option for option in options if option.endswith(f".{name}")]
    same = same or [option for option in options if option.startswith(f"--{name}")]
    if same:
        return f"did you mean {' or '.join(same[:3])}?"
    # Without the rule about the first letter, --arch suggests --batch.
    return nearest(f"--{name}", [option for option in options if option[2:3] == name[:1]], otherwise)


def add_option(container: Any, name: str, **settings: Any) -> None:
    """Add an option to a parser or a section of it, to be typed with dashes or, as files have it, with underscores."""
    container.add_argument(name, **settings)
    underscored = f"--{name[2:].replace('-', '_')}"
    if underscored != name:
        container.add_argument(underscored, **{**settings, "help": SUPPRESS})


@dataclass(frozen=True)
class Reader:
    """The `type` of an option: it reads what was typed. A shell completes `names`."""

    read: Callable[[str], Any]
    names: tuple[str, ...] = ()

    def __call__(self, text: str) -> Any:
        return self.read(text)


def one_of(option: str, names: Iterable[str]) -> Reader:
    """The type of an option that takes one of some names.

    >>> one_of("--part", ["train", "test"])("tset")
    Traceback (most recent call last):
    idarts.errors.InputError: --part is 'tset'; did you mean test?
    """
    names = tuple(names)

    def read(text: str) -> str:
        if text not in names:
            raise InputError(f"{option} is {text!r}; {nearest(text, names)}")
        return text

    return Reader(read, names)


def add_action(actions: Any, name: str, summary: str, run_action: Callable[[Namespace], None]) -> Parser:
    """Add a command of a command, such as `show` of `idarts arch`; `actions` comes from `add_subparsers`."""
    parser: Parser = actions.add_parser(name, help=summary.replace("%", "%%"), description=f"{summary.rstrip('.')}.")
    parser.set_defaults(run_action=run_action)
    return parser
