"""Commands that are several: `idarts table query`, `idarts arch show`. An action is a row of a table."""

from collections.abc import Callable, Mapping

from jsonargparse import ArgumentParser, Namespace

from idarts.cli.help import Help

# action → one line of help, what it needs, what it does
Actions = Mapping[str, tuple[str, Callable[[ArgumentParser], None], Callable[[Namespace], None]]]


def add_actions(parser: ArgumentParser, actions: Actions) -> None:
    """An action and what it needs."""
    commands = parser.add_subcommands(dest="action", required=True)
    for action, (summary, add, _) in actions.items():
        subparser = ArgumentParser(
            description=f"{summary}.", exit_on_error=False, allow_abbrev=False, formatter_class=Help
        )
        commands.add_subcommand(action, subparser, help=summary)
        add(subparser)


def run_action(args: Namespace, actions: Actions) -> None:
    """Run the chosen action."""
    actions[args.action][2](args[args.action])
