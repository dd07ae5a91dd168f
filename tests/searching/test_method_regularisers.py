"""FairDARTS, SmoothDARTS, DARTS−, β-DARTS, DARTS-PT: each idea by its closed form, and in a search."""

import math

import pytest
import torch
from tiny import QUICK, begin

from idarts import InputError
from idarts.searching.judge import Judge
from idarts.searching.penalties.beta_decay import beta_decay
from idarts.searching.penalties.zero_one import zero_one
from idarts.searching.relaxations.perturbed import Perturbed
from idarts.searching.relaxations.sigmoid import sigmoid
from idarts.searching.selections.perturbation import Perturbation

MASK = {"cell": [[True, True, True, False]] * 2}


def gradient(penalty, alpha, used=1.0, **options):
    alphas = {"cell": alpha.clone().requires_grad_()}
    (grad,) = torch.autograd.grad(penalty(alphas, MASK, used, **options), alphas["cell"])
    return grad


def test_zero_one_pushes_each_sigmoid_away_from_one_half():
    alpha = torch.tensor([[1.0, -1.0, 0.0, 5.0], [2.0, 0.3, -0.3, 5.0]])
    grad = gradient(zero_one, alpha, weight=6.0)
    s = alpha.sigmoid()
    exact = -6.0 * 2 * (s - 0.5) * s * (1 - s) / 6
    torch.testing.assert_close(grad[:, :3], exact[:, :3])
    assert not grad[:, 3].any()  # not alive
    assert grad[0, 0] < 0 < grad[0, 1]  # downhill α grows where it is positive


def test_options_with_a_sigmoid_do_not_compete():
    alpha = torch.randn(1, 3, requires_grad=True)
    (grad,) = torch.autograd.grad(sigmoid(alpha).weights[0, 0], alpha)
    assert grad[0, 0] > 0
    assert not grad[0, 1:].any()


def test_beta_decays_gradient_is_the_softmax_and_grows_with_the_budget():
    alpha = torch.randn(2, 4)
    grad = gradient(beta_decay, alpha, used=0.5, weight=4.0)
    torch.testing.assert_close(grad[:, :3], 4.0 * 0.5 * alpha[:, :3].softmax(1) / 2)
    assert not grad[:, 3].any()
    assert not gradient(beta_decay, alpha, used=0.0, weight=4.0).any()


def test_noise_grows_stays_in_its_bounds_and_has_no_direction():
    torch.manual_seed(0)
    alpha = torch.tensor([0.0, 1.0, 2.0]).repeat(20_000, 1)
    plain = alpha[0].softmax(0)
    weights = Perturbed(most=0.04, least=0.01).at(0.5)(alpha).weights
    torch.testing.assert_close(weights.sum(1), torch.ones(20_000))
    assert (weights - plain).abs().max() < 0.025 * 2.1  # δ of one option, and the normalisation by all
    assert (weights - plain).abs().max() > 0.02
    torch.testing.assert_close(weights.mean(0), plain, atol=1e-3, rtol=0)
    assert Perturbed(most=5.0)(alpha).weights.min() >= 0
    for wrong in ({"most": -1.0}, {"least": -1.0}):
        with pytest.raises(InputError, match="expected at least 0"):
            Perturbed(**wrong)


def test_smooth_darts_noise_has_the_bounds_of_its_published_code():
    """ε = 0.03 + (0.3 − 0.03)·epoch/epochs in sota/cnn/train_search.py."""
    search, bounds = begin("sdarts-rs", 4), []
    for _ in search.rounds():
        alpha = torch.zeros(1, 2).repeat(2000, 1)  # of two options: w₁ = (½ + δ₁)/(1 + δ₁ + δ₂)
        weights = search.strategy.weights_relaxation.at(search.used())(alpha).weights
        bounds.append((weights - 0.5).abs().max().item())
    assert bounds == pytest.approx([0.03 + 0.27 * used for used in (0.25, 0.5, 0.75, 1.0)], rel=0.1)


def test_smooth_darts_trains_w_under_noise_and_steps_alpha_without():
    search = begin("sdarts-rs", 4)
    next(search.rounds())
    one, other = (search.strategy.mixtures()["cell"].weights for _ in range(2))
    assert not torch.equal(one, other)
    assert torch.equal(search.net.mixtures()["cell"].weights, search.net.mixtures()["cell"].weights)


def test_the_auxiliary_skip_adds_beta_to_the_skip_alone_and_fades():
    search = begin("darts-minus", 4)
    skip, alpha = search.net.skip, search.a[0]
    seen = []
    for _ in search.rounds():
        mixture = search.relaxed(search.relaxation, "cell")(alpha)
        more = mixture.weights - alpha.detach()[:, 1:].softmax(1).new_zeros(6, 5).index_copy(
            1, torch.arange(1, 5), alpha[:, 1:].softmax(1)
        )
        seen.append(more[0, skip].item())
        more = more.detach().clone()
        more[:, skip] -= seen[-1]
        torch.testing.assert_close(more, torch.zeros(6, 5))
    assert seen == pytest.approx([0.75, 0.5, 0.25, 0.0], abs=1e-6)


