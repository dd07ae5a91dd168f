"""The pages of `idarts watch`: the list of all runs, and the report of each. Reads files, writes none."""

import hashlib
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from pathlib import Path
from threading import Lock
from typing import Any

from idarts.engine.folder import CONFIG, METRICS, is_run
from idarts.engine.following import Follower
from idarts.errors import InputError
from idarts.files import utf8
from idarts.pages.chart import Chart
from idarts.pages.report import TEMPLATE, content
from idarts.pages.template import part, render
from idarts.pages.watch.card import Card, card, problem, state
from idarts.pages.watch.feed import Feed

MOST = 500  # runs that one page lists
DEEPEST = 3  # folders between a named one and its runs
SLICE = 0.3  # seconds of reading, at most, before an answer
_PAUSE = 0.5  # seconds between two looks at the files, however many browsers ask
_LIST = "watch.html.j2"
_WAITING = "waiting.html.j2"


@dataclass
class Watched:
    """One run: its files, its card and its report, as far as they were made."""

    name: str
    follower: Follower
    looked: float = 0.0
    card: Card | None = None
    carded: int = -1  # the follower's `changes` when the card was made
    feed: Feed = field(default_factory=Feed)
    values: dict[str, Any] | None = None  # of the report; None before the first round
    problem: str = ""
    reported: int = -1


class Site:
    """Runs in folders, which may be runs or hold runs. Its methods can be called from several threads.

    >>> Site([Path("no-such-run")])
    Traceback (most recent call last):
    idarts.errors.InputError: no-such-run does not exist; name a run folder, or a folder of runs
    """

    def __init__(self, folders: Sequence[Path]) -> None:
        for folder in folders:
            if not folder.is_dir():
                raise InputError(f"{folder} does not exist; name a run folder, or a folder of runs")
        self.folders = folders
        self._lock, self._runs, self._keys = Lock(), dict[str, Watched](), dict[Path, str]()
        self._feed, self._cards = Feed(), list[Card]()
        self._looked, self._search_at, self._more = -_PAUSE, 0.0, False
        self._look()

    @property
    def start(self) -> str:
        """Where to begin, below the list's address: at the report if a single run is all there can be."""
        return "1/" if len(self.folders) == 1 and (self.folders[0] / CONFIG).exists() else ""

    def __contains__(self, key: str) -> bool:
        """Whether a run has this key in its address."""
        return key in self._runs

    def page(self, key: str | None = None) -> str:
        """The list, or the report of a run."""
        with self._lock:
            if key is None:
                self._update_list()
                live = {"after": self._feed.tick, "shape": self._list_shape(), "back": "", "name": ""}
                return render(_LIST, live=live, cards=self._cards, folders=[str(folder) for folder in self.folders])
            one = self._runs[key]
            self._update_report(one)
            live = {"after": one.feed.tick, "shape": _shape(one), "problem": one.problem, "name": one.name}
            live["back"] = "" if self.start else "../"
            if one.values is None:
                return render(_WAITING, live=live, name=one.name)
            return render(TEMPLATE, live=live, **one.values)

    def news(self, after: int, key: str | None = None) -> bytes:
        """What has changed since a tick, as JSON; `wait` is how long the browser should wait before it asks again."""
        with self._lock:
            start = time.process_time()
            if key is None:
                self._update_list()
                feed, shape = self._feed, self._list_shape()
            else:
                self._update_report(self._runs[key])
                feed, shape = self._runs[key].feed, _shape(self._runs[key])
            took = time.process_time() - start
            # At most a twentieth of one core for a page, unless there is an old log to read.
            wait = 0.1 if self._more else min(30.0, max(1.0, 20 * took))
            news = {"after": feed.tick, "shape": shape, "wait": round(1000 * wait), **feed.since(after)}
        return utf8(json.dumps(news, separators=(",", ":"), allow_nan=False, ensure_ascii=False))

    def _look(self, first: Watched | None = None) -> None:
        """Read what is new in all runs, for a limited time: very long logs take several looks."""
        now = time.monotonic()
        if now - self._looked < _PAUSE and not self._more:
            return
        if now >= self._search_at:
            self._find_runs()
            self._search_at = now + 20 * (time.monotonic() - now)  # large folders less often
            now = time.monotonic()
        self._more = False
        for one in sorted(self._runs.values(), key=lambda one: (one is not first, one.looked)):
            if time.monotonic() > now + SLICE:
                self._more = True
                break
            while one.follower.look():
                if time.monotonic() > now + SLICE:
                    self._more = True
                    break
            one.looked = time.monotonic()
        self._looked = time.monotonic()

    def _find_runs(self) -> None:
        for folder, name in _run_folders(self.folders):
            if folder not in self._keys and len(self._runs) < MOST:
                self._keys[folder] = key = str(len(self._runs) + 1)
                self._runs[key] = Watched(name, Follower(folder))

    def _update_list(self) -> None:
        self._look()
        for key, one in self._runs.items():
            if one.carded != one.follower.changes or one.card is None:
                one.card, one.carded = _card(key, one), one.follower.changes
        newest = sorted(self._runs.values(), key=lambda one: -one.follower.started)
        self._cards = [one.card for one in newest if one.card]
        self._feed.put(
            {
                f"{one.key}/{name}": text
                for one in self._cards
                for name, text in (("facts", part("run_facts", one)), ("problem", escape(one.problem)))
            },
            {one.chart.name: one.chart for one in self._cards if one.chart},
        )

    def _list_shape(self) -> str:
        return _digest([[one.key, one.shape] for one in self._cards])

    def _update_report(self, one: Watched) -> None:
        self._look(one)
        if one.reported == one.follower.changes:
            return
        one.reported, one.values, one.problem = one.follower.changes, None, problem(one.follower)
        try:
            one.values = _values(one.follower)
        except Exception as error:  # as below
            one.problem = _odd(error)
        texts = {"problem": escape(one.problem), **_texts(one.values or {})}
        one.feed.put(texts, {chart.name: chart for chart in _charts(one.values or {})})


