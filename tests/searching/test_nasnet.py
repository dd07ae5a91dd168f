"""NASNet: PPO against REINFORCE and closed forms, the controller's decisions, and that it learns."""

from itertools import product
from math import prod

import pytest
import torch
from proposing import Convolutions, start

from idarts.arch import SPACES
from idarts.searching import Evaluation
from idarts.searching.strategies.controller import Controller
from idarts.searching.strategies.nasnet import MovingMean, architecture, ppo_loss, shapes


def gradient(new, old, advantage, clip=0.2):
    new = torch.tensor(new, requires_grad=True)
    ppo_loss(new, torch.tensor(old), torch.tensor(advantage), clip).backward()
    return new.grad.tolist()


def test_at_equal_policies_the_gradient_is_that_of_reinforce():
    advantage = [0.5, -1.5, 2.0]
    assert gradient([-1.0, -2.0, -3.0], [-1.0, -2.0, -3.0], advantage) == pytest.approx([-a / 3 for a in advantage])


def test_outside_the_clip_there_is_no_gradient_where_it_would_go_on():
    above, below = 0.3, -0.3  # log-ratios; 1.35 and 0.74
    assert gradient([above, below], [0.0, 0.0], [1.0, -1.0]) == [0.0, 0.0]
    back = gradient([above, below], [0.0, 0.0], [-1.0, 1.0])
    expected = [torch.tensor(above).exp() / 2, -torch.tensor(below).exp() / 2]
    assert back == pytest.approx([float(one) for one in expected])


@pytest.fixture
def tiny():
    torch.manual_seed(1)
    controller = Controller({"first": (1, 2), "second": (2, 3)}).double()
    every = [{"first": [a], "second": [b, c]} for a, b, c in product(range(2), range(3), range(3))]
    return controller, every


def test_the_likelihoods_of_all_sequences_sum_to_one(tiny):
    controller, every = tiny
    likelihoods = [controller.sample(given_choices=choices)[1].exp().item() for choices in every]
    assert sum(likelihoods) == pytest.approx(1.0)
    choices, drawn, *_ = controller.sample()
    assert likelihoods[every.index(choices)] == pytest.approx(drawn.exp().item())


def test_the_expected_step_is_the_gradient_of_the_expected_reward_for_every_baseline(tiny):
    controller, every = tiny
    rewards = torch.linspace(-1, 2, len(every), dtype=torch.float64) ** 2
    weights = list(controller.parameters())

    def step(baseline):
        logs = torch.stack([controller.sample(given_choices=choices)[1] for choices in every])
        value = (logs.exp().detach() * (rewards - baseline) * logs).sum()
        return torch.autograd.grad(value, weights, allow_unused=True)

    logs = torch.stack([controller.sample(given_choices=choices)[1] for choices in every])
    exact = torch.autograd.grad((logs.exp() * rewards).sum(), weights, allow_unused=True)
    assert sum(one is not None for one in exact) > 5
    for baseline in (0.0, 5.0):
        for one, other in zip(step(baseline), exact, strict=True):
            assert one is other is None or torch.allclose(one, other, atol=1e-12)


def test_the_moving_mean_of_a_constant_is_that_constant_from_the_start():
    mean = MovingMean(0.95)
    for _ in range(3):
        mean.add(0.7)
        assert mean.value == pytest.approx(0.7)
    mean.add(0.9)
    assert mean.value == pytest.approx((0.7 * (0.95 + 0.95**2 + 0.95**3) + 0.9) / (1 + 0.95 + 0.95**2 + 0.95**3))


@pytest.mark.parametrize("name", ["nas-bench-201", "darts"])
def test_the_controller_reaches_every_cell_of_the_space_once(name):
    """Its decisions have as many outcomes as the space has cells, and no two of the first ones give the same cell."""
    growth = SPACES[name].growth()
    decisions = shapes(growth)
    assert prod(columns**rows for rows, columns in decisions.values()) == SPACES[name].size
    controller = Controller(decisions)
    torch.manual_seed(0)
    drawn = [controller.sample()[0] for _ in range(60)]
    cells = {architecture(growth, choices) for choices in drawn}
    assert len(cells) == len({str(choices) for choices in drawn})


def test_it_learns_what_is_rewarded():
    learning = {"samples": 10, "rate": 0.02}
    search = start("nasnet", rounds=300, none=True, controller=learning, selection={"rule": "argmax"})
    rewards = [one.measures["reward"] for one in search.rounds()]
    assert sum(rewards[-50:]) / 50 > sum(rewards[:50]) / 50 + 0.3
    assert search.strategy.best.reward == 1.0


def test_equal_rewards_leave_the_controller_alone():
    """R = b in every batch, so every advantage is 0; a baseline of the wrong sign or size would move it."""

    class Constant(Convolutions):
        def __call__(self, architecture):
            return Evaluation(0.75, cost=1.0, accuracy=0.75)

    search = start(
        "nasnet", evaluator=Constant, rounds=9, controller={"samples": 3, "entropy": 0.0}, selection={"rule": "argmax"}
    )
    before = [weight.clone() for weight in search.strategy.controller.parameters()]
    list(search.rounds())
    for old, new in zip(before, search.strategy.controller.parameters(), strict=True):
        torch.testing.assert_close(new, old, atol=1e-6, rtol=0)
