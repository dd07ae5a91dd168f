"""XNAS: the regret bound and the wipe-out by the rule itself, and its derivative in a search."""

import math
import random

import pytest
import torch
from tiny import begin
from torch import nn
from torch.nn.functional import cross_entropy

from idarts.searching.relaxations.experts import experts
from idarts.searching.rules.exponentiated import Exponentiated
from idarts.searching.settings import Alpha
from idarts.spaces.relaxation import softmax


def play(losses, bound=1.0, wipe_out=True):
    """The rule against a sequence of losses: its total loss, and the mask at the end."""
    rounds, count = losses.shape
    alpha = nn.Parameter(torch.zeros(1, count, dtype=torch.float64))
    rule = Exponentiated([alpha], Alpha(rate=1.0, options={"bound": bound, "wipe_out": wipe_out}))
    rule.rate, mask, total = rule.automatic_rate(rounds), {"cell": [[True] * count]}, 0.0
    for number, row in enumerate(losses, start=1):
        alive = torch.tensor(mask["cell"])
        total += float(alpha.detach().masked_fill(~alive, -math.inf).softmax(1)[0] @ row)
        rule.step([row[None]])
        smaller = rule.survivors({"cell": alpha}, mask, rounds - number)
        assert all(before or not after for before, after in zip(mask["cell"][0], smaller["cell"][0], strict=True))
        mask = smaller
    return total, mask["cell"][0]


@pytest.mark.parametrize("bound", [1.0, 0.25])
def test_the_regret_is_bounded_and_the_best_expert_stays(bound):
    """Random games, also with a drift that changes its mind: what wipe-out must survive."""
    draw, gone = random.Random(0), 0
    for game in range(150):
        torch.manual_seed(game)
        count, rounds = draw.randint(2, 8), draw.randint(5, 60)
        drift = torch.linspace(1, -1, rounds, dtype=torch.float64)[:, None] * torch.randn(count).sign()
        losses = (torch.randn(rounds, count, dtype=torch.float64) + (game % 3) * drift).clamp(-1, 1) * bound
        total, alive = play(losses, bound)
        best = losses.sum(0)
        assert total - best.min().item() <= bound * math.sqrt(2 * rounds * math.log(count)) + 1e-9
        assert alive[int(best.argmin())]
        assert sum(alive) == 1  # at the end only the leader is left
        gone += count - 1
    assert gone > 300


def test_a_step_multiplies_the_weights_and_equal_rewards_change_nothing():
    alpha = nn.Parameter(torch.randn(3, 4))
    rule, grad = Exponentiated([alpha], Alpha(rate=0.3)), 0.5 * torch.rand(3, 4)
    before = alpha.detach().softmax(1)
    rule.step([grad])
    torch.testing.assert_close(alpha.softmax(1), (before.log() - 0.3 * grad).softmax(1))
    gradient_descent = before.log() - 0.3 * before * (grad - (before * grad).sum(1, keepdim=True))
    assert (alpha.softmax(1) - gradient_descent.softmax(1)).abs().max() > 1e-3  # SGD on logits is another rule
    now = alpha.detach().softmax(1)
    rule.step([torch.full((3, 4), 0.7)])
    torch.testing.assert_close(alpha.softmax(1), now)
    rule.step([torch.tensor([[50.0, 1.0, -50.0, -1.0]] * 3)])  # clipped: the same reward for both of a pair
    after = alpha.detach().softmax(1)
    torch.testing.assert_close(after[:, 0] / after[:, 1], now[:, 0] / now[:, 1])


def test_the_rate_is_the_theorys():
    rule = Exponentiated([nn.Parameter(torch.zeros(6, 5))], Alpha(rate=1.0, options={"bound": 2.0}))
    assert rule.automatic_rate(50) == pytest.approx(math.sqrt(2 * math.log(5) / 50) / 2)
    search = begin("xnas", 3)
    assert search.strategy.rule.rate == pytest.approx(math.sqrt(2 * math.log(5) / 3))


def test_alpha_gets_the_derivative_in_the_mixtures_weights():
    net = begin("xnas", 1).net
    images, labels = torch.randn(4, 1, 8, 8), torch.arange(4)
    alpha = net.alpha["cell"]
    assert torch.equal(experts(alpha).weights, softmax(alpha).weights)
    found, plain = (
        torch.autograd.grad(cross_entropy(net(images, mixtures={"cell": f(alpha)}), labels), alpha)[0]
        for f in (experts, softmax)
    )
    u = alpha.detach().softmax(1)
    torch.testing.assert_close(u * (found - (u * found).sum(1, keepdim=True)), plain, atol=1e-5, rtol=1e-3)


def test_in_a_search_options_leave_for_good_get_nothing_and_one_remains():
    search = begin("xnas", 4, alpha={"options": {"bound": 0.02}})
    before = {"cell": [[True] * 5] * 6}
    counts = []
    for _ in search.rounds():
        for old, new in zip(before["cell"], search.mask["cell"], strict=True):
            assert all(was or not now for was, now in zip(old, new, strict=True))
        before = search.mask
        counts.append(sum(map(sum, search.mask["cell"])))
        mixture = search.strategy.mixtures()["cell"]
        dead = ~torch.tensor(search.mask["cell"])
        assert not mixture.weights[dead].any()
        assert counts[-1] == 24 or not torch.tensor(mixture.active)[dead].any()
    assert counts[-1] == 6
    chosen = search.net.path(search.select())["cell"].active
    assert [list(row) for row in chosen] == search.mask["cell"]
