"""The rules of the plan at their corners."""

from dataclasses import replace

import pytest

from idarts.errors import InputError
from idarts.fitting import Look, make_plan
from idarts.fitting.plan import BASE, MOST_EPOCHS
from idarts.fitting.searching import search_settings
from idarts.fitting.speed import Cost, Speed

IDLE = Speed(Cost(0.01, 3e-11), Cost(0.1, 2e-5), threads=2)
BUSY = Speed(Cost(0.1, 1e-9), Cost(2.0, 4e-4), threads=1)


def data(images=50_000, classes=10, side=32, grey=False, test=None, fewest=None):
    each = images // classes
    channels = 1 if grey else 3
    size = f"{side}×{side}"
    many = images // 5 if test is None else test
    return Look("data", classes, images, many, fewest or each, each, side, (size, size), channels, grey)


CORNERS = {
    "two classes of ten images": (data(16, 2, 300, test=4), 20),
    "a hundred classes": (data(classes=100), 20),
    "8 pixels": (data(1438, side=8, grey=True), 20),
    "photos": (data(2000, 5, 224), 20),
    "one minute": (data(), 1),
    "ten hours": (data(), 600),
    "imbalanced": (data(1000, 2, 64, fewest=3), 20),
}


@pytest.mark.parametrize("speed", [IDLE, BUSY], ids=["idle", "busy"])
@pytest.mark.parametrize("corner", CORNERS)
def test_every_plan_fits_in_its_minutes_and_suits_its_data(corner, speed):
    look, minutes = CORNERS[corner]
    plan = make_plan(look, minutes, speed, prepared=3.0)
    assert plan.total <= 60 * minutes + 1
    assert plan.image <= look.side
    assert plan.search_image <= plan.image
    assert 2 <= plan.batch <= look.train
    assert 2 <= plan.search_batch <= max(2, look.train // 2)
    assert plan.epochs <= MOST_EPOCHS
    assert plan.rounds >= 4
    assert plan.random >= 1
    assert 0 < plan.alpha_rate * plan.rounds <= 3.01
    assert plan.crop < plan.image
    assert plan.candidates in (1, 4, 8, 16)


def test_more_time_never_makes_networks_smaller():
    plans = [make_plan(data(), minutes, IDLE) for minutes in (1, 5, 20, 60, 240, 600)]
    costs = [plan.image**2 * plan.channels**2 * plan.depth for plan in plans]
    assert costs == sorted(costs)
    assert costs[0] < costs[-1]


def test_random_architectures_go_before_networks_become_smaller_than_the_base():
    for minutes in (0.5, 1, 2, 4, 8, 16, 32):
        plan = make_plan(data(), minutes, BUSY)
        smaller = (plan.image, plan.channels, plan.depth) < BASE
        assert not smaller or plan.random == 1


def test_too_little_time_is_said():
    assert make_plan(data(), 1, BUSY).notes
    assert not make_plan(data(), 600, IDLE).notes


def test_grey_images_are_not_mirrored_unless_asked_for():
    assert make_plan(data(), 20, IDLE).flip
    assert not make_plan(data(grey=True), 20, IDLE).flip
    assert make_plan(data(grey=True), 20, IDLE, flip=True).flip


def test_few_images_end_early():
    plan = make_plan(data(16, 2, 300, test=4), 600, IDLE)
    assert plan.total < 60 * 600 / 2


def test_what_a_person_gives_stands():
    plan = make_plan(data(side=224), 20, IDLE, image=64, random=5)
    assert (plan.image, plan.random) == (64, 5)


def test_a_class_of_one_image_is_refused():
    with pytest.raises(InputError, match="smallest class has 1 training image"):
        make_plan(data(fewest=1), 20, IDLE)


def test_time_that_is_over_is_refused():
    with pytest.raises(InputError, match="passed before"):
        make_plan(data(), 0.1, IDLE, prepared=60)


def test_a_slow_machine_gets_a_smaller_plan():
    fast, slow = (make_plan(data(), 20, speed) for speed in (IDLE, replace(IDLE, step=Cost(0.1, 1e-9))))
    assert (slow.image, slow.random) <= (fast.image, fast.random)
    assert slow != fast


def test_the_rate_of_trials_follows_the_batch_down_to_a_limit():
    settings = {"data": "digits", "data_root": None, "seed": 0, "log": "none"}
    plan = make_plan(data(), 20, IDLE)
    for batch, rate in ((64, 0.1), (48, 0.075), (16, 0.05)):
        assert search_settings(replace(plan, search_batch=batch), settings).selection.rate == pytest.approx(rate)
