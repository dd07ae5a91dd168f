"""PARSEC: the gradient of the log evidence by enumeration, and importance weights in both steps."""

from itertools import product

import pytest
import torch
from tiny import begin
from torch import nn
from torch.nn.functional import mse_loss

from idarts import Choice
from idarts.layers.mixture import one_hot
from idarts.searching import Task, config
from idarts.searching.objectives.importance import ImportanceWeighted, importance
from idarts.searching.strategies.importance import Importance
from idarts.searching.streams import TensorBatches
from idarts.spaces import ChoiceSupernet

PATHS = list(product(range(4), repeat=3))


class Stub:
    """What `_gradient` reads of a search: α, all of it alive."""

    def __init__(self, alpha):
        self.net = type("Net", (), {"alpha": {"cell": alpha}})

    def living(self, values):
        return values


def gradient(alpha, paths, weights):
    strategy = Importance.__new__(Importance)
    strategy.search = Stub(alpha)
    return strategy._gradient("cell", [one_hot(list(path), 4, alpha).weights for path in paths], weights)


def problem():
    torch.manual_seed(0)
    alpha = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    return alpha, torch.randn(len(PATHS), dtype=torch.float64) * 2  # log-likelihoods of all paths


def log_prior(alpha):
    scores = alpha.log_softmax(1)
    return torch.stack([sum(scores[row, column] for row, column in enumerate(path)) for path in PATHS])


def test_with_all_paths_it_is_the_gradient_of_the_log_evidence():
    alpha, likelihood = problem()
    evidence = (log_prior(alpha) + likelihood).logsumexp(0)
    (exact,) = torch.autograd.grad(evidence, alpha)
    posterior = (log_prior(alpha) + likelihood).softmax(0).detach()
    torch.testing.assert_close(gradient(alpha.detach(), PATHS, posterior), -exact)
    marginals = torch.zeros(3, 4, dtype=torch.float64)
    for path, weight in zip(PATHS, posterior, strict=True):
        for row, column in enumerate(path):
            marginals[row, column] += weight
    torch.testing.assert_close(exact, marginals - alpha.detach().softmax(1))  # posterior minus prior


def mean_estimate(alpha, likelihood, paths, draws):
    """The mean of the estimator over many draws of `paths` paths."""
    prior = log_prior(alpha).exp().detach()
    drawn = torch.multinomial(prior, paths * draws, replacement=True).view(draws, paths)
    weights = likelihood[drawn].softmax(1)
    counts = torch.zeros(len(PATHS), dtype=torch.float64).index_add(0, drawn.flatten(), weights.flatten()) / draws
    return -gradient(alpha.detach(), PATHS, counts)


def test_one_path_teaches_nothing_and_the_bias_falls_with_their_number():
    alpha, likelihood = problem()
    (exact,) = torch.autograd.grad((log_prior(alpha) + likelihood).logsumexp(0), alpha)
    torch.manual_seed(1)
    errors = [(mean_estimate(alpha, likelihood, count, 4000) - exact).abs().max().item() for count in (1, 16, 256)]
    assert mean_estimate(alpha, likelihood, 1, 20_000).abs().max() < 0.02
    assert errors[0] > errors[1] > 4 * errors[2]
    assert mean_estimate(alpha, torch.zeros_like(likelihood), 16, 4000).abs().max() < 0.01  # all alike


def test_weights_know_no_constant_and_do_not_overflow():
    losses = torch.tensor([1.0, 1.01, 1.2])
    weights = importance(losses, 64)
    torch.testing.assert_close(weights, importance(losses + 3.0, 64), atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(weights[1] / weights[0], torch.tensor(-0.64).exp(), atol=1e-4, rtol=1e-3)
    assert importance(torch.tensor([156.0, 157.0]), 64).tolist() == pytest.approx([1.0, 0.0])  # N·loss of 10⁴


def test_the_weight_step_takes_the_weighted_mean_of_the_paths_gradients():
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    paths = iter([0, 1, 1])
    objective = ImportanceWeighted(config(batch=10), paths=3)
    loss = objective(lambda: next(paths), lambda path: w[path] ** 2 / 10)
    (grad,) = torch.autograd.grad(loss, w)
    omega = torch.tensor([-1.0, -4.0, -4.0]).softmax(0)
    torch.testing.assert_close(grad, torch.tensor([omega[0] * 0.2, (omega[1] + omega[2]) * 0.4]))


def test_it_learns_the_branch_that_fits():
    torch.manual_seed(0)
    right, wrong = nn.Linear(3, 1), nn.Linear(3, 1)
    net = ChoiceSupernet(nn.Sequential(Choice({"right": right, "wrong": wrong}, name="block"), nn.Identity()))
    x = torch.randn(32, 3)
    y = right(x).detach()
    streams = [TensorBatches(x, y, 16, seed) for seed in range(2)]
    settings = config("parsec", rounds=8, batch=16, weights={"rate": 0.0, "last_rate": 0.0})
    search = Task(net, *streams, settings, mse_loss).search()
    with torch.no_grad():
        net.alpha["block"].copy_(torch.tensor([[0.0, 0.3]]))
    rounds = list(search.rounds())
    assert search.select().choices == {"block": "right"}
    assert all(1 <= one.measures["effective_paths"] <= 8 + 1e-4 for one in rounds)


def test_only_living_options_are_drawn_and_move():
    search = begin("parsec", 2, alpha={"decay": 0.0})
    before = search.a[0].detach().clone()
    list(search.rounds())
    moved = search.a[0] != before
    assert not any(row[search.net.none] for row in search.mask["cell"])
    assert not moved[:, search.net.none].any()
    assert moved[:, 1:].all()
    assert not any(row[search.net.none] for row in search.strategy.mixtures()["cell"].active)
