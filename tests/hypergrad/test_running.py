"""Estimators that keep a solution from call to call: closed forms with noise and without, and their states."""

import copy
import io
from dataclasses import dataclass, replace

import pytest
import torch
from problems import flat, quadratic, smooth
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from idarts import InputError, NotFiniteError
from idarts.errors import CurvatureWarning
from idarts.hypergrad import (
    BOME,
    F2SA,
    AmIGO,
    Exact,
    Neumann,
    OneStep,
    Part,
    Recursive,
    Running,
    Saba,
    hypergradient,
    lift,
)
from idarts.hypergrad.products import ExactProducts

METHODS = {
    "running": Running(),
    "momentum": Running(momentum=0.5, smoothing=0.5),
    "fixed step": Running(step=0.05, damping=0.1),
    "amigo": AmIGO(iterations=3),
    "amigo, conjugate gradients": AmIGO(iterations=3, solver="conjugate-gradient"),
    "recursive": Recursive(eta=0.3),
    "f2sa": F2SA(step=0.05, growth=1.0),
    "bome": BOME(step=0.05),
    "saba": Saba(),
}


def run(problem, method, **options):
    return hypergradient(problem.inner, problem.outer, (problem.w,), (problem.a,), method, **options)


def follow(problem, method, calls, state=None):
    for _ in range(calls):
        estimate = run(problem, method, state=state)
        state = estimate.state
    return estimate


def parts(method, inner, outer, number=0):
    """The losses, with the numbers of their batches where the method needs them."""
    return (Part(inner, number % 2, 2), Part(outer, 0, 1)) if isinstance(method, Saba) else (inner, outer)


def inverse(problem, damping=0.0):
    return torch.linalg.inv(problem.A + damping * torch.eye(len(problem.A), dtype=torch.float64))


# --- without noise -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("damping", [0.0, 0.5])
@pytest.mark.parametrize(
    "method",
    [
        Running(),
        Running(step=0.15),
        Running(momentum=0.6, smoothing=0.5),
        AmIGO(),
        AmIGO(solver="conjugate-gradient"),
        Recursive(eta=0.2),
    ],
    ids=repr,
)
def test_without_noise_v_reaches_the_damped_solution(method, damping):
    problem = quadratic(converged=False)
    estimate = follow(problem, replace(method, damping=damping), 60 if isinstance(method, AmIGO) else 250)
    torch.testing.assert_close(estimate.solution, inverse(problem, damping) @ problem.g)
    exact = run(problem, Exact(damping=damping))
    torch.testing.assert_close(estimate.implicit[0], exact.implicit[0])
    torch.testing.assert_close(estimate.direct[0], exact.direct[0])


def test_each_call_is_one_step_of_the_recursion():
    problem, rho, beta, damping = quadratic(), 0.08, 0.4, 0.3
    H = problem.A + damping * torch.eye(6, dtype=torch.float64)
    v, before, state = rho * problem.g, torch.zeros(6, dtype=torch.float64), None
    for _ in range(6):
        estimate = run(problem, Running(step=rho, damping=damping, momentum=beta), state=state)
        torch.testing.assert_close(estimate.solution, v)
        torch.testing.assert_close(estimate.implicit[0], v @ problem.B)
        residual = (H @ v - problem.g).norm() / problem.g.norm()
        assert estimate.diagnostics.residual == pytest.approx(residual.item())
        v, before, state = v - rho * (H @ v - problem.g) + beta * (v - before), v, estimate.state
    assert estimate.diagnostics.hvps == 1


def test_the_first_call_is_one_step_and_n_calls_are_a_series():
    problem = quadratic()
    method = Running(step=0.07, damping=0.0)
    assert torch.equal(run(problem, method).implicit[0], run(problem, OneStep(0.07)).implicit[0])
    torch.testing.assert_close(follow(problem, method, 4).implicit[0], run(problem, Neumann(3, 0.07)).implicit[0])
    torch.testing.assert_close(
        follow(problem, AmIGO(iterations=2, step=0.07, damping=0.0), 3).implicit[0],
        run(problem, Neumann(5, 0.07)).implicit[0],
    )


