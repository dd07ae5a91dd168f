"""The measurement before the plan: a machine that is busy for a moment, or throughout, simulated by its times."""

import pytest
import torch

from idarts.fitting import speed
from idarts.fitting.speed import TRIES, Measured, measure


@pytest.fixture
def machine(monkeypatch):
    """Two cores that are busy for as many measurements of all threads as `busy` says; returns the list of them."""

    def start(busy):
        asked = []

        def share_work(_threads):
            asked.append(len(asked) >= busy)
            return asked[-1]

        def step(_networks, side, batch):
            work = side * side * batch
            return Measured(1e-3 * work / torch.get_num_threads(), work)

        monkeypatch.setattr(speed, "PAUSE", 0.01)
        monkeypatch.setattr(speed, "share_work", share_work)
        monkeypatch.setattr(speed, "_step", step)
        monkeypatch.setattr(speed, "_round", lambda _name, side, batch, *_: Measured(1e-3 * side * side * batch, side))
        return asked

    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield start
    torch.set_num_threads(before)


@pytest.mark.parametrize(
    ("busy", "threads", "tries"), [(0, 2, 1), (TRIES - 1, 2, TRIES), (TRIES, 1, TRIES), (100, 1, TRIES)]
)
def test_a_moment_of_other_work_does_not_decide_on_the_threads(machine, busy, threads, tries):
    asked = machine(busy)
    measured = measure("residual-blocks", 16, 1, 2, seconds=60.0)
    assert (measured.threads, torch.get_num_threads(), len(asked)) == (threads, threads, tries)


def test_no_try_starts_after_the_time(machine):
    asked = machine(busy=100)
    assert measure("residual-blocks", 16, 1, 2, seconds=0.0).threads == 1
    assert len(asked) == 1
