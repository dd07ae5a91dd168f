"""Every method against algebra that shares no code with the package."""

import pytest
import torch
from problems import Quadratic, dense_hessian, dense_mixed, flat, quadratic, smooth

from idarts.errors import CurvatureWarning
from idarts.hypergrad import (
    ConjugateGradient,
    Exact,
    FirstOrder,
    Identity,
    Neumann,
    Nystrom,
    OneStep,
    ReverseMode,
    TruncatedReverse,
    from_optimizer,
    hypergradient,
)

float64 = {"dtype": torch.float64}


def grads(problem, method, **options):
    return hypergradient(problem.inner, problem.outer, (problem.w,), (problem.a,), method, **options).grads[0]


def close(x, y, tolerance=1e-10):
    torch.testing.assert_close(x, y, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("n", [1, 5, 40])
@pytest.mark.parametrize("condition", [1.0, 100.0, 1e4])
def test_exact_is_the_analytic_hypergradient(n, condition):
    problem = quadratic(n, 3, condition, seed=n)
    close(grads(problem, Exact()), problem.exact)


def test_first_order_and_identity_are_their_formulas():
    problem = quadratic()
    close(grads(problem, FirstOrder()), problem.direct)
    close(grads(problem, Identity()), problem.direct + problem.implicit(torch.eye(6, **float64)))


@pytest.mark.parametrize("condition", [2.0, 30.0])
def test_neumann_error_stays_under_the_bound_of_theorem_1(condition):
    problem = quadratic(8, 3, condition, seed=1)
    mu, step = 1.0, 0.9 / condition
    constants = torch.linalg.matrix_norm(problem.B, 2) * torch.linalg.vector_norm(problem.g)
    for terms in range(51):
        error = torch.linalg.vector_norm(grads(problem, Neumann(terms, step)) - problem.exact)
        bound = constants / mu * (1 - step * mu) ** (terms + 1)
        assert error <= bound * (1 + 1e-9), f"K={terms}"


def test_the_bound_of_theorem_1_is_reached_on_a_diagonal_problem():
    """With g and ∂²L1/∂α∂w along the eigenvector of μ the bound is an equality: tight to the factor 1."""
    problem = quadratic(4, 1)
    problem.A = torch.diag(torch.tensor([0.5, 1.0, 2.0, 4.0], **float64))
    problem.B = torch.tensor([[3.0], [0], [0], [0]], **float64)
    problem.t = problem.w.detach() - torch.tensor([2.0, 0, 0, 0], **float64)
    mu, step = 0.5, 0.2
    for terms in range(51):
        error = torch.linalg.vector_norm(grads(problem, Neumann(terms, step)) - problem.exact)
        close(error, torch.tensor(3.0 * 2.0 / mu * (1 - step * mu) ** (terms + 1), **float64), 1e-9)


@pytest.mark.parametrize("terms", [0, 1, 2, 7])
def test_neumann_is_its_partial_sum_term_by_term(terms):
    problem = quadratic(condition=5.0)
    power = torch.eye(6, **float64)
    total = torch.zeros(6, 6, **float64)
    for _ in range(terms + 1):
        total += power
        power = power @ (torch.eye(6, **float64) - 0.1 * problem.A)
    close(grads(problem, Neumann(terms, 0.1)), problem.direct + problem.implicit(0.1 * total))


def test_neumann_with_no_terms_is_one_step():
    inner, outer, w, a = smooth()
    one, none = (hypergradient(inner, outer, w, a, m) for m in (OneStep(0.05), Neumann(0, 0.05)))
    assert all(torch.equal(x, y) for x, y in zip(one.grads, none.grads, strict=True))


def test_neumann_with_many_terms_reaches_exact():
    problem = quadratic(condition=4.0)
    close(grads(problem, Neumann(300, 0.25)), problem.exact)


@pytest.mark.parametrize("n", [3, 20])
def test_conjugate_gradient_with_n_iterations_reaches_exact(n):
    problem = quadratic(n, 2, condition=50.0)
    close(grads(problem, ConjugateGradient(n, 0.0)), problem.exact, 1e-8)


def test_conjugate_gradient_keeps_its_iterate_at_negative_curvature():
    problem = quadratic(4, 2)
    problem.A = torch.diag(torch.tensor([1.0, 2.0, 3.0, -5.0], **float64))
    with pytest.warns(
        CurvatureWarning, match="stopped at once and the implicit part is 0; use curvature='gauss_newton'"
    ):
        assert torch.equal(grads(problem, ConjugateGradient(10)), problem.direct)
    damped = torch.linalg.inv(problem.A + 6 * torch.eye(4, **float64))
    close(grads(problem, ConjugateGradient(10, damping=6.0)), problem.direct + problem.implicit(damped), 1e-8)


def test_nystrom_of_full_rank_is_the_damped_inverse():
    problem = quadratic(6, 2, condition=20.0)
    damped = torch.linalg.inv(problem.A + 0.3 * torch.eye(6, **float64))
    close(grads(problem, Nystrom(6, 0.3)), problem.direct + problem.implicit(damped))


def test_nystrom_of_low_rank_is_exact_on_a_low_rank_curvature():
    problem = quadratic(8, 2)
    factor = torch.randn(8, 2, generator=torch.Generator().manual_seed(0), **float64)
    problem.A = factor @ factor.T
    damped = torch.linalg.inv(problem.A + 0.3 * torch.eye(8, **float64))
    close(grads(problem, Nystrom(2, 0.3)), problem.direct + problem.implicit(damped), 1e-8)


@pytest.mark.parametrize("tolerance", [0.3, 0.03, 1e-3])
def test_conjugate_gradient_stops_at_the_first_residual_below_the_tolerance(tolerance):
    problem = quadratic(30, 2, condition=50.0)

    def residual(method):
        estimate = hypergradient(problem.inner, problem.outer, (problem.w,), (problem.a,), method, diagnostics=True)
        return estimate.diagnostics.residual, estimate.diagnostics.terms

    reached, used = residual(ConjugateGradient(100, tolerance))
    assert reached <= tolerance
    assert residual(ConjugateGradient(used - 1, 0.0))[0] > tolerance


def test_conjugate_gradient_stops_where_there_is_no_curvature_at_all():
    problem = quadratic(4, 2)
    problem.A = torch.zeros(4, 4, **float64)
    with pytest.warns(CurvatureWarning, match="stopped at once"):
        assert torch.equal(grads(problem, ConjugateGradient(10)), problem.direct)


@pytest.mark.parametrize("decay", [0.0, 0.005, "diagonal"])
@pytest.mark.parametrize("negative", [False, True])
def test_nystrom_keeps_its_digits(decay, negative):
    """A spectrum that falls by 0.8 from each eigenvalue to the next, and a small ρ: no digits to lose in float32."""
    make = torch.Generator().manual_seed(0)
    n, rho = 60, 0.01
    problem = quadratic(n, 2)
    basis = torch.linalg.qr(torch.randn(n, n, generator=make, **float64)).Q
    values = 10 * 0.8 ** torch.arange(n, **float64)
    if negative:
        values[3::7] *= -1
    problem.A = (basis * values) @ basis.T
    shift = torch.full((n,), rho, **float64)
    if decay == "diagonal":
        shift += torch.tensor([0.0, 0.5], **float64).repeat_interleave(n // 2)
    elif decay:
        shift += decay
    exact = problem.implicit(torch.linalg.inv(problem.A + torch.diag(shift)))
    narrow = Quadratic(**{name: value.detach().float() for name, value in vars(problem).items()})
    halves = tuple(half.requires_grad_() for half in narrow.w.split(n // 2))
    losses = [lambda w, a, f=f: f((torch.cat(w),), a) for f in (narrow.inner, narrow.outer)]
    method = Nystrom(n, rho, weight_decay=(0.0, 0.5) if decay == "diagonal" else decay)
    implicit = hypergradient(*losses, halves, (narrow.a.requires_grad_(),), method).implicit[0].double()
    assert torch.linalg.vector_norm(implicit - exact) < 0.01 * torch.linalg.vector_norm(exact)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_nystrom_works_in_half_precision(dtype):
    w, a = (
        (torch.tensor([3.0, 1.0]).to(dtype).requires_grad_(),),
        (torch.tensor([1.0, 2.0]).to(dtype).requires_grad_(),),
    )
    inner, outer = (lambda w, a: ((w[0] - a[0]) ** 2).sum()), (lambda w, a: (w[0] ** 2).sum())
    grad = hypergradient(inner, outer, w, a, Nystrom(2, 1.0)).grads[0]
    assert grad.dtype == dtype
    torch.testing.assert_close(grad.float(), torch.tensor([4.0, 4 / 3]), rtol=0.02, atol=0.0)  # 2w / (2 + 1) · 2


@pytest.mark.parametrize("steps", [1, 2, 5])
def test_reverse_mode_is_brute_force_autograd_through_the_steps(steps):
    inner, outer, w, a = smooth()
    leaves = tuple(t.detach().clone().requires_grad_() for t in a)
    current = tuple(t.detach().clone().requires_grad_() for t in w)
    for _ in range(steps):
        gradient = torch.autograd.grad(inner(current, leaves), current, create_graph=True)
        current = tuple(p - 0.1 * g for p, g in zip(current, gradient, strict=True))
    brute = torch.autograd.grad(outer(current, leaves), leaves)
    estimate = hypergradient(inner, outer, w, a, ReverseMode(steps, 0.1))
    for x, y in zip(estimate.grads, brute, strict=True):
        close(x, y, 1e-12)
    for x, y in zip(hypergradient(inner, outer, w, a, TruncatedReverse(steps, steps, 0.1)).grads, brute, strict=True):
        close(x, y, 1e-12)


def test_reverse_mode_uses_one_loss_for_each_step():
    inner, outer, w, a = smooth()
    losses = [lambda w, a, s=s: s * inner(w, a) for s in (1.0, 0.5, 2.0)]
    leaves = tuple(t.detach().clone().requires_grad_() for t in a)
    current = tuple(t.detach().clone().requires_grad_() for t in w)
    for loss in losses:
        gradient = torch.autograd.grad(loss(current, leaves), current, create_graph=True)
        current = tuple(p - 0.1 * g for p, g in zip(current, gradient, strict=True))
    brute = torch.autograd.grad(outer(current, leaves), leaves)
    for x, y in zip(hypergradient(losses, outer, w, a, ReverseMode(3, 0.1)).grads, brute, strict=True):
        close(x, y, 1e-12)


@pytest.mark.parametrize("terms", [1, 2, 5])
def test_truncated_reverse_is_neumann_with_one_term_fewer_at_a_converged_point(terms):
    """Corollary 2, with its off-by-one: h_{T−K} sums K terms, Neumann(K) sums K + 1."""
    problem = quadratic(condition=5.0)
    truncated = grads(problem, TruncatedReverse(9, terms, 0.1))
    close(truncated, grads(problem, Neumann(terms - 1, 0.1)))
    assert not torch.allclose(truncated, grads(problem, Neumann(terms, 0.1)), rtol=1e-3)


def test_reverse_mode_goes_to_exact_with_the_number_of_steps():
    problem = quadratic(condition=4.0, converged=False)
    at_optimum = quadratic(condition=4.0)
    errors = [torch.linalg.vector_norm(grads(problem, ReverseMode(t, 0.2)) - at_optimum.exact) for t in (5, 20, 150)]
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 1e-10


@pytest.mark.parametrize(
    "make",
    [
        Exact,
        lambda **k: Neumann(3, 0.05, **k),
        lambda **k: ConjugateGradient(4, **k),
        lambda **k: Nystrom(15, 0.3, **k),
        lambda **k: ReverseMode(3, 0.05, **k),
        lambda **k: TruncatedReverse(4, 2, 0.05, **k),
    ],
)
@pytest.mark.parametrize("decay", [0.3, (0.3, 0.7)])
def test_weight_decay_enters_exactly(make, decay):
    """λ of the optimiser in the method = λ‖w‖²/2 in the loss."""
    inner, outer, w, a = smooth()
    each = decay if isinstance(decay, tuple) else (decay, decay)

    def decayed(w, a):
        return inner(w, a) + sum(lam * (t**2).sum() / 2 for lam, t in zip(each, w, strict=True))

    with_method = hypergradient(inner, outer, w, a, make(weight_decay=decay))
    with_loss = hypergradient(decayed, outer, w, a, make())
    # Nyström sketches H + λ as one matrix when λ is in the loss; at full rank both are the same inverse.
    for x, y in zip(with_method.grads, with_loss.grads, strict=True):
        close(x, y, 1e-9)


@pytest.mark.filterwarnings("ignore::idarts.errors.DivergenceWarning")  # the Hessian is indefinite here
def test_steps_of_optimiser_groups_enter_as_a_diagonal():
    inner, outer, w, a = smooth()
    optimizer = torch.optim.SGD([{"params": [w[0]], "weight_decay": 0.2}, {"params": [w[1]], "lr": 0.02}], lr=0.05)
    method = Neumann(3, **from_optimizer(optimizer, w))
    H = dense_hessian(inner, w, a) + torch.diag(torch.tensor([0.2] * 12 + [0.0] * 3, **float64))
    D = torch.diag(torch.tensor([0.05] * 12 + [0.02] * 3, **float64))
    g = flat(torch.autograd.grad(outer(w, a), w))
    x = sum(torch.linalg.matrix_power(torch.eye(15, **float64) - D @ H, k) for k in range(4)) @ D @ g
    close(flat(hypergradient(inner, outer, w, a, method).implicit), -x @ dense_mixed(inner, w, a))


def test_theorem_2_the_stochastic_algorithm_reaches_a_stationary_point():
    """Noise of the outer gradient in proportion to it (condition 2), step sizes with Σ = ∞ and Σ² < ∞ (condition 3),
    inner losses that differ by a linear function (condition 4), w solved for each α. A flipped sign or a lost γ moves
    the fixed point, where the true gradient is then of order 1.
    """
    finals = []
    for seed in range(4):
        make = torch.Generator().manual_seed(seed)
        problem = quadratic(5, 3, condition=3.0, seed=seed)
        begin = torch.linalg.vector_norm(problem.exact)
        for m in range(200):
            problem.w = problem.optimum().requires_grad_()
            noise = 1 + 0.5 * torch.randn((), generator=make, **float64)
            tilt = torch.randn(5, generator=make, **float64)
            estimate = hypergradient(
                lambda w, a, tilt=tilt, p=problem: p.inner(w, a) + tilt @ w[0],
                lambda w, a, noise=noise, p=problem: noise * p.outer(w, a),
                (problem.w,),
                (problem.a,),
                Neumann(25, 0.3),
            )
            problem.a = (problem.a.detach() - 0.3 / (m + 1) ** 0.6 * estimate.grads[0]).requires_grad_()
        problem.w = problem.optimum()
        finals.append(torch.linalg.vector_norm(problem.exact) / begin)
    assert torch.stack(finals).mean() < 1e-3


def test_gauss_newton_is_the_dense_matrix_and_positive_where_the_hessian_is_not():
    _, outer, w, a = smooth()

    class Split:
        """The same network as an explicit composition, with an indefinite Hessian and a convex criterion."""

        x = torch.randn(12, 4, generator=torch.Generator().manual_seed(5), **float64)
        y = torch.randn(12, generator=torch.Generator().manual_seed(6), **float64)

        def outputs(self, w, a):
            return torch.sin(self.x @ w[0] * 2 + a[0]) @ w[1]

        def criterion(self, z):
            return ((z - self.y) ** 2).mean()

        def __call__(self, w, a):
            return self.criterion(self.outputs(w, a))

    split = Split()
    sizes = [t.numel() for t in w]
    jacobian = torch.func.jacrev(
        lambda v: split.outputs(tuple(p.reshape(t.shape) for p, t in zip(v.split(sizes), w, strict=True)), a)
    )(flat(w))
    G = jacobian.T @ jacobian * (2 / 12)
    assert torch.linalg.eigvalsh(dense_hessian(split, w, a))[0] < -0.01
    g = flat(torch.autograd.grad(outer(w, a), w))
    damped = torch.linalg.inv(G + 0.1 * torch.eye(15, **float64))
    estimate = hypergradient(split, outer, w, a, Exact(0.1, curvature="gauss_newton"))
    close(flat(estimate.implicit), -g @ damped @ dense_mixed(split, w, a).detach(), 1e-9)
    long = hypergradient(split, outer, w, a, Neumann(400, "auto", curvature="gauss_newton"))
    assert long.diagnostics.contraction <= 1 + 1e-9


@pytest.mark.parametrize("kinds", [(torch.float64, torch.float64), (torch.float32, torch.float64)])
def test_the_series_on_several_tensors_of_one_or_two_dtypes(kinds):
    """H is a diagonal d, so each entry has its own geometric sum; some products return the vector itself (d = 1)."""
    d = torch.tensor([[1.0, 2.0], [3.0, 0.5]]), torch.ones(3)
    w = tuple(torch.full_like(t, 2.0, dtype=kind).requires_grad_() for t, kind in zip(d, kinds, strict=True))
    a = tuple(torch.ones_like(t).requires_grad_() for t in w)

    def inner(w, a):
        return (
            (d[0] * w[0] ** 2).sum() / 2 + (w[1] ** 2).sum() / 2 - sum((b * t).sum() for b, t in zip(a, w, strict=True))
        )

    found = hypergradient(inner, lambda w, a: sum((t**2).sum() for t in w) / 2, w, a, Neumann(3, 0.1))
    for grad, curvature in zip(found.grads, d, strict=True):
        close(grad.double(), 2 * 0.1 * sum((1 - 0.1 * curvature.double()) ** k for k in range(4)), 1e-6)