def test_the_automatic_step_never_lets_v_grow_when_the_curvature_does():
    problem = quadratic(condition=10.0)
    state = follow(problem, Running(refresh=1000), 30).state
    problem.A = 50 * problem.A  # 25 times beyond what the old step can bear
    last = follow(problem, Running(refresh=1000), 300, state)
    torch.testing.assert_close(last.solution, inverse(problem, 0.02) @ problem.g, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("multiplier", [10.0, 1000.0])
def test_f2sa_reaches_the_penalty_methods_closed_form_at_any_w(multiplier):
    """(H + I/λ) v = g, because L2's own curvature is I; w need not be at the inner minimum."""
    problem = quadratic(converged=False)
    estimate = follow(problem, F2SA(step=0.09, multiplier=multiplier), 250)
    torch.testing.assert_close(estimate.implicit[0], problem.implicit(inverse(problem, 1 / multiplier)))
    error = (estimate.grads[0] - problem.exact).norm() / problem.exact.norm()
    assert error < 5 / multiplier
    several = follow(problem, F2SA(step=0.09, multiplier=multiplier, steps=4), 60)
    torch.testing.assert_close(several.implicit[0], estimate.implicit[0])


@pytest.mark.parametrize(
    ("method", "products"),
    [(Running(refresh=3), 1), (AmIGO(iterations=3, refresh=3), 3), (Recursive(eta=0.3, refresh=3), 2)],
)
def test_the_eigenvalue_is_measured_at_first_and_then_by_two_products_every_refresh_calls(method, products):
    problem, state, counts = quadratic(condition=10.0), None, []
    for _ in range(7):
        estimate = hypergradient(problem.inner, problem.outer, (problem.w,), (problem.a,), method, state=state)
        state = estimate.state
        counts.append(estimate.diagnostics.hvps)
        assert estimate.diagnostics.eigenvalue == pytest.approx(10 + 0.02, rel=1e-3)
    again = products + 2
    assert counts == [20 + max(products - 1, 1), products, products, again, products, products, again]


def test_f2sas_growing_multiplier_removes_its_bias():
    problem = quadratic()
    errors = [
        (follow(problem, F2SA(step=0.09, multiplier=10.0, growth=growth), 250).grads[0] - problem.exact).norm()
        for growth in (0.0, 10.0)
    ]
    assert errors[1] < errors[0] / 50


@pytest.mark.parametrize(("eta", "rate", "bound"), [(1.0, 0.1, 0.04), (2.0, 0.05, 0.022)])
def test_bome_decreases_the_barrier_and_comes_within_its_step_of_the_solution(eta, rate, bound):
    """The multiplier is the smallest with ⟨∇q, step⟩ ≥ η‖∇q‖²; half the step, half the distance at the end."""
    problem, method, state = quadratic(condition=3.0, converged=False), BOME(step=rate, eta=eta), None
    for number in range(250):
        problem.w = problem.optimum().requires_grad_()
        estimate = run(problem, method, state=state)
        if 0 < number < 20:
            multiplier = estimate.diagnostics.measures["multiplier"]
            y, w, a = state["y"], problem.w.detach(), problem.a.detach()
            q = torch.cat([problem.A @ y - problem.B @ a - problem.c, -(y - w) @ problem.B])
            step = torch.cat([y - problem.t, problem.d + a]) + multiplier * q
            torch.testing.assert_close(torch.cat([(y - estimate.state["y"]) / rate, estimate.grads[0]]), step)
            decrease = (q @ step / (eta * (q @ q))).item()
            assert decrease == pytest.approx(1) if multiplier else decrease >= 1
        state = estimate.state
        problem.a = (problem.a.detach() - rate * estimate.grads[0]).requires_grad_()
    P = inverse(problem) @ problem.B  # α* solves d + α + Pᵀ(Pα + A⁻¹c − t) = 0
    gap = problem.d + P.T @ (inverse(problem) @ problem.c - problem.t)
    best = torch.linalg.solve(torch.eye(3, dtype=torch.float64) + P.T @ P, -gap)
    assert (problem.a.detach() - best).norm() < bound * best.norm()


def test_the_first_order_family_takes_no_second_derivative():
    inner, outer, w, a = smooth()

    class Once(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, grad):
            return grad

    once = lambda w, a: Once.apply(inner(w, a))  # noqa: E731
    for method in (F2SA(0.05), BOME(0.05)):
        estimate = hypergradient(once, outer, w, a, method)
        assert estimate.diagnostics.hvps == 0
        assert method.derivatives == 1
    assert (
        hypergradient(
            once, outer, w, a, F2SA(0.05), state={"v": torch.zeros(15), "calls": 1}
        ).diagnostics.gradient_evaluations
        == 3
    )


@pytest.mark.parametrize(
    "method", [Running(), Running(step=0.05), AmIGO(), Recursive(eta=0.5), Saba(), Recursive(step=0.05)], ids=repr
)
def test_weight_decay_is_part_of_the_system_once(method):
    problem, state, decay = quadratic(converged=False), None, 0.7
    method = replace(method, damping=0.2, weight_decay=decay)
    losses = parts(method, problem.inner, problem.outer)
    if isinstance(method, Saba):
        losses = Part(problem.inner, 0, 1), losses[1]
    for _ in range(400):
        estimate = hypergradient(*losses, (problem.w,), (problem.a,), method, state=state)
        state = estimate.state
    torch.testing.assert_close(estimate.solution, inverse(problem, 0.2 + decay) @ problem.g)


def test_the_automatic_step_of_amigo_follows_a_small_curvature():
    problem = quadratic(condition=2.0)
    problem.A = 0.05 * problem.A
    estimate = run(problem, AmIGO(damping=0.0))
    assert estimate.diagnostics.eigenvalue == pytest.approx(0.1, rel=0.02)
    assert estimate.diagnostics.step == pytest.approx(10, rel=0.02)


def test_a_problem_that_is_solved_has_no_residual():
    problem = quadratic()
    problem.t = problem.w.detach().clone()  # g = 0
    for method in (Running(), Recursive(), F2SA(step=0.05), Neumann(2)):
        assert run(problem, method, diagnostics=True).diagnostics.residual == 0


@pytest.mark.parametrize("method", [Running(), AmIGO(), Recursive(), F2SA(step=0.5, multiplier=1e6)], ids=repr)
def test_a_solution_that_grows_along_negative_curvature_gives_a_warning(method):
    problem = quadratic(2)
    problem.A = torch.diag(torch.tensor([1.0, -0.1], dtype=torch.float64))
    with pytest.warns(CurvatureWarning, match="grows along negative curvature"):
        follow(problem, method, 100)
    problem.A = problem.A.abs()
    follow(problem, method, 100)  # a warning would be an error


def test_f2sa_takes_its_difference_of_gradients_in_full_precision():
    """λ(∇L1(w) − ∇L1(y)) is a second derivative: in bfloat16 nothing but rounding would be left."""
    torch.manual_seed(0)
    x, y = torch.randn(64, 10), torch.randn(64, 1)
    w, a = (torch.zeros(10, 1, requires_grad=True),), (torch.full((10, 1), -1.0, requires_grad=True),)
    inner = lambda w, a: ((x @ w[0] - y) ** 2).mean() + (a[0].exp() * w[0] ** 2).sum()  # noqa: E731
    outer = lambda w, a: ((x @ w[0] + y) ** 2).mean()  # noqa: E731
    with torch.no_grad():
        w[0].copy_(torch.linalg.solve(x.T @ x / 64 + torch.diag(a[0].exp().flatten()), x.T @ y / 64))
    grads = []
    for enabled in (False, True):
        state = None
        for _ in range(60):
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=enabled):
                estimate = hypergradient(inner, outer, w, a, F2SA(step=0.1, multiplier=100.0), state=state)
            state = estimate.state
        grads.append(estimate.grads[0])
    assert (grads[1] - grads[0]).norm() < 0.05 * grads[0].norm()


