"""The progress of a search: a live view on a terminal, which is always restored, and plain lines elsewhere."""

import contextlib
import io
import os
import pty
import re
import subprocess
import sys
import warnings
from random import Random
from types import SimpleNamespace

import pytest
import torch
from rich.console import Console

from idarts.arch import Architecture, parse, sample
from idarts.cli.progress import Progress
from idarts.cli.views import cell_text
from idarts.data import Batches, load, split
from idarts.searching import Round, Task, config
from idarts.spaces import space

HIDE, SHOW = "\x1b[?25l", "\x1b[?25h"  # the cursor


@pytest.fixture(scope="module")
def search():
    """A finished search of two rounds."""
    torch.manual_seed(0)
    found = space("nas-bench-201")
    net = found.supernet(found.skeleton.changed(depth=1, channels=4), in_channels=1)
    parts = split(load("digits").train, 0.5, seed=0)
    search = Task(net, *(Batches(part, 16) for part in parts), config(rounds=2)).search()
    search.seen = list(search.rounds())
    return search


MEASURES = ("norm", "implicit_share", "contraction", "step")


class Pretended:
    """A search that computes nothing; it counts how often its cell is drawn."""

    def __init__(self, total):
        self.total, self.number, self.drawn, self.task = total, 0, 0, SimpleNamespace(table=None)

    def used(self):
        return self.number / self.total

    def current(self):
        self.drawn += 1
        return parse("nas-bench-201:7")

    def round(self, **more):
        self.number += 1
        values = {"train_loss": 2.0, "valid_loss": 2.5, "rate": 0.02, "entropy": 0.9, "margin": 0.1}
        known = {name: value for name, value in (values | more).items() if name not in MEASURES}
        measures = {name: value for name, value in more.items() if name in MEASURES}
        return Round(self.number, gradient_evaluations=9.0, measures=measures, **known), self


def terminal(width=100):
    return Console(file=io.StringIO(), force_terminal=True, width=width, color_system="truecolor")


def written(console):
    return console.file.getvalue()


def screen(console):
    """The lines that a terminal shows in the end, by the few codes that are used: up, erase, return, colours."""
    lines, row = [""], 0
    for code in re.findall(r"\x1b\[[?0-9;]*[a-zA-Z]|\r|\n|[^\x1b\r\n]+", written(console)):
        if code == "\n":
            row += 1
            lines += [""] * (row == len(lines))
        elif code == "\x1b[1A":
            row -= 1
        elif code == "\x1b[2K":
            lines[row] = ""
        elif code[0] not in "\r\x1b":
            lines[row] += code
    return lines


def test_the_live_view_shows_a_real_search(search):
    console = terminal()
    search_now = Pretended(2)
    search_now.current = search.net.architecture
    with Progress(console=console) as progress:
        for found in search.seen:
            search_now.number = found.number
            progress(found, search_now)
    text, last = "\n".join(screen(console)), search.seen[-1]
    assert "1/2" in written(console)
    assert "2/2" in text
    assert text.count("series") == 1  # in place, not one below the other
    for part in (
        f"train {last.train_loss:.3f}",
        f"valid {last.valid_loss:.3f}",
        f"valid {100 * last.valid_accuracy:.1f} %",
        f"entropy {last.entropy:.3f}",
        f"hypergradient {last.measures['norm']:.2e}",
        f"implicit {100 * last.measures['implicit_share']:.1f} %",
        f"contraction {last.measures['contraction']:.3g}",
        f"γ {last.measures['step']:.3g}",
        "rounds/s",
        "0:00:00 left",
    ):
        assert part in text
    assert re.sub(r"\s", "", cell_text(search.net.architecture())) in re.sub(r"\s", "", text)
    assert written(console).index(HIDE) < written(console).rindex(SHOW)


def test_the_tables_accuracy_where_there_is_a_table():
    class Table:
        benchmark, split = "nas-bench-201", "test"

        def accuracy(self, architecture):
            return 91.25 if architecture == parse("nas-bench-201:7") else 0.0

    console, search = terminal(), Pretended(1)
    search.task.table = Table()
    with Progress(console=console) as progress:
        progress(*search.round())
    assert "91.25 % test accuracy of this cell, by nas-bench-201" in "\n".join(screen(console))


def test_messages_outside_rounds():
    console, search = terminal(), Pretended(1)
    with Progress(console=console) as progress:
        progress(*search.round())
        progress.message("selection: trial 1 of 4, 10 steps each")
        assert [line.split()[0] for line in screen(console)][-1] == "now"
        assert "trial 1 of 4, 10 steps each" in "\n".join(screen(console))
    plain = Console(file=io.StringIO(), force_terminal=False)
    with Progress(console=plain) as progress:
        progress(*search.round())
        for number in range(1000):
            progress.message(f"selection: trial {number + 1}")
        progress.message("stopping after this round")
    assert plain.file.getvalue().splitlines()[1:] == ["selection: trial 1", "stopping after this round"]  # within 2 s


def test_it_is_refreshed_at_most_four_times_a_second():
    console, search = terminal(), Pretended(20_000)
    with Progress(console=console) as progress:
        for _ in range(20_000):
            progress(*search.round())
        took = progress.latest[0].time - progress.first.time
    assert 2 <= search.drawn <= 4 * took + 3  # the first, the last, the end
    assert "20000/20000" in "\n".join(screen(console))


