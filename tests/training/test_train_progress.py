"""The progress of a training: plain lines, and a live view on a terminal."""

import io

from rich.console import Console

from idarts.cli.progress import Progress
from idarts.cli.views import TRAINING
from idarts.data import Batches, load
from idarts.pages.numbers import with_interval
from idarts.spaces import network
from idarts.training import TrainConfig, Training


def shown(**how):
    console = Console(file=io.StringIO(), width=100, **how)
    data = load("digits")
    net = network("DARTS_V2", depth=1, channels=2, in_channels=1)
    settings = TrainConfig(epochs=1, batch=256, log_steps=3, drop_path=0.3)
    training = Training(net, Batches(data.train, 256), Batches(data.test, 256, drop_last=False), settings)
    with Progress(console=console, view=TRAINING) as progress:
        for found in training.rounds():
            progress(found, training)
    return console.file.getvalue(), found


def test_plain_lines():
    text, last = shown(force_terminal=False)
    first, *_, end = text.splitlines()
    assert first.startswith("round     1/2  epoch   0.60  train loss")
    assert "held out" not in first
    assert f"held out {with_interval(last.valid_accuracy, 359)}" in " ".join(end.split())
    assert end.endswith("0 s left")


def test_the_live_view():
    text, _ = shown(force_terminal=True, force_interactive=True)
    for words in ("2/2", "1.00 of 1", "train loss", "held out", "drop-path 0.180"):
        assert words in text
