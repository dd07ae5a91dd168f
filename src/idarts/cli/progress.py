"""How a search or a training goes, told on stderr: a live view on a terminal, elsewhere a plain line now and then."""

import math
import sys
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from types import TracebackType
from typing import Any, NamedTuple, Self

from rich.console import Console, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from idarts.arch import Architecture
from idarts.searching.loop import Search
from idarts.searching.round import Round
from idarts.training.loop import Round as TrainRound
from idarts.training.loop import Training

LINE_SECONDS = 2.0  # between two plain lines
VIEW_SECONDS = 0.25  # between two states of the live view
CELL_LINES = 4  # of the live view, at most


class Told(NamedTuple):
    """What is said of one kind of work: the middle of a plain line, and rows of the live view for its width."""

    line: Callable[[Any, Any], str]
    rows: Callable[[Any, Any, int], Iterator[tuple[str, RenderableType]]]


class Progress:
    """To be called after every round. Inside `with`, on a terminal, it is a live view; else it writes plain lines.

    `rounds` is the number to count to, else the work's own, which follows a budget in epochs, too; `told` is what is
    said, of a search unless given.

    >>> from types import SimpleNamespace
    >>> found = Round(1, train_loss=2.3, valid_loss=2.4, rate=0.02, entropy=1.0, margin=0.0, gradient_evaluations=5.0)
    >>> search = SimpleNamespace(total=1, used=lambda: 1.0)  # stands for a `Search`
    >>> with Progress(console=Console(file=sys.stdout, force_terminal=False)) as progress:
    ...     progress(found, search)
    round     1/1  train loss  2.300  valid loss  2.400  α entropy 1.000     0 s left
    """

    def __init__(self, rounds: int | None = None, console: Console | None = None, told: Told | None = None) -> None:
        self.rounds, self.console, self.told = rounds, console or _stderr(), told or SEARCH
        self.shown = -LINE_SECONDS
        self.first: _Moment | None = None  # not of round 1 in a resumed run
        self.latest: tuple[_Moment, Any, Any] | None = None
        self.live: Live | None = None
        self.telling: str | None = None  # of what it told last, if that was no round

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
            if self.latest and not isinstance(error, Exception):  # after an interrupt, too, the last round stays
                live.update(self._view(*self.latest))
        finally:
            live.stop()

    def __call__(self, found: Any, work: Any) -> None:
        now = _Moment(time.monotonic(), found.number, work.used())
        ends = now.share >= 1 or found.number >= work.total or self.first is None
        self.first = self.first or now
        self.latest, self.telling = (now, found, work), None
        if now.time - self.shown < (VIEW_SECONDS if self.live else LINE_SECONDS) and not ends:
            return
        self.shown = now.time
        if self.live:
            self.live.start()  # only now: whatever fails before the first round leaves no empty view
            self.live.update(self._view(now, found, work), refresh=True)
        else:
            print(self._line(now, found, work), file=self.console.file, flush=True)

    def tell(self, said: str) -> None:
        """How that goes which is no round: a warm-up, a selection."""
        now, kind = time.monotonic(), said.partition(":")[0]
        if kind == self.telling and now - self.shown < (VIEW_SECONDS if self.live else LINE_SECONDS):
            return
        self.shown, self.telling = now, kind
        if self.live:
            view = self._view(*self.latest) if self.latest else Table.grid(padding=(0, 2))
            view.add_row("now", said)
            self.live.start()
            self.live.update(view, refresh=True)
        else:
            print(said, file=self.console.file, flush=True)

    def _left(self, now: "_Moment") -> float | None:
        """Seconds, if the rest of the budget goes as it went since the first round."""
        first = self.first or now
        if now.share >= 1:
            return 0.0
        gained = now.share - first.share
        return (now.time - first.time) * (1 - now.share) / gained if gained else None

    def _line(self, now: "_Moment", found: Any, work: Any) -> str:
        left = self._left(now)
        remains = "" if left is None else f"  {left:4.0f} s left"
        return f"round {found.number:>5}/{self.rounds or work.total}  {self.told.line(found, work)}{remains}"

    def _view(self, now: "_Moment", found: Any, work: Any) -> Table:
        first, left = self.first or now, self._left(now)
        seconds = now.time - first.time
        speed = f"{(now.number - first.number) / seconds:.2f} rounds/s" if seconds else ""
        remains = "" if left is None else f"{timedelta(seconds=round(left))} left"
        bar = Table.grid(padding=(0, 2))
        width = max(8, min(30, self.console.width - 50))
        count = f"{found.number}/{self.rounds or work.total}"
        bar.add_row(ProgressBar(1.0, now.share, width=width), count, speed, remains)
        view = Table.grid(padding=(0, 2))
        view.add_column(style="dim", no_wrap=True)
        view.add_row("round", bar)
        for name, row in self.told.rows(found, work, self.console.width):
            view.add_row(name, row)
        return view


