"""The shares of a budget by closed forms."""

import pytest

from idarts.searching.budget import Budgeted, Pace, Spent, budget_of
from idarts.searching.settings import Config, Weights
from idarts.searching.stage import Stage


class At(Budgeted):
    """A search that stands at a share of its budget."""

    def __init__(self, stage, used):
        self.stages, self.stage, self.share = [Stage(0.25), Stage(0.75)], stage, used

    def used(self):
        return self.share


@pytest.mark.parametrize(
    ("stage", "used", "part"), [(0, 0.0, 0.0), (0, 0.125, 0.5), (1, 0.25, 0.0), (1, 0.625, 0.5), (1, 1.0, 1.0)]
)
def test_the_part_of_a_stage_is_a_share_of_that_stage(stage, used, part):
    assert At(stage, used).stage_part() == part


def test_the_pace_of_a_limited_budget_is_known_after_the_first_round():
    """After a warm-up of half the budget, a round takes 0.05 of it: there are ten."""
    search = At(1, 0.5)
    search.budget = budget_of(Config(rounds=100, minutes=2.0), 1, stages=2, shares_weights=True)
    search.spent, search._pace = Spent(), Pace()
    found = []
    for search.spent.number in range(4):
        found.append(search.alpha_rounds())
        search.share += 0.05 if search.number else 0
    assert found == pytest.approx([75, 75, 7.5, 7.5])


def test_the_weight_steps_of_a_budget_are_those_of_all_rounds_and_warm_ups():
    settings = Config(rounds=10, inner_steps=4, weights=Weights(warmup=6))
    assert budget_of(settings, 1, stages=2, shares_weights=True).weight_steps == 10 * 4 + 2 * 6
    assert budget_of(settings, 1, stages=2, shares_weights=False).weight_steps == 0
