"""Schedules at given epochs and steps, by hand or by torch's own schedulers; and the settings of trainings."""

import math

import pytest
import torch

from idarts.engine.schedules import SCHEDULES, learning_rate
from idarts.engine.settings import change
from idarts.errors import InputError
from idarts.training import PRESETS, TrainConfig, Training, Weights


class Batches:
    """So many batches in an epoch; only their number matters here."""

    device = torch.device("cpu")

    def __len__(self):
        return 100


def training(settings):
    return Training(torch.nn.Linear(1, 1), Batches(), None, settings)


def rate(settings, epoch):
    """The learning rate of a training that stands at an epoch."""
    at = training(settings)
    at.step = round(epoch * at.per_epoch)
    return at.rate()


def test_the_cosine_is_torchs_by_epoch():
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], 0.025)
    torchs = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 600)
    at = training(change(TrainConfig(), PRESETS["cifar-paper"]))
    for epoch in range(600):
        at.step = 100 * epoch
        now = at.rate()
        assert now == pytest.approx(optimizer.param_groups[0]["lr"], abs=1e-12)
        at.step += 99
        assert at.rate() == now
        optimizer.step()
        torchs.step()


@pytest.mark.parametrize(
    ("epoch", "expected"), [(0, 0.1), (0.5, 0.1 * 0.5 * (1 + math.cos(math.pi / 24))), (6, 0.05), (12, 0.0)]
)
def test_the_cosine_by_step(epoch, expected):
    assert rate(TrainConfig(epochs=12, weights=Weights(rate=0.1)), epoch) == pytest.approx(expected)
    assert learning_rate(0.1, 0.0, epoch, 12) == pytest.approx(expected)


@pytest.mark.parametrize(("epoch", "expected"), [(0, 0.1), (5, 0.055), (9, 0.019), (10, 0.01)])
def test_a_line_to_the_last_rate(epoch, expected):
    weights = Weights(rate=0.1, last_rate=0.01, schedule="linear")
    assert rate(TrainConfig(epochs=10, weights=weights), epoch) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("epoch", "share"),
    [(0, 1), (1, 244 / 245), (244, 1 / 245), (245, 1 / 245), (246, 4 / 5 / 245), (249, 1 / 5 / 245)],
)
def test_the_slow_end_of_the_imagenet_schedule(epoch, share):
    settings = change(TrainConfig(), PRESETS["imagenet-paper"])
    assert rate(settings, epoch) == pytest.approx(0.1 * share)


def test_drop_path_rises_in_a_line():
    at = training(change(TrainConfig(), PRESETS["cifar-paper"]))
    values = []
    for epoch in (0, 0.9, 1, 150, 300, 599):
        at.step = round(100 * epoch)
        values.append(at.drop_path())
    assert values == pytest.approx([0, 0, 0.2 / 600, 0.05, 0.1, 0.2 * 599 / 600])


@pytest.mark.parametrize("used", [0.0, 0.1, 1 / 3, 0.5, 0.97, 1.0])
def test_a_search_has_the_same_cosine_bit_for_bit(used):
    """By the share of its budget; and a trial by its steps."""
    assert learning_rate(0.025, 0.001, used, 1) == 0.001 + (0.025 - 0.001) * 0.5 * (1 + math.cos(math.pi * used))
    step, steps = round(40 * used), 40
    assert learning_rate(0.05, 0.0, step, steps) == 0.05 * 0.5 * (1 + math.cos(math.pi * step / steps))


def test_a_schedule_of_ones_own_is_a_name():
    name = SCHEDULES.own(lambda now, end: 1.0 if now < end / 2 else 0.1, "tests:halves")
    settings = TrainConfig(epochs=10, weights=Weights(rate=0.5, schedule=name))
    assert [rate(settings, epoch) for epoch in (0, 4.9, 5, 9)] == pytest.approx([0.5, 0.5, 0.05, 0.05])


def test_the_papers_protocols():
    cifar, imagenet, bench, short = (
        change(TrainConfig(), PRESETS[name])
        for name in ("cifar-paper", "imagenet-paper", "nas-bench-201", "nas-bench-201-12")
    )
    assert (cifar.epochs, cifar.batch, cifar.cutout, cifar.auxiliary, cifar.drop_path) == (600, 96, 16, 0.4, 0.2)
    assert cifar.weights == Weights(0.025, 0.0, "cosine", "epoch", 0.9, False, 3e-4, 5.0)
    assert (imagenet.epochs, imagenet.batch, imagenet.smoothing, imagenet.auxiliary) == (250, 128, 0.1, 0.4)
    assert (imagenet.weights.rate, imagenet.weights.decay, imagenet.multiply_adds) == (0.1, 3e-5, 600)
    assert (bench.epochs, bench.batch, bench.crop, bench.flip) == (200, 256, 4, True)
    assert bench.weights == Weights(0.1, 0.0, "cosine", "epoch", 0.9, True, 5e-4, 0.0)
    assert short.epochs == 12
    assert (short.weights, short.batch) == (bench.weights, bench.batch)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"epochs": 0}, "epochs is 0"),
        ({"batch": 2.5}, "batch is 2.5"),
        ({"batch": 10, "accumulate": 4}, "cannot be divided into 4 equal parts"),
        ({"drop_path": 1.0}, "drop_path is 1.0"),
        ({"smoothing": -0.1}, "smoothing is -0.1"),
        ({"precision": "float8"}, "expected one of float32, bfloat16, float16"),
        ({"weights": {"schedule": "steps"}}, "unknown schedule 'steps'; there are cosine, linear, linear-slow-end"),
        ({"weights": {"rate": -1.0}}, "weights.rate is -1.0, expected a number of at least 0"),
        ({"epochs": 5, "weights": Weights(schedule="linear-slow-end")}, "needs more than 5"),
    ],
)
def test_settings_that_cannot_be(settings, words):
    with pytest.raises(InputError, match=words) as caught:
        change(TrainConfig(), settings)
    assert "\n" not in str(caught.value)