@pytest.mark.parametrize("error", [ValueError("wrong"), KeyboardInterrupt()])
def test_the_terminal_is_restored_whatever_happens(error):
    console, search, before = terminal(), Pretended(9), (sys.stdout, sys.stderr)

    def watched():
        with Progress(console=console) as progress:
            progress(*search.round())
            assert sys.stderr is not before[1]  # what is printed now goes above the view
            progress(*search.round())
            raise error

    with pytest.raises(type(error)):
        watched()
    assert (sys.stdout, sys.stderr) == before
    assert written(console).rindex(SHOW) > written(console).rindex(HIDE)
    assert ("2/9" in written(console)) == isinstance(error, KeyboardInterrupt)
    console.print("after")
    assert screen(console)[-2] == "after"


def test_a_failure_before_the_first_round_leaves_no_trace():
    console = terminal()
    with pytest.raises(ValueError, match="wrong"), Progress(console=console):
        raise ValueError("wrong")
    assert written(console) == ""


def test_warnings_stand_above_the_view():
    console, search = terminal(), Pretended(9)
    with warnings.catch_warnings(), Progress(console=console) as progress:
        warnings.simplefilter("always")
        warnings.showwarning = lambda message, *_, **__: print(f"idarts: warning: {message}", file=sys.stderr)
        progress(*search.round())
        warnings.warn("[bold]the series diverges", UserWarning, stacklevel=1)
        progress(*search.round())
    lines = screen(console)
    assert lines[0] == "idarts: warning: [bold]the series diverges"
    assert lines[1].startswith("round")
    assert "\n".join(lines).count("diverges") == 1


def test_divergence_and_skipped_rounds_are_seen():
    console, search = terminal(), Pretended(2)
    with Progress(console=console) as progress:
        progress(*search.round(norm=1.0, contraction=1.5, step=0.1))
        assert "\x1b[1;31mcontraction 1.5, over 1" in written(console)
        progress(*search.round(valid_loss=float("nan")))
    assert "round skipped" in "\n".join(screen(console))


@pytest.mark.parametrize("width", [20, 40, 60])
def test_narrow_terminals(width):
    console, search = terminal(width), Pretended(2)
    with Progress(console=console) as progress:
        for _ in range(2):
            progress(*search.round())
    assert max(map(len, screen(console))) <= width


def test_a_search_without_alpha_shows_what_it_has():
    work = SimpleNamespace(total=2, used=lambda: 0.5)
    plain = Console(file=io.StringIO(), force_terminal=False)
    with Progress(console=plain) as progress:
        progress(Round(1, measures={"best_accuracy": 0.91234, "evaluated": 40}), work)
    assert plain.file.getvalue() == "round     1/2  best accuracy 0.9123  evaluated 40\n"
    console = terminal()
    with Progress(console=console) as progress:
        progress(Round(1, measures={"best_accuracy": 0.91234, "evaluated": 40}), work)
        progress(SimpleNamespace(number=2), work)  # nothing but its number
    assert "best accuracy 0.9123  evaluated 40" in written(console)
    assert not any(word in written(console) for word in ("loss", "entropy", "series", "cell"))


def test_plain_lines(capsys):
    search = Pretended(5000)
    with Progress(5000) as progress:  # under pytest, stderr is no terminal
        for _ in range(5000):
            progress(*search.round(valid_accuracy=0.5))
    shown = capsys.readouterr()
    assert shown.out == ""
    lines = shown.err.splitlines()
    assert lines[0].startswith("round     1/5000  train loss  2.000  valid loss  2.500  valid  50.0 %")
    assert lines[-1].endswith("α entropy 0.900     0 s left")
    assert len(lines) == 2
    assert "\x1b" not in shown.err
    assert search.drawn == 0


def test_forced_colours_make_no_terminal(capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    search = Pretended(1)
    with Progress() as progress:
        progress(*search.round())
    assert capsys.readouterr().err.count("\n") == 1


def test_without_with_a_terminal_gets_plain_lines():
    console, search = terminal(), Pretended(1)
    Progress(console=console)(*search.round())
    assert written(console).startswith("round     1/1")


def everything(handle):
    """All that was written to a terminal; its end is an error on Linux."""
    parts = []
    with contextlib.suppress(OSError):
        while part := os.read(handle, 4096):
            parts.append(part)
    os.close(handle)
    return b"".join(parts).decode()


def test_a_search_at_a_real_terminal_leaves_stdout_alone():
    """A pseudo-terminal as stderr, a pipe as stdout."""
    program = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from test_progress import Pretended\n"
        "from idarts.cli.progress import Progress\n"
        "search = Pretended(3)\n"
        "with Progress() as progress:\n"
        "    for _ in range(3):\n"
        "        progress(*search.round()); print('result')\n"
    )
    main, other = pty.openpty()
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "100"}
    command = [sys.executable, "-c", program, os.path.dirname(__file__)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=other, env=environment, text=True, check=True)
    os.close(other)
    shown = everything(main)
    assert done.stdout == "result\n" * 3
    assert HIDE in shown
    assert "3/3" in shown
    assert shown.rstrip().endswith(SHOW)


@pytest.mark.parametrize("name", ["darts", "nas-bench-101", "nas-bench-201", "nas-bench-1shot1"])
def test_cells_in_few_words(name):
    architecture = sample(name, Random(0), *(["S1"] if name == "nas-bench-1shot1" else []))
    text = cell_text(architecture)
    assert len(text) < 350
    for cell in architecture.cells.values():
        assert all(op in text for op in (*cell.ops, *(edge.op for edge in cell.edges if edge.op)))


def test_operations_on_nodes_are_shown():
    architecture = parse({"matrix": [[0, 1, 1], [0, 0, 1], [0, 0, 0]], "ops": ["input", "maxpool3x3", "output"]})
    assert cell_text(architecture) == "maxpool3x3|~0| + |~0|~1|"
    assert cell_text(Architecture("choice", choices={"b": "x"})) == "b=x"