# --- with noise --------------------------------------------------------------------------------------------------


@dataclass
class Noisy:
    """Many copies of one problem side by side, each with its own noise: averages over them are expectations.

    L1 = Σ s·h·w²/2 − w·Bα with E s = 1, Var s = δ²; L2 = (g + e)·w + (d + c)·α with e, c of variance σ².
    """

    h: Tensor
    B: Tensor
    g: float = 1.5
    d: float = 0.7
    sigma: float = 0.8
    delta: float = 0.0
    copies: int = 6000

    def __post_init__(self):
        self.make = torch.Generator().manual_seed(0)
        n, m = self.B.shape
        self.w = torch.zeros(self.copies, n, dtype=torch.float64, requires_grad=True)
        self.a = torch.zeros(self.copies, m, dtype=torch.float64, requires_grad=True)

    def draw(self):
        n, m = self.B.shape
        e, c, s = (torch.randn(self.copies, k, generator=self.make, dtype=torch.float64) for k in (n, m, n))
        curvature = self.h * (1 + self.delta * s.sign())

        def inner(w, a):
            return (curvature * w[0] ** 2).sum() / 2 - (w[0] * (a[0] @ self.B.T)).sum()

        def outer(w, a):
            return (w[0] * (self.g + self.sigma * e)).sum() + (a[0] * (self.d + self.sigma * c)).sum()

        return inner, outer

    def follow(self, method, calls=80):
        state = None
        for _ in range(calls):
            estimate = hypergradient(*self.draw(), (self.w,), (self.a,), method, state=state)
            state = estimate.state
        return estimate


