"""Trainings side by side: equal steps, whatever ends them."""

import math
from itertools import count

import pytest

from idarts.arch import parse
from idarts.data import load
from idarts.fitting.finals import Clock, train_together
from idarts.fitting.threads import Threads
from idarts.training import TrainConfig, Weights
from idarts.training.run import start

CELLS = {"small": "nas-bench-201:0", "large": "nas-bench-201:1462", "other": "nas-bench-201:99"}


@pytest.fixture(scope="module")
def digits():
    return load("digits")


def trainings(folder, data, epochs, resume=False, log_steps=2):
    settings = {"epochs": epochs, "log_steps": log_steps, "evaluate_epochs": epochs, "data": "digits", "depth": 1}
    config = TrainConfig(**settings, channels=4, weights=Weights(rate=0.1))
    return {name: start(parse(cell), data, config, folder / name, resume=resume) for name, cell in CELLS.items()}


def steps(results):
    return [round(result.rounds[-1]["epoch"] * 22) for result in results.values()]


def test_time_ends_all_trainings_at_the_same_step_with_a_small_rate(tmp_path, digits):
    ticks = count()  # a clock that ticks whenever it is read: the machine's speed plays no part
    clock = Clock(seconds=100.0, now=lambda: float(next(ticks)))
    done = train_together(trainings(tmp_path, digits, epochs=1000), clock, lambda *_: None)
    assert clock.passed <= 105
    assert len(set(steps(done))) == 1
    assert 20 < steps(done)[0] < 200
    rates = [entry["rate"] for entry in done["small"].rounds]
    assert rates == sorted(rates, reverse=True)
    assert rates[-1] < 0.02 * rates[0]
    assert all(result.accuracy is not None for result in done.values())


def test_without_haste_the_steps_end_the_trainings_on_the_cosine_of_a_plain_training(tmp_path, digits):
    done = train_together(trainings(tmp_path, digits, epochs=1), Clock(seconds=600.0), lambda *_: None)
    assert steps(done) == [22, 22, 22]
    for place, entry in enumerate(done["small"].rounds):
        assert entry["rate"] == pytest.approx(0.05 * (1 + math.cos(math.pi * 2 * place / 22)), rel=0.05)


def test_an_interrupted_group_resumes_at_the_same_step(tmp_path, digits):
    def stop_after(_share, _left, text):
        if text == "step 6":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_together(trainings(tmp_path / "a", digits, epochs=1), Clock(600.0), stop_after)
    resumed = train_together(trainings(tmp_path / "a", digits, 1, resume=True), Clock(600.0), lambda *_: None)
    whole = train_together(trainings(tmp_path / "b", digits, epochs=1), Clock(600.0), lambda *_: None)
    for name in CELLS:
        losses = [[entry["train_loss"] for entry in done[name].rounds] for done in (resumed, whole)]
        assert losses[0] == pytest.approx(losses[1], rel=1e-3)


def test_even_without_time_every_network_takes_a_round(tmp_path, digits):
    done = train_together(trainings(tmp_path, digits, epochs=5), Clock(seconds=0.0), lambda *_: None)
    assert steps(done) == [2, 2, 2]


def test_threads_are_chosen_by_the_time_of_a_step_because_the_last_lap_of_an_epoch_is_shorter(tmp_path, digits):
    noted = []

    class Recorder(Threads):
        def note(self, seconds):
            noted.append(seconds)

    ticks = count()
    clock = Clock(seconds=1e6, now=lambda: float(next(ticks)))  # every lap has the same number of ticks
    runs = trainings(tmp_path, digits, epochs=1, log_steps=6)
    train_together(runs, clock, lambda *_: None, Recorder(most=2, count=1))
    assert len(noted) == 4
    assert [round(seconds / noted[0], 3) for seconds in noted] == [1, 1, 1, 1.5]  # 6, 6, 6 and 4 steps
