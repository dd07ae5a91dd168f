"""The driver: alternating steps with any optimisers, states, logging and resume."""

import io
from functools import partial

import pytest
import torch
from problems import flat, quadratic, smooth
from torch import nn
from torch.nn.functional import mse_loss

from idarts import InputError, NotFiniteError
from idarts.hypergrad import (
    F2SA,
    Bilevel,
    Exact,
    FirstOrder,
    Neumann,
    OneStep,
    Running,
    from_optimizer,
    hypergradient,
    lift,
)

SGD, Adam, LBFGS = torch.optim.SGD, torch.optim.Adam, torch.optim.LBFGS


def engine(method, w_kind=SGD, a_kind=Adam, seed=0, **options):
    inner, outer, w, a = smooth(seed)
    return Bilevel(inner, outer, method, w_kind(w, lr=0.05), a_kind(a, lr=0.02), **options)


def test_a_round_is_what_one_would_write_by_hand():
    driver, seen = engine(Running(), inner_steps=2), []
    driver.run(3, log=lambda number, estimate: seen.append((number, estimate.outer_loss)))
    inner, outer, w, a = smooth()
    optimizers, state = (SGD(w, lr=0.05), Adam(a, lr=0.02)), None
    for number in range(3):
        for _ in range(2):
            optimizers[0].zero_grad()
            inner(w, tuple(t.detach() for t in a)).backward()
            optimizers[0].step()
        estimate = hypergradient(inner, outer, w, a, Running(), state=state).write_grad(a)
        state = estimate.state
        optimizers[1].step()
        assert seen[number] == (number + 1, estimate.outer_loss)
    assert torch.equal(flat(driver.w), flat(w))
    assert torch.equal(flat(driver.a), flat(a))


@pytest.mark.parametrize("kind", [SGD, Adam, LBFGS])
def test_any_optimiser_solves_the_problem(kind):
    """α* of the quadratic problem in closed form."""
    problem = quadratic(condition=3.0, converged=False)
    options = {"lr": 0.2} if kind is not LBFGS else {"max_iter": 10}
    driver = Bilevel(
        problem.inner, problem.outer, Exact(), kind([problem.w], **options), SGD([problem.a], lr=0.1), inner_steps=10
    )
    driver.run(60)
    inverse = torch.linalg.inv(problem.A)
    P = inverse @ problem.B
    gap = problem.d + P.T @ (inverse @ problem.c - problem.t)
    best = torch.linalg.solve(torch.eye(3, dtype=torch.float64) + P.T @ P, -gap)
    assert (problem.a.detach() - best).norm() < 0.01 * best.norm()


def test_one_loop_moves_w_v_and_a_at_once():
    """SOBA: each at its own rate, all from one estimate."""
    problem = quadratic(condition=3.0, converged=False)
    w0, a0 = problem.w.detach().clone(), problem.a.detach().clone()
    method = Running(step=0.2, damping=0.0)
    optimizers = SGD([problem.w], lr=0.2), SGD([problem.a], lr=0.05)
    driver = Bilevel(problem.inner, problem.outer, method, *optimizers, one_loop=True)
    w, a, v = w0, a0, 0.2 * (w0 - problem.t)
    for _ in range(5):
        driver.round()
        residual = problem.A @ v - (w - problem.t)
        w, a, v = (
            w - 0.2 * (problem.A @ w - problem.B @ a - problem.c),
            a - 0.05 * (problem.d + a + v @ problem.B),
            v - 0.2 * residual,
        )
        torch.testing.assert_close(problem.w.detach(), w)
        torch.testing.assert_close(problem.a.detach(), a)
    with pytest.raises(InputError, match="FirstOrder computes no inner gradient"):
        engine(FirstOrder(), one_loop=True).round()


@pytest.mark.parametrize("method", [Running(), F2SA(0.05), Neumann(2, damping=2.0)], ids=lambda m: type(m).__name__)
def test_resumes_bit_for_bit(method):
    """Both optimisers have a state."""
    momentum = partial(SGD, momentum=0.9)
    whole, half = (engine(method, momentum) for _ in range(2))
    whole.run(6)
    half.run(3)
    file = io.BytesIO()
    snapshot = half.state_dict()
    torch.save(snapshot, file)
    half.run(2)  # a snapshot does not change afterwards
    for state in (snapshot, torch.load(io.BytesIO(file.getvalue()), weights_only=True)):
        resumed = engine(method, momentum)
        resumed.load_state_dict(state)
        resumed.run(3)
        assert resumed.rounds == 6
        assert torch.equal(flat(resumed.a), flat(whole.a))
        assert torch.equal(flat(resumed.w), flat(whole.w))


def test_a_refused_round_leaves_a_and_the_state():
    inner, outer, w, a = smooth()
    losses = iter([outer, lambda w, a: outer(w, a) * float("nan"), outer])
    driver = Bilevel(inner, losses, Running(), SGD(w, lr=0.05), Adam(a, lr=0.02))
    driver.round()
    before, state = flat(a), driver.state
    with pytest.raises(NotFiniteError):
        driver.round()
    assert torch.equal(flat(a), before)
    assert driver.state is state
    driver.round()
    assert driver.rounds == 2