def noisy(**options):
    return Noisy(
        torch.tensor([0.5, 1.0, 2.0]).double(), torch.tensor([[1.0, 0.5], [-0.5, 1.0], [0.3, 0.8]]).double(), **options
    )


def covariance(rows):
    return torch.cov(rows.detach().reshape(-1, rows.shape[-1]).T)


@pytest.mark.parametrize(("delta", "damping"), [(0.0, 0.0), (0.0, 0.25), (0.6, 0.25)])
def test_the_stationary_error_of_v_and_of_the_hypergradient(delta, damping):
    """v' = (1 − ρ(s·h + damping)) v + ρ(g + e): its first two moments in closed form."""
    problem, rho = noisy(delta=delta), 0.4
    estimate = problem.follow(Running(step=rho, damping=damping))
    h = problem.h + damping
    mean = problem.g / h
    square = (1 - rho * h) ** 2 + (rho * delta * problem.h) ** 2
    second = (2 * rho * problem.g * (1 - rho * h) * mean + rho**2 * (problem.g**2 + problem.sigma**2)) / (1 - square)
    variance = second - mean**2
    if not delta:
        torch.testing.assert_close(variance, rho * problem.sigma**2 / (h * (2 - rho * h)))
    v = estimate.solution.view(problem.copies, -1)
    torch.testing.assert_close(v.mean(0), mean, rtol=0.02, atol=0)
    torch.testing.assert_close(v.var(0), variance, rtol=0.08, atol=0)
    torch.testing.assert_close(estimate.implicit[0].mean(0), mean @ problem.B, rtol=0.03, atol=0)
    expected = problem.B.T @ torch.diag(variance) @ problem.B
    torch.testing.assert_close(covariance(estimate.implicit[0]), expected, rtol=0.08, atol=0.02)
    whole = expected + problem.sigma**2 * torch.eye(2)  # the direct part has its own noise
    torch.testing.assert_close(covariance(estimate.grads[0]), whole, rtol=0.08, atol=0.03)


def test_the_noise_of_a_running_v_falls_with_its_step_while_a_series_keeps_it():
    problem = noisy(copies=2000)
    spread = [problem.follow(Running(step=rho, damping=0.0), 100).implicit[0].var(0).sum() for rho in (0.4, 0.1)]
    assert 3.3 < spread[0] / spread[1] < 6
    series = hypergradient(*problem.draw(), (problem.w,), (problem.a,), Neumann(60, 0.4))
    assert series.implicit[0].var(0).sum() > 5 * spread[0]


def test_heavy_balls_stationary_variance_is_that_of_its_second_order_recursion():
    problem, rho, beta = noisy(), 0.4, 0.5
    v = problem.follow(Running(step=rho, damping=0.0, momentum=beta)).solution.view(problem.copies, -1)
    one, two = 1 + beta - rho * problem.h, -beta
    variance = (rho * problem.sigma) ** 2 * (1 - two) / ((1 + two) * ((1 - two) ** 2 - one**2))
    torch.testing.assert_close(v.mean(0), problem.g / problem.h, rtol=0.03, atol=0)
    torch.testing.assert_close(v.var(0), variance, rtol=0.08, atol=0)


def test_smoothing_divides_the_noise_of_the_direct_part():
    problem, theta = noisy(), 0.8
    estimate = problem.follow(Running(step=0.4, smoothing=theta))
    expected = problem.sigma**2 * (1 - theta) / (1 + theta)
    torch.testing.assert_close(estimate.direct[0].var(0), torch.full((2,), expected).double(), rtol=0.08, atol=0)
    torch.testing.assert_close(estimate.direct[0].mean(0), torch.full((2,), problem.d).double(), rtol=0.02, atol=0)


