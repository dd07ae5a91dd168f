"""The progress of a search or a training on stderr: a live view on a terminal, elsewhere a plain line now and then."""

import sys
import time
from collections.abc import Callable
from datetime import timedelta
from types import TracebackType
from typing import NamedTuple, Self

from rich.console import Console
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table

from idarts.cli.console import console, say
from idarts.cli.verbosity import quiet
from idarts.cli.views import SEARCH, Round, View, Work

LINE_SECONDS = 2.0  # between two plain lines
VIEW_SECONDS = 0.25  # between two states of the live view


class Progress:
    """Call it after every round. Inside `with`, on a terminal, it is a live view; else it writes plain lines.

    `rounds` replaces the number of rounds that the work itself expects, `view` the view of a search.

    >>> from types import SimpleNamespace
    >>> work = SimpleNamespace(total=1, used=lambda: 1.0)
    >>> with Progress(console=Console(file=sys.stdout, force_terminal=False)) as progress:
    ...     progress(SimpleNamespace(number=1, train_loss=2.3, valid_loss=2.4, entropy=1.0), work)
    round     1/1  train loss  2.300  valid loss  2.400  α entropy 1.000     0 s left
    """

    def __init__(self, rounds: int | None = None, console: Console | None = None, view: View | None = None) -> None:
        self.rounds, self.console, self.view = rounds, console or _stderr(), view or SEARCH
        self.shown = -LINE_SECONDS
        self.first: _Moment | None = None  # not round 1 in a resumed run
        self.latest: tuple[_Moment, Round, Work] | None = None
        self.live: Live | None = None
        self.quiet = quiet()
        self.topic: str | None = None  # of the last message, if no round came after it

    def __enter__(self) -> Self:
        if self.console.is_interactive and self.console.is_terminal:
            # No thread: rounds refresh it. What others print meanwhile goes above the view, to the same terminal.
            here = sys.stdout.isatty()
            self.live = Live(console=self.console, auto_refresh=False, redirect_stdout=here, redirect_stderr=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        live, self.live = self.live, None
        if live is None or not live.is_started:
            return
        try:
            if self.latest and not isinstance(error, Exception):  # the last round stays, also after an interrupt
                live.update(self._table(*self.latest))
        finally:
            live.stop()

    def __call__(self, latest: Round, work: Work) -> None:
        after: Callable[[], float] = getattr(work, "selection_seconds", float)
        now = _Moment(time.monotonic(), latest.number, work.used(), after())
        always = now.share >= 1 or latest.number >= work.total or self.first is None  # the first and the last round
        self.first = self.first or now
        self.latest, self.topic = (now, latest, work), None
        if self.quiet or (not always and now.time - self.shown < self._pause):
            return
        self.shown = now.time
        if self.live:
            self.live.start()  # only now: a failure before the first round leaves no empty view
            self.live.update(self._table(now, latest, work), refresh=True)
        else:
            say(self._line(now, latest, work), file=self.console.file, flush=True)

    def message(self, text: str) -> None:
        """Show a status message outside rounds, e.g. during a warm-up or a selection."""
        now, topic = time.monotonic(), text.partition(":")[0]
        if self.quiet or (topic == self.topic and now - self.shown < self._pause):
            return
        self.shown, self.topic = now, topic
        if self.live:
            table = self._table(*self.latest) if self.latest else Table.grid(padding=(0, 2))
            table.add_row("now", text)
            self.live.start()
            self.live.update(table, refresh=True)
        else:
            say(text, file=self.console.file, flush=True)

    @property
    def _pause(self) -> float:
        return VIEW_SECONDS if self.live else LINE_SECONDS

    def _left(self, now: "_Moment") -> float | None:
        """Seconds left: the rest of the budget at the pace since the first round, then the selection."""
        first = self.first or now
        if now.share >= 1:
            return now.after
        gained = now.share - first.share
        return (now.time - first.time) * (1 - now.share) / gained + now.after if gained else None

    def _line(self, now: "_Moment", latest: Round, work: Work) -> str:
        left = self._left(now)
        remaining = "" if left is None else f"  {left:4.0f} s left"
        return f"round {latest.number:>5}/{self.rounds or work.total}  {self.view.line(latest, work)}{remaining}"

    def _table(self, now: "_Moment", latest: Round, work: Work) -> Table:
        first, left = self.first or now, self._left(now)
        seconds = now.time - first.time
        speed = f"{(now.number - first.number) / seconds:.2f} rounds/s" if seconds else ""
        remaining = "" if left is None else f"{timedelta(seconds=round(left))} left"
        bar = Table.grid(padding=(0, 2))
        width = max(8, min(30, self.console.width - 50))
        count = f"{latest.number}/{self.rounds or work.total}"
        bar.add_row(ProgressBar(1.0, now.share, width=width), count, speed, remaining)
        table = Table.grid(padding=(0, 2))
        table.add_column(style="dim", no_wrap=True)
        table.add_row("round", bar)
        for name, row in self.view.rows(latest, work, self.console.width):
            table.add_row(name, row)
        return table


class _Moment(NamedTuple):
    time: float
    number: int
    share: float  # of the budget
    after: float = 0.0  # seconds of what follows the rounds


def _stderr() -> Console:
    """A live view needs a terminal, even where colours are forced."""
    return console(stderr=True, force_interactive=None if sys.stderr.isatty() else False)