def test_batches_come_from_iterators_and_the_method_from_a_function():
    torch.manual_seed(0)
    net, gain = nn.Linear(3, 1), nn.Parameter(torch.zeros(3))
    x = torch.randn(40, 3)
    y = x[:, :1] * 2

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.net, self.gain = net, gain

        def forward(self, x):
            return self.net(x * self.gain.exp())

    model, w = Model(), tuple(net.parameters())
    count = [0]

    def losses():
        while True:
            count[0] += 1
            part = torch.randint(40, (8,))
            yield lift(model, mse_loss, (x[part], y[part]), w, (gain,))

    adam = Adam(w, lr=0.05)
    method = lambda: Neumann(2, **from_optimizer(adam, w))  # noqa: E731
    driver = Bilevel(losses(), losses(), method, adam, Adam([gain], lr=0.05), inner_steps=3)
    first, last = driver.round(), driver.run(20)
    assert count[0] == 21 * (3 + 1 + 1)
    assert last.outer_loss < first.outer_loss / 2
    ended = Bilevel(iter([]), losses(), FirstOrder(), adam, Adam([gain]))
    with pytest.raises(InputError, match="an iterator of losses has ended"):
        ended.round()


def test_weight_steps_of_a_lifted_loss_update_batch_norm_and_nothing_else_does():
    torch.manual_seed(0)
    net, gain = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1)), nn.Parameter(torch.zeros(1))
    x = torch.randn(40, 3) + 5
    w = tuple(net.parameters())
    data = lift(net, mse_loss, (x, x[:, :1]), w)
    inner = lambda w, a: data(w, ()) + a[0].exp().sum() * w[0].square().sum()  # noqa: E731
    driver = Bilevel(inner, data, OneStep(0.01), SGD(w, lr=1e-4), SGD([gain], lr=0.01), inner_steps=5)
    driver.run(20)
    assert net[1].num_batches_tracked == 5 * 20
    mean, variance = net[0](x).mean(0), net[0](x).var(0)
    torch.testing.assert_close(net[1].running_mean, mean.detach(), rtol=0.1, atol=0.05)
    torch.testing.assert_close(net[1].running_var, variance.detach(), rtol=0.1, atol=0.05)


def test_warns_of_weight_decay_that_the_method_does_not_know():
    problem = quadratic()
    optimizers = SGD([problem.w], lr=0.1, weight_decay=0.5), SGD([problem.a], lr=0.1)
    with pytest.warns(UserWarning, match="Running does not know it"):
        Bilevel(problem.inner, problem.outer, Running(), *optimizers)
    known = from_optimizer(optimizers[0], [problem.w])
    for method in (Running(**known), Running(weight_decay=0.5), FirstOrder()):  # a warning would be an error
        Bilevel(problem.inner, problem.outer, method, *optimizers)


def test_frozen_parameters_are_left_out_and_any_grad_mode_will_do():
    net, gain = nn.Linear(3, 1), nn.Parameter(torch.zeros(1))
    net.bias.requires_grad_(False)
    x = torch.randn(8, 3)
    loss = lambda w, a: ((x @ w[0].T) ** 2 * a[0].exp()).mean() + (w[0] - 1).square().sum()  # noqa: E731
    driver = Bilevel(loss, loss, Neumann(1, 0.1), SGD(net.parameters(), lr=0.1), SGD([gain], lr=0.1))
    with torch.inference_mode():
        driver.round()
    assert [tensor.shape for tensor in driver.w] == [net.weight.shape]
    assert not gain.grad.is_inference()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"inner": []}, "inner is a list; give a loss"),
        ({"outer": None}, "outer is a NoneType"),
        ({"method": "neumann"}, "method is 'neumann'; give a method such as Neumann"),
    ],
)
def test_refuses_other_kinds_of_arguments(change, words):
    problem = quadratic()
    arguments = {"inner": problem.inner, "outer": problem.outer, "method": Running(), **change}
    with pytest.raises(InputError, match=words):
        Bilevel(**arguments, w_optimizer=SGD([problem.w], lr=0.1), a_optimizer=SGD([problem.a], lr=0.1))


def test_refuses_what_is_not_possible():
    for options in ({"inner_steps": -1}, {"inner_steps": 2, "one_loop": True}):
        with pytest.raises(InputError, match="inner_steps"):
            engine(Running(), **options)
    with pytest.raises(InputError, match="rounds=0"):
        engine(Running()).run(0)
    other = quadratic()
    driver = Bilevel(other.inner, other.outer, Running(), SGD([other.w], lr=0.1), SGD([other.a], lr=0.1))
    with pytest.raises(InputError, match="the tensors of w in this state have other shapes"):
        driver.load_state_dict(engine(Running()).state_dict())
