"""DrNAS: moments and pathwise gradients of the Dirichlet distribution, the anchor, and the two stages."""

import pytest
import torch
from tiny import begin
from torch.distributions import kl_divergence
from torch.nn.functional import elu

from idarts import InputError
from idarts.searching import config
from idarts.searching.penalties.dirichlet_anchor import dirichlet_anchor, kl_to_uniform
from idarts.searching.relaxations.dirichlet import Dirichlet
from idarts.searching.stage import Restricted
from idarts.searching.stages.drnas import drnas

ALPHA = torch.tensor([-0.7, 0.4, 1.5])
DRAWS = 60_000


def test_mean_second_moment_and_pathwise_gradient_are_those_of_the_closed_form():
    torch.manual_seed(0)
    alpha = ALPHA.repeat(DRAWS, 1).requires_grad_()
    weights, cost = Dirichlet()(alpha).weights, torch.tensor([1.0, -2.0, 0.5])
    beta = elu(ALPHA) + 1
    total = beta.sum()
    torch.testing.assert_close(weights.mean(0), beta / total, atol=4e-3, rtol=0)
    second = beta * (beta + 1) / (total * (total + 1))
    torch.testing.assert_close(weights.square().mean(0), second, atol=4e-3, rtol=0)
    (grad,) = torch.autograd.grad((weights @ cost).sum() / DRAWS, alpha)
    exact = (cost * total - cost @ beta) / total**2 * torch.where(ALPHA > 0, 1.0, ALPHA.exp())
    torch.testing.assert_close(grad.sum(0), exact, atol=6e-3, rtol=0)


def test_among_some_options_it_is_the_smaller_distribution():
    """Drawing all, leaving one out and normalising gives the same (neutrality)."""
    torch.manual_seed(0)
    alive = [[True, False, True]] * DRAWS
    direct = Restricted(Dirichlet(), alive)(ALPHA.repeat(DRAWS, 1)).weights
    assert not direct[:, 1].any()
    renormalised = Dirichlet()(ALPHA.repeat(DRAWS, 1)).weights[:, [0, 2]]
    renormalised = renormalised / renormalised.sum(1, keepdim=True)
    for moment in (1, 2):
        both = [values.pow(moment).mean(0) for values in (direct[:, [0, 2]], renormalised)]
        torch.testing.assert_close(*both, atol=5e-3, rtol=0)


def test_very_negative_alpha_gives_numbers():
    alpha = torch.tensor([[-60.0, -60.0, 0.0], [-60.0, -60.0, -60.0]], requires_grad=True)
    weights = Dirichlet()(alpha).weights
    (grad,) = torch.autograd.grad(weights.square().sum(), alpha)
    assert weights.isfinite().all()
    assert grad.isfinite().all()


def test_the_anchor_is_the_divergence_from_the_uniform_distribution():
    beta = elu(ALPHA.double()) + 1
    exact = kl_divergence(torch.distributions.Dirichlet(beta), torch.distributions.Dirichlet(torch.ones(3).double()))
    torch.testing.assert_close(kl_to_uniform(beta), exact)
    assert kl_to_uniform(torch.ones(4)).item() == pytest.approx(0, abs=1e-6)
    alphas = {"cell": torch.stack([ALPHA, ALPHA, ALPHA]).requires_grad_()}
    mask = {"cell": [[True] * 3, [True] * 3, [True, False, False]]}  # the last one is no decision any more
    value = dirichlet_anchor(alphas, mask, 0.0, weight=0.5)
    assert value.item() == pytest.approx(0.5 * 2 * exact.item(), rel=1e-5)
    (grad,) = torch.autograd.grad(value, alphas["cell"])
    assert (grad[0] * ALPHA > 0).sum() >= 2  # downhill is towards α = 0
    assert not grad[2].any()


def test_the_penalty_moves_alpha():
    searches = [begin("drnas", 3, alpha={"penalty": "dirichlet-anchor", "penalty_options": {"weight": w}, "rate": 0.01})
                for w in (0.0, 1e4)]  # fmt: skip
    for search in searches:
        with torch.no_grad():
            search.a[0].fill_(0.0)[:, 2] = 0.5
        next(search.rounds())
    moved = [search.a[0][:, 2].mean().item() for search in searches]
    assert moved[1] == pytest.approx(0.49, abs=1e-3)
    assert moved[0] > moved[1]


def test_the_second_stage_has_half_of_the_options_more_channels_and_the_same_alpha():
    search = begin("drnas", 4, channels=8, none=True)
    rounds, shares = search.rounds(), []
    for one in rounds:
        shares.append((one.stage, search.net.body[0].share, {sum(row) for row in search.mask["cell"]}))
        if len(shares) == 2:
            end, weights = search.a[0].detach().clone(), search.w[0].detach().clone()
    assert shares == [(1, 4, {5}), (1, 4, {5}), (2, 2, {3}), (2, 2, {3})]
    best = end.topk(3, dim=1).indices.sort().values.tolist()
    assert [[column for column, on in enumerate(row) if on] for row in search.mask["cell"]] == best
    assert (search.a[0] - end).abs().max() < 0.5  # α was carried over: a fresh one would be 1e-3·randn
    assert not torch.equal(search.w[0], weights)
    chosen = search.net.path(search.select())["cell"].weights.argmax(1).tolist()
    assert all(search.mask["cell"][row][column] for row, column in enumerate(chosen))


def test_alpha_of_the_second_stage_starts_where_the_first_ended():
    search = begin("drnas", 4)
    rounds = search.rounds()
    next(rounds), next(rounds)
    end = search.a[0].detach().clone()
    search._next_stage()
    assert torch.equal(search.a[0], end)
    with pytest.raises(InputError, match="a share above 0"):
        drnas(config("drnas"), keep=0.0)
