"""MdeNAS: the pairwise rule in closed form, and one path for a whole round."""

import torch
from proposing import start

from idarts.searching.strategies.mdenas import pairwise


def tensors(*rows):
    return [torch.tensor(row, dtype=torch.float64) for row in rows]


def test_a_history_by_hand():
    """The last beats both others, the middle one beats the first: +2η, 0, −2η."""
    p, chosen, accuracy = tensors([0.4, 0.3, 0.3], [3, 2, 1], [0.5, 0.6, 0.7])
    torch.testing.assert_close(pairwise(p, chosen, accuracy, 0.05), torch.tensor([0.3, 0.3, 0.4]).double())


def test_equal_counts_and_rare_bad_options_change_nothing():
    p, equal, accuracy = tensors([0.4, 0.6], [2, 2], [0.9, 0.1])
    assert torch.equal(pairwise(p, equal, accuracy, 0.1), p)  # both inequalities are strict
    _, more_for_better, _ = tensors([0, 0], [5, 2], [0, 0])
    assert torch.equal(pairwise(p, more_for_better, accuracy, 0.1), p)


def test_it_stays_a_distribution_and_does_not_see_the_order_of_options():
    torch.manual_seed(0)
    p = torch.full((6, 5), 0.2, dtype=torch.float64)
    order = torch.tensor([3, 0, 4, 1, 2])
    for _ in range(200):
        chosen, accuracy = torch.randint(9, (6, 5)).double(), torch.rand(6, 5).double()
        moved = pairwise(p, chosen, accuracy, 0.07)
        permuted = pairwise(p[:, order], chosen[:, order], accuracy[:, order], 0.07)
        torch.testing.assert_close(permuted, moved[:, order])
        p = moved
        assert p.min() >= 0
        torch.testing.assert_close(p.sum(dim=1), torch.ones(6).double())
    assert p.min() < 1e-3  # so that the limit at 0 was met


def test_an_option_gives_at_most_what_it_has_to_all_alike():
    p, chosen, accuracy = tensors([0.1, 0.4, 0.5], [9, 1, 1], [0.1, 0.8, 0.9])
    torch.testing.assert_close(pairwise(p, chosen, accuracy, 0.2), torch.tensor([0.0, 0.45, 0.55]).double())


def test_with_fixed_rewards_the_best_option_becomes_the_most_likely():
    torch.manual_seed(0)
    rewards, wins = torch.tensor([0.2, 0.4, 0.6, 0.8]).double(), 0
    for _ in range(10):
        p, chosen, accuracy = torch.full((4,), 0.25).double(), torch.zeros(4).double(), torch.zeros(4).double()
        for _ in range(300):
            pick = int(torch.multinomial(p, 1))
            chosen[pick] += 1
            accuracy[pick] = rewards[pick]
            p = pairwise(p, chosen, accuracy, 0.01)
        wins += int(p.argmax()) == 3
    assert wins >= 8


def test_one_path_for_all_weight_steps_of_a_round_and_its_options_are_noted():
    search = start("mdenas", evaluator=None, rounds=4, inner_steps=3, alpha={"rate": 0.1}, none=True)
    strategy, seen = search.strategy, []
    mixtures = strategy.mixtures
    strategy.mixtures = lambda: seen.append(strategy.path["cell"]) or mixtures()
    rounds = list(search.rounds())
    assert [seen[4 * r : 4 * r + 4] for r in range(4)] == [[seen[4 * r]] * 4 for r in range(4)]  # 3 steps, 1 look
    assert len({str(path) for path in seen}) == 4
    counts = torch.zeros(6, 5).double()
    for path in seen[::4]:
        counts[torch.arange(6), path] += 1
    assert torch.equal(strategy.chosen["cell"], counts)
    last = strategy.accuracy["cell"][torch.arange(6), seen[-1]]
    assert torch.equal(last, torch.full((6,), rounds[-1].valid_accuracy).double())
    torch.testing.assert_close(search.net.alpha["cell"].softmax(1).double(), strategy.p["cell"], atol=1e-6, rtol=0)
    assert search.gradient_evaluations == 12 + 4 * 4 / 3


def test_options_that_take_no_part_are_never_drawn():
    search = start("mdenas", evaluator=None, rounds=6, inner_steps=1)
    list(search.rounds())
    assert not search.strategy.chosen["cell"][:, search.net.none].any()
    assert not search.strategy.p["cell"][:, search.net.none].any()