@pytest.mark.parametrize("penalty", ["beta-decay", "zero-one", "dirichlet-anchor"])
def test_where_nothing_is_open_there_is_nothing_to_penalise(penalty):
    search = begin("xnas", 4, alpha={"penalty": penalty, "options": {"bound": 1e-3}})
    for row in search.mask["cell"][:5]:
        row[1:4] = [False] * 3
    rounds = search.rounds()
    next(rounds)
    search.mask["cell"][5] = list(search.mask["cell"][0])
    next(rounds)
    assert sum(map(sum, search.mask["cell"])) == 6


def test_beta_darts_lowers_the_logits():
    means = []
    for weight in (0.0, 50.0):
        search = begin("beta-darts", 4, alpha={"penalty_options": {"weight": weight}})
        with torch.no_grad():
            search.a[0][:, 3] = 1.0
        list(search.rounds())
        means.append(search.a[0][:, 1:].mean().item())
    assert means[1] < means[0] - 0.1


class TestTuning:
    def test_weights_are_tuned_after_each_decision_and_restored_in_the_end(self):
        search = begin("darts-pt", 1, selection=QUICK | {"options": {"tune": 2}})
        list(search.rounds())
        before, cost = [w.detach().clone() for w in search.w], search.gradient_evaluations
        steps, step = [], search.weights.step
        search.weights.step = lambda draw, rate: steps.append(step(draw, rate))
        search.select()
        assert len(steps) == 6 * 2
        assert all(torch.equal(one, other) for one, other in zip(before, search.w, strict=True))
        assert search.gradient_evaluations - cost == pytest.approx(6 * 2 + 6 * 4 / 3)  # and four looks a decision

    @pytest.mark.parametrize("tune", [0, 1])
    def test_a_node_keeps_the_edges_whose_removal_costs_most(self, tune, monkeypatch):
        """Judged by a linear score: options and edges are worth what it says, α prefers others."""
        search = begin("darts-pt", 1, name="darts", selection=QUICK | {"options": {"tune": tune}})
        worth = {name: torch.rand(alpha.shape) for name, alpha in search.net.alpha.items()}
        for value in worth.values():
            value[:, search.net.none] = 0.0
        judged = []

        def score(_judge, mixtures):
            judged.append(mixtures)
            return sum((worth[name] * mixture.weights).sum().item() for name, mixture in mixtures.items())

        monkeypatch.setattr(Judge, "__call__", score)
        search.weights.evaluations, steps = 1, []
        search.weights.step = lambda draw, rate: steps.append(draw())
        selected = search.selector(search)
        best = {name: value.max(dim=1, keepdim=True).values for name, value in worth.items()}
        shares = {name: torch.where(value == best[name], best[name], 0.01).log() for name, value in worth.items()}
        for value in shares.values():  # equal sums, so that the softmax is in the order of worth
            value[:, search.net.none] = (2 - value.exp()[:, 1:].sum(1)).log()
        assert selected.architecture == search.largest(shares) != search.current()
        edges = 2 * (3 + 4 + 5)  # of the nodes with more than two
        assert len(judged) == 2 * 14 * 7 + edges
        assert selected.gradient_evaluations == pytest.approx(len(judged) / 3 + len(steps))
        assert len(steps) == tune * (2 * 14 + 2 * 3)
        if tune:  # the last steps have all decisions made: two edges into each node, with one operation each
            chosen = search.net.path(selected.architecture)
            for name, mixture in steps[-1].items():
                assert torch.equal(mixture.weights, chosen[name].weights)

    def test_edges_keep_their_weights(self, monkeypatch):
        search, seen = begin("pc-darts", 1, selection=QUICK | {"rule": "perturbation"}), []
        monkeypatch.setattr(Judge, "__call__", lambda _judge, mixtures: seen.append(mixtures["cell"]) or 0.0)
        search.selector(search)
        for mixture in seen:
            assert torch.equal(mixture.bypass, search.net.edge_weights("cell"))
            torch.testing.assert_close(mixture.weights.sum(1), mixture.bypass)

    def test_without_tuning_nothing_moves(self):
        search = begin("darts-pt", 1, selection=QUICK | {"options": {}})
        list(search.rounds())
        before = [w.detach().clone() for w in search.w]
        search.select()
        assert all(torch.equal(one, other) for one, other in zip(before, search.w, strict=True))
        with pytest.raises(InputError, match="tune is -1"):
            Perturbation(tune=-1)
        assert math.isfinite(search.selector.seconds(search))
