"""One run in the list of all: its state, a few numbers, one curve, and what is wrong with it."""

from dataclasses import dataclass, replace

from idarts.engine.following import Follower
from idarts.errors import command
from idarts.pages import search, training
from idarts.pages.about import Rows, total
from idarts.pages.chart import Chart
from idarts.pages.measures import SEARCH, TRAINING, charts
from idarts.pages.numbers import duration


@dataclass(frozen=True)
class Card:
    """What the list shows of a run; `mark` is done, open or stopped."""

    key: str
    name: str
    state: str
    mark: str
    subtitle: str
    facts: Rows
    problem: str
    chart: Chart | None = None

    @property
    def shape(self) -> str:
        """Two cards with the same shape differ in texts and points alone."""
        return "/".join([self.chart.title, *(curve.name for curve in self.chart.curves)]) if self.chart else ""


def card(key: str, name: str, follower: Follower) -> Card:
    """The card of a run as it was last read.

    >>> from pathlib import Path
    >>> card("1", "run", Follower(Path("run"))).state
    'No rounds yet'
    """
    run = follower.run
    if run is None:
        return Card(key, name, "No rounds yet", "open", "", [], problem(follower))
    head = training.head(run) if run.trains else search.head(run)
    kept = TRAINING if run.trains else SEARCH
    drawn = charts(run, kept[:2]) or charts(run, kept)  # loss and accuracy, as far as they were logged
    mark = "stopped" if follower.stopped else "open" if run.result is None else "done"
    subtitle = f"{head.heading} {head.subtitle}"
    chart = replace(drawn[-1], name=f"{key}/{drawn[-1].name}", reading="") if drawn else None
    facts = [
        head.tiles[0],
        *(tile for tile in head.tiles if tile[0].startswith(("test", "held-out"))),
        ("time", duration(total(run, "seconds"))),
    ]
    return Card(key, name, state(follower, head.state), mark, subtitle, facts, problem(follower), chart)


def state(follower: Follower, known: str) -> str:
    """The state of a run in words; `known` is what its files say."""
    return known.replace("in progress", "stopped") if follower.stopped else known


def problem(follower: Follower) -> str:
    """One line about what is wrong with a run; empty if nothing is.

    >>> from pathlib import Path
    >>> missing = Follower(Path("no-such-run"))
    >>> _ = missing.look()
    >>> problem(missing)
    'no-such-run/config.json does not exist: the run was deleted, or is being replaced'
    """
    run = follower.run
    if follower.problem or run is None or not follower.stopped:
        return follower.problem if run or follower.problem != "no rounds yet" else ""
    resume = command("train" if run.trains else "search", "--resume", "--out", follower.folder)
    return f"no process on this machine works on it; `{resume}` continues it"