def test_recursive_momentum_averages_noise_without_a_lag():
    """d − D = (1 − η)(d − D) + ηe where the noise does not depend on the point: variance η/(2 − η)σ², mean 0."""
    problem, eta = noisy(), 0.2
    estimate = problem.follow(Recursive(step=0.4, damping=0.0, eta=eta), 40)
    state = estimate.state
    error = state["residual"] - (problem.h * state["at"].view(-1, 3) - problem.g).reshape(-1)
    expected = torch.tensor(problem.sigma**2 * eta / (2 - eta)).double()
    torch.testing.assert_close(error.var(), expected, rtol=0.06, atol=0)
    assert error.mean().abs() < 0.01
    torch.testing.assert_close(estimate.direct[0].var(), expected, rtol=0.06, atol=0)


def batches(count=3):
    """The smooth problem's losses in several versions, whose mean is the whole loss."""
    problems = [smooth(seed) for seed in range(count)]
    inners, outers = ([problem[part] for problem in problems] for part in (0, 1))
    mean = lambda losses: lambda w, a: sum(loss(w, a) for loss in losses) / len(losses)  # noqa: E731
    return inners, outers, mean(inners), mean(outers), problems[0][2], problems[0][3]


def test_runnings_directions_are_unbiased_over_the_batches_and_a_series_is_not():
    inners, outers, inner, outer, w, a = batches()
    fixed = Running(step=0.05)
    state = hypergradient(inner, outer, w, a, fixed).state
    pairs = [(i, o) for i in inners for o in outers]

    def error(method, state):
        whole = hypergradient(inner, outer, w, a, method, state=state)
        each = [hypergradient(i, o, w, a, method, state=state) for i, o in pairs]
        mean = torch.stack([flat(one.grads) for one in each]).mean(0)
        gap = (mean - flat(whole.grads)).norm() / flat(whole.implicit).norm()
        if state is None:
            return gap
        v = torch.stack([one.state["v"] for one in each]).mean(0)
        return gap + (v - whole.state["v"]).norm()

    assert error(fixed, state) < 1e-12
    assert error(Neumann(2, 0.05), None) > 1e-3


def test_saba_is_unbiased_and_its_noise_vanishes():
    inners, outers, inner, outer, w, a = batches()
    method, state = Saba(step=0.1, damping=1.0), None
    draw = torch.Generator().manual_seed(0)

    def one(i, j, state):
        return hypergradient(Part(inners[i], i, 3), Part(outers[j], j, 3), w, a, method, state=state)

    state = one(0, 0, None).state
    state = one(1, 2, state).state  # the table is not full yet
    each = [one(i, j, state) for i in range(3) for j in range(3)]
    whole = hypergradient(inner, outer, w, a, Running(step=0.1, damping=1.0), state=state)
    torch.testing.assert_close(torch.stack([flat(e.grads) for e in each]).mean(0), flat(whole.grads))
    torch.testing.assert_close(torch.stack([e.state["v"] for e in each]).mean(0), whole.state["v"])
    torch.testing.assert_close(torch.stack([e.inner_gradient for e in each]).mean(0), whole.inner_gradient)
    spread = [torch.stack([flat(e.grads) for e in each]).var(0).sum()]
    for _ in range(300):
        i, j = torch.randint(3, (2,), generator=draw).tolist()
        state = one(i, j, state).state
    each = [one(i, j, state) for i in range(3) for j in range(3)]
    spread.append(torch.stack([flat(e.grads) for e in each]).var(0).sum())
    assert spread[1] < 1e-6 * spread[0]
    exact = hypergradient(inner, outer, w, a, Exact(damping=1.0))
    torch.testing.assert_close(flat(each[0].grads), flat(exact.grads), rtol=1e-3, atol=1e-5)