class _Moment(NamedTuple):
    time: float
    number: int
    share: float  # of the budget


def cell_text(architecture: Architecture) -> str:
    """An architecture in few words; each operation is followed by the node that it reads.

    >>> cell_text(Architecture("choice", choices={"block1": "conv3", "block2": "skip"}))
    'block1=conv3 block2=skip'
    >>> from idarts.arch import parse
    >>> cell_text(parse("DARTS_V2"))[:57]
    'normal |sep_conv_3x3~0|sep_conv_3x3~1| + |sep_conv_3x3~0|'
    """
    if architecture.choices:
        return " ".join(f"{name}={branch}" for name, branch in architecture.choices.items())
    texts = []
    for name, cell in architecture.cells.items():
        targets: dict[int, list[str]] = {}
        for source, target, op in cell.edges:
            targets.setdefault(target, []).append(f"{op or ''}~{source}")
        ops = dict(enumerate(cell.ops, start=1))  # where operations sit on the nodes
        nodes = [f"{ops.get(node, '')}|{'|'.join(inputs)}|" for node, inputs in targets.items()]
        texts.append(f"{name} {' + '.join(nodes)}" if len(architecture.cells) > 1 else " + ".join(nodes))
    return "\n".join(texts)


def _stderr() -> Console:
    """Without a terminal there is no live view, not even where colours are forced."""
    return Console(stderr=True, force_interactive=None if sys.stderr.isatty() else False)


def _search_line(found: Round, _search: Search) -> str:
    accuracy = "" if found.valid_accuracy is None else f"  valid {100 * found.valid_accuracy:5.1f} %"
    losses = f"train loss {found.train_loss:6.3f}  valid loss {found.valid_loss:6.3f}"
    return f"{losses}{accuracy}  α entropy {found.entropy:.3f}"


def _search_rows(found: Round, search: Search, width: int) -> Iterator[tuple[str, RenderableType]]:
    architecture = search.current()
    cell = Text(cell_text(architecture), overflow="fold")
    cell.truncate(CELL_LINES * max(8, width - 8), overflow="ellipsis")
    yield "loss", _quality(found)
    yield "α", _hypergradient(found)
    yield "series", _series(found)
    yield "cell", cell
    if search.truth:
        yield "table", f"{search.truth.accuracy(architecture):.2f} % test accuracy of this cell, trained in full"


def _training_line(found: TrainRound, _training: Training) -> str:
    held = "" if found.valid_accuracy is None else f"  held out {_percent(found.valid_accuracy):>6}"
    return f"epoch {found.epoch:6.2f}  {_trained(found)}{held}"


def _training_rows(found: TrainRound, training: Training, _width: int) -> Iterator[tuple[str, RenderableType]]:
    yield "epoch", f"{found.epoch:.2f} of {training.settings.epochs}"
    yield "train", _trained(found)
    if found.valid_accuracy is not None:
        yield "held out", f"loss {found.valid_loss:6.3f}  accuracy {_percent(found.valid_accuracy)}"
    yield "rate", f"{found.rate:.3g}" + (f"  drop-path {found.drop_path:.3f}" if found.drop_path else "")


def _trained(found: TrainRound) -> str:
    loss = "     –" if found.train_loss is None else f"{found.train_loss:6.3f}"
    skipped = f"  {found.skipped} steps skipped" if found.skipped else ""
    return f"train loss {loss}  accuracy {_percent(found.train_accuracy):>6}{skipped}"


def _quality(found: Round) -> str:
    train, valid = (_percent(share) for share in (found.train_accuracy, found.valid_accuracy))
    return f"train {found.train_loss:.3f}  valid {found.valid_loss:.3f}  accuracy  train {train}  valid {valid}"


def _hypergradient(found: Round) -> Text:
    spread = f"entropy {found.entropy:.3f}, margin {found.margin:.3f}"
    if math.isnan(found.valid_loss):
        return Text.assemble(f"{spread}  ", ("round skipped: a number was not finite", "bold yellow"))
    if found.norm is None:  # a method without hypergradients
        return Text(spread)
    return Text(f"{spread}  hypergradient {found.norm:.2e}, implicit {_percent(found.implicit_share)}")


def _series(found: Round) -> Text:
    step = "–" if found.step is None else f"{found.step:.3g}"
    if found.contraction is None:
        return Text(f"γ {step}  contraction –")
    diverges = found.contraction > 1
    contraction = f"contraction {found.contraction:.3g}" + (", over 1: it diverges" if diverges else "")
    return Text.assemble(f"γ {step}  ", (contraction, "bold red" if diverges else ""))


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f} %"


SEARCH = Told(_search_line, _search_rows)
TRAINING = Told(_training_line, _training_rows)
