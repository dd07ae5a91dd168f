"""`idarts completion SHELL`: a script that completes commands, options and the names of parts.

The script is made once and asks nothing of Python afterwards: a key press must not wait until torch is imported.
"""

import re
from argparse import SUPPRESS, Action, Namespace, _SubParsersAction
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from idarts.cli.console import say
from idarts.cli.parser import Parser, RawHelp, one_of

_PLAIN = re.compile(r"[\w.+-]+")  # words that no shell expands; others are left out


@dataclass(frozen=True)
class Option:
    """An option, or a positional argument if it has no names."""

    names: tuple[str, ...]
    values: tuple[str, ...]  # names that can be its value
    takes_value: bool
    help: str


@dataclass(frozen=True)
class Command:
    """A command, such as `arch show`: the words that call it, the commands below it, and its options."""

    path: tuple[str, ...]
    below: dict[str, str]  # command → its help
    options: tuple[Option, ...]

    def words(self) -> list[str]:
        """What can stand where no option is typed: commands, or the names of a positional argument."""
        return [*self.below, *(value for option in self.options if not option.names for value in option.values)]


def add_arguments(parser: Parser) -> None:
    """The shell."""
    parser.add_argument("shell", metavar="SHELL", type=one_of("SHELL", SHELLS), help="bash, zsh or fish")
    parser.formatter_class = RawHelp
    parser.epilog = (
        "where the script belongs:\n"
        "  idarts completion bash > ~/.local/share/bash-completion/completions/idarts\n"
        "  idarts completion fish > ~/.config/fish/completions/idarts.fish\n"
        "  idarts completion zsh  > ~/.idarts-completion.zsh     # and `source` it in ~/.zshrc, after compinit"
    )


def run(args: Namespace) -> None:
    """Print the script for a shell."""
    from idarts.cli import build_parser  # noqa: PLC0415 (it imports this module to call it)

    say(SHELLS[args.shell](list(commands(build_parser()))), end="")


def commands(parser: Parser, path: tuple[str, ...] = ()) -> Iterator[Command]:
    """A command and all commands below it, with everything that they take.

    >>> parser = Parser(prog="count")
    >>> _ = parser.add_argument("--part", type=one_of("--part", ["train", "test"]))
    >>> [option.values for command in commands(parser) for option in command.options if "--part" in option.names]
    [('train', 'test')]
    """
    parser.load()
    below: dict[str, Parser] = {}
    helps: dict[str, str] = {}
    options = []
    for action in parser._actions:
        if isinstance(action, _SubParsersAction):
            below = action.choices
            helps = {choice.dest: choice.help or "" for choice in action._choices_actions}
        elif action.help is not SUPPRESS:
            options.append(_option(action))
    yield Command(path, {name: helps.get(name, "") for name in below}, tuple(options))
    for name, command in below.items():
        yield from commands(command, (*path, name))


def _option(action: Action) -> Option:
    values = tuple(name for name in getattr(action.type, "names", ()) if _PLAIN.fullmatch(name))
    text = " ".join((action.help or "").replace("%%", "%").split())
    return Option(tuple(action.option_strings), values, action.nargs != 0, text)


def bash(tree: list[Command]) -> str:
    """The script for bash."""
    steps = [f'"{" ".join(c.path[:-1])} {c.path[-1]}") command="{" ".join(c.path)}" ;;' for c in tree if c.path]
    values = [
        f'{_either(command, option)}) names="{" ".join(option.values)}"; value=yes ;;'
        for command in tree
        for option in command.options
        if option.names and option.takes_value
    ]
    words = [f'"{" ".join(c.path)}") names="{" ".join(c.words())}" ;;' for c in tree if c.words()]
    options = [
        f'"{" ".join(c.path)}") names="{" ".join(name for option in c.options for name in option.names)}" ;;'
        for c in tree
    ]
    return _BASH.format(
        steps=_lines(steps, 12), values=_lines(values, 8), words=_lines(words, 12), options=_lines(options, 12)
    )


def _either(command: Command, option: Option) -> str:
    return "|".join(f'"{" ".join(command.path)} {name}"' for name in option.names)


def _lines(lines: list[str], indent: int) -> str:
    return f"\n{' ' * indent}".join(lines)


_BASH = """\
# Completion for idarts; `idarts completion` made it.
_idarts() {{
    local current="${{COMP_WORDS[COMP_CWORD]}}" command="" names="" value="" place
    for ((place = 1; place < COMP_CWORD; place++)); do
        case "$command ${{COMP_WORDS[place]}}" in
            {steps}
        esac
    done
    case "$command ${{COMP_WORDS[COMP_CWORD - 1]}}" in
        {values}
    esac
    if [[ -n $value ]]; then
        :
    elif [[ $current == -* ]]; then
        case "$command" in
            {options}
        esac
    else
        case "$command" in
            {words}
        esac
    fi
    COMPREPLY=($(compgen -W "$names" -- "$current"))
}}
complete -o default -F _idarts idarts
"""


def zsh(tree: list[Command]) -> str:
    """The script for zsh, which can use bash's completions."""
    return f"autoload -U +X bashcompinit && bashcompinit\n{bash(tree)}"


def fish(tree: list[Command]) -> str:
    """The script for fish, which also shows the help texts."""
    lines = ["# Completion for idarts; `idarts completion` made it."]
    for command in tree:
        seen = [f"__fish_seen_subcommand_from {word}" for word in command.path]
        missing = [f"not __fish_seen_subcommand_from {' '.join(command.below)}"] if command.below else []
        start = f"complete -c idarts -n {_quoted('; and '.join([*seen, *missing]))}"
        lines += [f"{start} -f -a {name} -d {_quoted(text)}" for name, text in command.below.items()]
        shown = [option for option in command.options if option.names or option.values]
        lines += [f"{start}{_flags(option)} -d {_quoted(option.help)}" for option in shown]
    return "\n".join(lines) + "\n"


def _flags(option: Option) -> str:
    names = "".join(f" -l {name[2:]}" if name.startswith("--") else f" -s {name[1:]}" for name in option.names)
    if option.values:
        return f"{names} -x -a {_quoted(' '.join(option.values))}"
    return f"{names} -r" if option.names and option.takes_value else names


def _quoted(text: str) -> str:
    r"""Text in fish's single quotes.

    >>> _quoted("a run's α") == r"'a run\'s α'"
    True
    """
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


SHELLS: dict[str, Callable[[list[Command]], str]] = {"bash": bash, "zsh": zsh, "fish": fish}