def test_saba_takes_gauss_newton_products_of_a_part():
    """With one part for each loss it is `Running`, whose Gauss–Newton products need the loss's outputs, too."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)).double()
    w, a = tuple(net[0].parameters()), tuple(net[2].parameters())
    inner, outer = (
        lift(net, cross_entropy, (torch.randn(6, 3).double(), torch.randint(2, (6,))), w, a) for _ in range(2)
    )
    state = whole = None
    for _ in range(3):
        options = {"step": 0.3, "damping": 0.1, "curvature": "gauss_newton"}
        ours = hypergradient(Part(inner, 0, 1), Part(outer, 0, 1), w, a, Saba(**options), state=state)
        other = hypergradient(inner, outer, w, a, Running(**options), state=whole)
        state, whole = ours.state, other.state
        torch.testing.assert_close(flat(ours.grads), flat(other.grads))
        torch.testing.assert_close(ours.inner_gradient, other.inner_gradient)
        assert (ours.inner_loss, ours.outer_loss) == (other.inner_loss, other.outer_loss)
        assert ours.diagnostics.terms == other.diagnostics.terms == 1
    torch.testing.assert_close(state["v"], whole["v"])
    assert not torch.allclose(state["v"], torch.zeros_like(state["v"]))


def test_saba_says_what_it_needs():
    inner, outer, w, a = smooth()
    with pytest.raises(InputError, match=r"give Part\(loss, index, count\) for both losses"):
        hypergradient(inner, outer, w, a, Saba())
    with pytest.raises(InputError, match="index=2 is not one of the 2 parts"):
        Part(inner, 2, 2)
    state = hypergradient(Part(inner, 0, 2), Part(outer, 0, 1), w, a, Saba()).state
    with pytest.raises(InputError, match="has 2 parts, but this loss has 3"):
        hypergradient(Part(inner, 0, 3), Part(outer, 0, 1), w, a, Saba(), state=state)


def test_on_minibatches_a_running_v_is_closer_to_the_truth_than_a_short_series():
    """Cosine of the implicit part with that of all data: digits, logistic regression, Gauss–Newton, damping 0.02."""
    from sklearn.datasets import load_digits

    data, make = load_digits(), torch.Generator().manual_seed(0)
    x, y = torch.tensor(data.data / 16).float(), torch.tensor(data.target)
    net = nn.Linear(64, 10)
    scale = nn.Parameter(torch.zeros(64))

    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.net, self.scale = net, scale

        def forward(self, x):
            return self.net(x * self.scale.exp())

    model = Scaled()
    w = tuple(net.parameters())
    nn.init.zeros_(net.weight)
    optimizer = torch.optim.SGD(w, lr=1.0)
    for _ in range(40):
        optimizer.zero_grad()
        cross_entropy(model(x[:900]), y[:900]).backward()
        optimizer.step()
    scale.grad = None

    def losses(train, valid):
        return (lift(model, cross_entropy, (x[part], y[part]), w, (scale,)) for part in (train, valid))

    options = {"damping": 0.02, "curvature": "gauss_newton"}
    truth = hypergradient(*losses(slice(900), slice(900, None)), w, (scale,), Neumann(300, **options)).implicit[0]
    cosines, states = {"running": [], "series": []}, {"running": None, "series": None}
    methods = {"running": Running(**options), "series": Neumann(2, **options)}
    for number in range(80):
        train, valid = torch.randperm(900, generator=make)[:64], 900 + torch.randperm(897, generator=make)[:64]
        for name, method in methods.items():
            estimate = hypergradient(*losses(train, valid), w, (scale,), method, state=states[name])
            states[name] = estimate.state
            if number >= 40:
                cosines[name].append(torch.cosine_similarity(estimate.implicit[0], truth, dim=0).item())
    running, series = (sum(values) / len(values) for values in cosines.values())
    assert running > series + 0.1


# --- products ----------------------------------------------------------------------------------------------------


def test_the_joint_gauss_newton_product_is_both_products():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3)).double()
    gain = nn.Parameter(torch.tensor([0.3, -0.2, 0.1, 0.5]).double())

    class Loss:
        def outputs(self, w, a):
            hidden = torch.tanh((x * a[0].exp()) @ w[0].T + w[1])
            return hidden @ w[2].T + w[3]

        def criterion(self, outputs, a):
            return cross_entropy(outputs, y) * a[1].exp()

        def __call__(self, w, a):
            return self.criterion(self.outputs(w, a), a)

    x, y = torch.randn(6, 4).double(), torch.randint(3, (6,))
    w, a = tuple(net.parameters()), (gain, torch.tensor(0.2).double().requires_grad_())
    products = ExactProducts(Loss(), w, a, split=True)
    v = torch.randn(43).double()
    image, mixed = products.joint_gauss_newton(v)
    torch.testing.assert_close(image, products.gauss_newton(v))
    torch.testing.assert_close(mixed, products.mixed(v))
    assert products.gradient_evaluations == pytest.approx(1 + 2 + 4 / 3 + 4 / 3)


# --- states ------------------------------------------------------------------------------------------------------


def through_a_file(state):
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    return torch.load(file, weights_only=True)


@pytest.mark.parametrize("name", METHODS)
def test_the_state_survives_a_checkpoint_and_changes_of_batch_bit_for_bit(name):
    method, kept, loaded = METHODS[name], None, None
    for call in range(5):
        inner, outer, _, _ = smooth(call % 2)
        _, _, w, a = smooth()
        losses = parts(method, inner, outer, call)
        one, other = (hypergradient(*losses, w, a, method, state=state) for state in (kept, loaded))
        assert torch.equal(flat(one.grads), flat(other.grads))
        kept, loaded = one.state, through_a_file(other.state)
    fresh = hypergradient(*losses, w, a, method)
    assert not torch.equal(flat(fresh.grads), flat(one.grads))  # the state matters


def same(x, y):
    if isinstance(x, Tensor):
        return torch.equal(x, y)
    if isinstance(x, dict):
        return x.keys() == y.keys() and all(same(x[key], y[key]) for key in x)
    return all(same(p, q) for p, q in zip(x, y, strict=True)) if isinstance(x, list | tuple) else x == y


@pytest.mark.parametrize("name", METHODS)
def test_a_refused_step_leaves_the_state_as_it_was(name):
    """Even where the estimate itself would be finite: L2 is finite at this point, but its gradient is not."""
    method = METHODS[name]
    inner, outer, w, a = smooth()
    state = hypergradient(*parts(method, inner, outer), w, a, method).state
    before = copy.deepcopy(state)

    def broken(w, a):
        return outer(w, a) + (w[0] * 0).sum().sqrt()

    with pytest.raises(NotFiniteError):
        hypergradient(*parts(method, inner, broken, 1), w, a, method, state=state)
    assert same(state, before)
    for _ in range(2):  # nor does a call that succeeds change it
        hypergradient(*parts(method, inner, outer, 1), w, a, method, state=state)
        assert same(state, before)


@pytest.mark.parametrize("name", METHODS)
def test_a_state_of_another_problem_or_method_is_refused(name):
    method = METHODS[name]
    problem = quadratic(5)
    losses = parts(method, problem.inner, problem.outer)
    state = hypergradient(*losses, (problem.w,), (problem.a,), method).state
    other = quadratic(6)
    with pytest.raises(InputError, match="a problem with 5 weights, but this one has 6"):
        hypergradient(*parts(method, other.inner, other.outer), (other.w,), (other.a,), method, state=state)
    if method != METHODS["amigo, conjugate gradients"]:
        with pytest.raises(InputError, match="this is not a state of"):
            hypergradient(*losses, (problem.w,), (problem.a,), method, state={"vector": torch.zeros(5)})


@pytest.mark.parametrize("method", [Running(momentum=0.5), Running(smoothing=0.5), Recursive()], ids=repr)
def test_a_state_of_other_options_or_other_outer_parameters_is_refused(method):
    problem = quadratic()
    with pytest.raises(InputError, match="with these options"):
        run(problem, method, state=run(problem, Running()).state)
    if method == Running(momentum=0.5):
        return
    state = run(problem, method).state
    more = (problem.a, torch.ones(2, dtype=torch.float64, requires_grad=True))
    inner = lambda w, a: problem.inner(w, a[:1]) + a[1].sum() * w[0].sum()  # noqa: E731
    with pytest.raises(InputError, match="other outer parameters"):
        hypergradient(inner, problem.outer, (problem.w,), more, method, state=state)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Running(step="atuo"), "step='atuo' is not possible here; did you mean auto?"),
        (lambda: Running(damping=-1.0), "damping=-1.0 is not possible here; it must be a number of at least 0"),
        (lambda: Running(momentum=1.0), "momentum=1.0 is not possible here; it must be at least 0 and below 1"),
        (lambda: Running(smoothing="a"), "smoothing='a' is not possible here; it must be at least 0 and below 1"),
        (lambda: Recursive(eta=0.0), "eta=0.0 is not possible here; it must be above 0 and at most 1"),
        (lambda: AmIGO(iterations=0), "iterations=0 is not possible here; it must be a whole number of at least 1"),
        (lambda: AmIGO(solver="cg"), "solver='cg' is not possible here; it must be descent or conjugate-gradient"),
        (lambda: F2SA(step=0.1, multiplier=0.0), "multiplier=0.0 is not possible here; it must be positive"),
        (lambda: BOME(step=-0.1), "step=-0.1 is not possible here; it must be positive"),
    ],
)
def test_options_are_checked(make, words):
    with pytest.raises(InputError) as caught:
        make()
    assert str(caught.value) == words
