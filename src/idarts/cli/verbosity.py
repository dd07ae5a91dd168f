"""How much a command says on stderr: `-q`, as usual, `-v`, `-vv`. The library only writes to the logger `idarts`."""

import logging
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from idarts.cli.console import say

LOGGER = logging.getLogger("idarts")


class _Stderr(logging.Handler):
    """Prints to the stderr of the moment: a live view replaces it to stay below what others print."""

    def emit(self, record: logging.LogRecord) -> None:
        say(self.format(record), file=sys.stderr, flush=True)


@contextmanager
def verbosity(verbose: int, quiet: bool) -> Iterator[None]:
    """Show the records of the logger `idarts`, from a level on; with `quiet` also no warnings and no progress."""
    handler, before = _Stderr(), LOGGER.level
    handler.setFormatter(logging.Formatter("%(name)s: %(message)s"))
    LOGGER.addHandler(handler)
    LOGGER.setLevel(logging.ERROR if quiet else (logging.WARNING, logging.INFO, logging.DEBUG)[min(verbose, 2)])
    if quiet:
        warnings.simplefilter("ignore")  # `main` restores the filters
    try:
        yield
    finally:
        LOGGER.removeHandler(handler)
        LOGGER.setLevel(before)


def quiet() -> bool:
    """Whether `-q` was typed."""
    return LOGGER.getEffectiveLevel() >= logging.ERROR