def _card(key: str, one: Watched) -> Card:
    """A card, even of a run whose files hold what no run writes."""
    try:
        return card(key, one.name, one.follower)
    except Exception as error:  # one odd run must not hide all others
        return Card(key, one.name, "Unreadable", "stopped", "", [], _odd(error))


def _odd(error: Exception) -> str:
    return f"this run cannot be shown ({type(error).__name__}: {error}); `idarts --debug report` says more"


def _values(follower: Follower) -> dict[str, Any] | None:
    """The values of a run's report; None before the first round."""
    run = follower.run
    if run is None:
        return None
    values = content(run)
    about = values["about"]
    return {**values, "about": replace(about, state=state(follower, about.state))}


def _texts(values: Mapping[str, Any]) -> dict[str, str]:
    """The parts of a report that change while its run works, as HTML."""
    if not values:
        return {}
    about = values["about"]
    made = {
        "tiles": part("tile_list", values["tiles"]),
        "notes": part("note_list", about.notes),
        "architecture": part("architecture", values["cell"]),
        "commands": part("command_list", values["commands"]),
        "costs": part("table", values["costs"], "Time and cost"),
    }
    return {**made, "heat": part("heat_map", values["heat"], values["span"])} if values["heat"] else made


def _charts(values: Mapping[str, Any]) -> Iterator[Chart]:
    if values:
        yield from (*values["about"].progress, *values["alpha"], *values["hypergradient"], *values["others"])


def _shape(one: Watched) -> str:
    """A digest of all that needs a new page when it changes: the run itself, its sections, its charts."""
    if one.values is None:
        return "waiting"
    values = one.values
    drawn = [[chart.name, chart.title, *(curve.name for curve in chart.curves)] for chart in _charts(values)]
    return _digest([values["about"].state, bool(values["heat"]), values["settings"], drawn])


def _digest(data: Any) -> str:
    return hashlib.sha256(json.dumps(data).encode()).hexdigest()[:16]


def _run_folders(folders: Sequence[Path]) -> Iterator[tuple[Path, str]]:
    """The run folders in named folders, with a name for each; links below a named folder are not followed."""
    for folder in folders:
        if (folder / CONFIG).exists():
            yield folder.resolve(), str(folder)
        else:
            root, shown = folder.resolve(), folder if len(folders) > 1 else Path()
            yield from ((path, str(shown / path.relative_to(root))) for path in _below(root, DEEPEST))


def _below(folder: Path, deep: int) -> Iterator[Path]:
    try:
        with os.scandir(folder) as entries:
            inside = sorted(one.name for one in entries if one.name[0] != "." and one.is_dir(follow_symlinks=False))
    except OSError:  # deleted, or not ours to read
        return
    for path in (folder / name for name in inside):
        if (path / METRICS).exists() or ((path / CONFIG).is_file() and is_run(path)):
            yield path
        elif deep > 1:
            yield from _below(path, deep - 1)
