"""SNAS: the concrete distribution against its integrals, and one level: one batch steps w and α."""

import math

import pytest
import torch
from tiny import begin
from torch import nn
from torch.nn.functional import mse_loss

from idarts import Choice, InputError
from idarts.searching import Task, config
from idarts.searching.relaxations.gumbel import Gumbel
from idarts.searching.relaxations.soft_gumbel import SoftGumbel
from idarts.searching.streams import TensorBatches
from idarts.spaces import ChoiceSupernet

DRAWS = 100_000


def expectation(a, temperature):
    """E[Z₁] of two options: σ((a + x)/λ) integrated over logistic noise x, by the midpoint rule in its quantiles."""
    quantiles = (torch.arange(400_000, dtype=torch.float64) + 0.5) / 400_000
    return ((a + quantiles.logit()) / temperature).sigmoid().mean().item()


@pytest.mark.parametrize(("temperature", "slope"), [(1.0, 0.15873), (0.3, 0.21175), (0.1, 0.22052), (0.03, 0.22160)])
def test_the_mean_pathwise_gradient_is_the_derivative_of_the_integral(temperature, slope):
    torch.manual_seed(0)
    alpha = torch.tensor([0.7, 0.0]).repeat(DRAWS, 1).requires_grad_()
    weights = SoftGumbel(first=temperature).at(0.0)(alpha).weights
    assert weights[:, 0].mean().item() == pytest.approx(expectation(0.7, temperature), abs=4e-3)
    (grad,) = torch.autograd.grad(weights[:, 0].sum() / DRAWS, alpha)
    exact = (expectation(0.7 + 1e-3, temperature) - expectation(0.7 - 1e-3, temperature)) / 2e-3
    assert exact == pytest.approx(slope, abs=2e-4)
    tolerance = 4 * 0.25 / math.sqrt(temperature * DRAWS)
    assert grad[:, 0].sum().item() == pytest.approx(exact, abs=tolerance)
    assert grad.sum().item() == pytest.approx(0, abs=1e-5)


def test_the_closed_form_at_temperature_one():
    e = math.exp(0.7)
    assert expectation(0.7, 1.0) == pytest.approx(e * (e - 0.7 - 1) / (e - 1) ** 2, abs=1e-5)


def test_one_draw_has_the_derivative_of_a_softmax():
    alpha = torch.tensor([[0.3, -0.2, 1.0]], requires_grad=True)
    torch.manual_seed(5)
    z = SoftGumbel(first=0.4)(alpha).weights
    jacobian = torch.stack([torch.autograd.grad(z[0, k], alpha, retain_graph=True)[0][0] for k in range(3)])
    exact = (torch.eye(3) - z.detach()) * z.detach().T / 0.4  # row k, column j: (δ_jk − Z_j)·Z_k/λ
    torch.testing.assert_close(jacobian, exact)


@pytest.mark.parametrize("temperature", [1.0, 0.1])
def test_the_largest_is_drawn_by_the_softmax_at_every_temperature(temperature):
    torch.manual_seed(0)
    alpha = torch.tensor([1.0, 2.0, 4.0]).log().repeat(20_000, 1)
    weights = SoftGumbel(first=temperature)(alpha).weights
    torch.testing.assert_close(weights.sum(1), torch.ones(20_000))
    counts = torch.bincount(weights.argmax(1), minlength=3).double()
    expected = torch.tensor([1.0, 2.0, 4.0], dtype=torch.float64) / 7 * 20_000
    assert ((counts - expected) ** 2 / expected).sum() < 13.8  # χ² of two degrees of freedom, 1 in 1,000


def test_a_cold_draw_is_the_one_of_gdas_with_the_same_noise():
    alpha = torch.randn(50, 4)
    torch.manual_seed(9)
    soft = SoftGumbel(first=1e-4)(alpha).weights
    torch.manual_seed(9)
    torch.testing.assert_close(soft, Gumbel(1e-4)(alpha).weights, atol=1e-3, rtol=0)
    with pytest.raises(InputError, match="expected positive numbers"):
        SoftGumbel(first=0.0)


def test_the_temperature_falls_over_the_budget_of_any_length():
    search = begin("snas", 3)
    seen = [search.relaxed(search.relaxation, "cell").temperature for _ in search.rounds()]
    assert seen == pytest.approx([1 - 0.97 * number / 3 for number in (1, 2, 3)])


class Recorder:
    """A rule that only remembers what it was given."""

    def __init__(self, alphas, settings):
        self.grads = []
        self.rate = settings.rate

    def step(self, grads):
        self.grads.append([grad.clone() for grad in grads])

    def state_dict(self):
        return {}

    def load_state_dict(self, state): ...


def test_the_batch_and_the_loss_that_step_w_step_alpha():
    from idarts.searching import RULES

    torch.manual_seed(0)
    net = ChoiceSupernet(Choice({"a": nn.Linear(3, 1), "b": nn.Linear(3, 1)}, name="block"))
    x = torch.randn(8, 3)
    train, valid = (TensorBatches(x, x.sum(1, keepdim=True) + shift, 8) for shift in (0.0, 99.0))
    settings = config(
        strategy="one-level", rounds=1, inner_steps=1, batch=8, alpha={"rule": RULES.own(Recorder, "tests:recorder")}
    )
    search = Task(net, train, valid, settings, mse_loss).search()
    start = [value.detach().clone() for value in (*search.w, *search.a)]
    (exact,) = torch.autograd.grad(mse_loss(net(x), x.sum(1, keepdim=True)), net.architecture_parameters())
    (only,) = search.rounds()
    ((grad,),) = search.strategy.rule.grads
    torch.testing.assert_close(grad, exact)  # at the w before the step, of the training loss
    assert exact.abs().max() > 1e-3
    assert not torch.equal(search.w[0], start[0])
    assert search.gradient_evaluations == pytest.approx(1 + 1 / 3)  # one for both, and the look that reports
    assert only.valid_loss > 1000


def test_none_may_be_selected_and_paths_without_gradients_are_refused():
    search = begin("snas", 1)
    with torch.no_grad():
        search.a[0][:, search.net.none] = 9.0
    assert "none" in str(search.select())
    with pytest.raises(InputError, match="gives α no gradient"):
        begin("snas", 1, relaxation="uniform")
