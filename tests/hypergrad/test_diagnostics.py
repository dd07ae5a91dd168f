"""What the core measures about itself: residual, contraction, shares, cost, curvature, and the divergence warning."""

import warnings
from itertools import pairwise

import pytest
import torch
from networks import mixture_problem
from problems import dense_hessian, flat, quadratic, smooth

from idarts.errors import DivergenceWarning, NotFiniteError
from idarts.hypergrad import ConjugateGradient, Exact, FirstOrder, Identity, Neumann, OneStep, hypergradient

CONDITION = 20.0


def run(problem, method, **options):
    return hypergradient(problem.inner, problem.outer, (problem.w,), (problem.a,), method, **options)


@pytest.fixture
def problem():
    return quadratic(10, 3, CONDITION)


def test_residual_is_that_of_the_linear_system(problem):
    identity = torch.eye(10, dtype=torch.float64)
    for terms in (0, 2, 10):
        facts = run(problem, Neumann(terms, 0.04), diagnostics=True).diagnostics
        remaining = torch.linalg.matrix_power(identity - 0.04 * problem.A, terms + 1) @ problem.g
        expected = torch.linalg.vector_norm(remaining) / torch.linalg.vector_norm(problem.g)
        assert facts.residual == pytest.approx(expected.item(), rel=1e-5)
    assert run(problem, Exact(), diagnostics=True).diagnostics.residual < 1e-10
    assert run(problem, Exact(weight_decay=0.7), diagnostics=True).diagnostics.residual < 1e-10
    assert run(problem, Exact(weight_decay=[0.7]), diagnostics=True).diagnostics.residual < 1e-10
    assert run(problem, Neumann(2, 0.04)).diagnostics.residual is None


def test_contraction_approaches_the_norm_from_below(problem):
    norm = 1 - 0.04 * 1.0  # the slowest direction has eigenvalue 1
    ratios = [run(problem, Neumann(terms, 0.04)).diagnostics.contraction for terms in (1, 10, 300)]
    assert ratios == sorted(ratios)
    assert ratios[-1] == pytest.approx(norm, rel=1e-3)
    assert ratios[-1] <= norm * (1 + 1e-6)
    assert run(problem, Neumann(0, 0.04)).diagnostics.contraction is None


def test_share_and_angle_of_the_implicit_part(problem):
    estimate = run(problem, Neumann(3, 0.04))
    direct, implicit = estimate.direct[0], estimate.implicit[0]
    torch.testing.assert_close(estimate.grads[0], direct + implicit)
    facts = estimate.diagnostics
    assert facts.implicit_share == pytest.approx((implicit.norm() / (direct.norm() + implicit.norm())).item(), rel=1e-5)
    assert facts.cosine == pytest.approx((direct @ implicit / direct.norm() / implicit.norm()).item(), rel=1e-4)
    assert run(problem, FirstOrder()).diagnostics.implicit_share == 0.0


def test_alignment_tells_when_the_terms_only_rescale(problem):
    small = run(problem, Neumann(2, 1e-5), diagnostics=True).diagnostics
    large = run(problem, Neumann(20, 1 / CONDITION), diagnostics=True).diagnostics
    assert small.alignment > 0.99999
    assert large.alignment < 0.99


def test_cost_is_counted(problem):
    evaluations = {
        FirstOrder(): (0, 1),
        OneStep(0.01): (0, 2 + 4 / 3),
        Neumann(2, 0.01): (2, 2 + 4 + 4 / 3),
        Neumann(2, 0.01, products="finite_difference"): (3, 2 + 6),
        ConjugateGradient(4, 0.0): (4, 2 + 8 + 4 / 3),
    }
    for method, (hvps, cost) in evaluations.items():
        facts = run(problem, method).diagnostics
        assert (facts.hvps, facts.gradient_evaluations) == (hvps, pytest.approx(cost)), method


def test_inner_loss_and_gradient_are_returned(problem):
    problem.w = torch.randn(10, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).requires_grad_()
    estimate = run(problem, Neumann(1, 0.01))
    torch.testing.assert_close(estimate.inner_gradient, problem.A @ problem.w - problem.B @ problem.a - problem.c)
    assert estimate.inner_loss.item() == pytest.approx(problem.inner((problem.w,), (problem.a,)).item())


def test_finite_difference_products_are_checked_against_an_exact_one():
    inner, outer, w, a = smooth()
    method = Neumann(1, 0.01, products="finite_difference", radius=1e-3)
    good = hypergradient(inner, outer, w, a, method, diagnostics=True).diagnostics.product_error
    rough = Neumann(1, 0.01, products="finite_difference", radius=5.0)
    bad = hypergradient(inner, outer, w, a, rough, diagnostics=True).diagnostics.product_error
    assert good < 1e-3
    assert bad > 0.1


class TestAutomaticStep:
    def test_is_one_over_the_largest_eigenvalue(self, problem):
        estimate = run(problem, Neumann(3, "auto"))
        assert estimate.diagnostics.step == pytest.approx(1 / CONDITION, rel=0.05)
        state = None
        for _ in range(10):
            estimate = run(problem, Neumann(3, "auto", refresh=1), state=state)
            state = estimate.state
        assert estimate.diagnostics.step == pytest.approx(1 / CONDITION, rel=1e-3)

    def test_follows_damping_and_weight_decay(self, problem):
        step = run(problem, Neumann(3, "auto", damping=5.0, weight_decay=3.0)).diagnostics.step
        assert step == pytest.approx(1 / (CONDITION + 8), rel=0.05)

    def test_is_measured_again_every_refresh_calls(self, problem):
        method, state, products = Neumann(2, "auto", refresh=5), None, []
        for _ in range(11):
            estimate = run(problem, method, state=state)
            state = estimate.state
            products.append(estimate.diagnostics.hvps)
        assert products == [22, 2, 2, 2, 2, 4, 2, 2, 2, 2, 4]

    def test_follows_the_curvature_as_it_changes(self, problem):
        state = run(problem, Neumann(2, "auto")).state
        problem.A = 3 * problem.A
        for _ in range(6):
            estimate = run(problem, Neumann(2, "auto", refresh=3), state=state)
            state = estimate.state
            assert estimate.diagnostics.contraction < 1  # at once: growing terms trigger a new measurement
        assert estimate.diagnostics.step == pytest.approx(1 / (3 * CONDITION), rel=0.1)

    def test_sees_curvature_that_grew_where_it_did_not_look(self):
        """The known eigenvector stays one exactly, so only the growing term shows the new direction."""
        diagonal = [torch.diag(torch.tensor(values, dtype=torch.float64)) for values in ([10.0, 1, 1], [10.0, 1000, 1])]
        problem = quadratic(3, 2)
        problem.A = diagonal[1]
        state = {"vector": diagonal[0][0] / 10, "eigenvalue": torch.tensor(10.0, dtype=torch.float64), "age": 0}
        facts = run(problem, Neumann(2, "auto"), state=state).diagnostics
        assert facts.eigenvalue == pytest.approx(1000, rel=0.1)
        assert facts.contraction <= 1 + 1e-9

    def test_on_a_network_against_the_dense_spectrum(self):
        _, inner, outer, w, a, _ = mixture_problem(tracked=False)
        largest = torch.linalg.eigvalsh(dense_hessian(inner, w, a)).abs().max().item()
        estimate = hypergradient(inner, outer, w, a, Neumann(1, "auto"))
        assert estimate.diagnostics.eigenvalue == pytest.approx(largest, rel=0.1)


class TestAdaptiveTerms:
    def test_stops_at_the_tolerance(self, problem):
        facts = run(problem, Neumann(10_000, 1 / CONDITION, tolerance=1e-2), diagnostics=True).diagnostics
        assert facts.residual <= 1e-2
        fewer = run(problem, Neumann(facts.terms - 2, 1 / CONDITION), diagnostics=True).diagnostics
        assert fewer.residual > 1e-2 * (1 - 1 / CONDITION) ** 2
        assert facts.terms < 200

    def test_stops_when_terms_grow_and_leaves_the_grown_one_out(self, problem):
        with pytest.warns(DivergenceWarning):
            estimate = run(problem, Neumann(50, 3 / CONDITION, tolerance=0.0))
        assert estimate.diagnostics.terms < 50
        with pytest.warns(DivergenceWarning):
            same = run(problem, Neumann(estimate.diagnostics.terms + 1, 3 / CONDITION, tolerance=0.0))
        assert torch.equal(same.grads[0], estimate.grads[0])

    def test_uses_all_terms_without_a_tolerance(self, problem):
        assert run(problem, Neumann(7, 0.01)).diagnostics.terms == 7


class TestDivergence:
    def test_warns_once_and_names_a_step_that_is_safe(self, problem):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("default")
            for _ in range(5):
                run(problem, Neumann(30, 0.5))
        messages = [str(w.message) for w in caught if w.category is DivergenceWarning]
        assert len(messages) == 1
        assert "largest safe γ is 0.05" in messages[0]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            run(problem, Neumann(30, 0.05))

    def test_names_a_safe_step_early_in_the_series_too(self, problem):
        with pytest.warns(DivergenceWarning, match=r"largest safe γ is 0\.05"):
            run(problem, Neumann(1, 0.5))

    def test_per_parameter_steps(self, problem):
        halves = tuple(half.detach().requires_grad_() for half in problem.w.split(5))
        losses = [lambda w, a, f=f: f((torch.cat(w),), a) for f in (problem.inner, problem.outer)]
        with pytest.warns(DivergenceWarning, match=r"multiply all of γ by at most 0\.1$"):
            hypergradient(*losses, halves, (problem.a,), Neumann(5, (0.5, 0.4)))

    def test_a_diagonal_step_is_part_of_the_operator(self):
        """γ = (3, 0.01) on λ = (1, 20): 3·1 > 2 diverges, though 20 is the largest eigenvalue of H alone."""
        problem = quadratic(2, 1)
        problem.A = torch.diag(torch.tensor([1.0, 20.0], dtype=torch.float64))
        halves = tuple(half.detach().requires_grad_() for half in problem.w.split(1))
        losses = [lambda w, a, f=f: f((torch.cat(w),), a) for f in (problem.inner, problem.outer)]
        with pytest.warns(DivergenceWarning, match=r"multiply all of γ by at most 0\.3$"):  # 1/3
            hypergradient(*losses, halves, (problem.a,), Neumann(5, (3.0, 0.01)))

    def test_terms_of_a_diagonal_step_may_grow_while_the_series_converges(self):
        """I − DH is not symmetric, so ‖V_k‖ can grow at first; √(rᵀDr) cannot."""
        problem = quadratic(2, 1)
        problem.A = torch.tensor([[26.0, 5.0], [5.0, 1.0]], dtype=torch.float64)  # a feature that is not centred
        steps = 0.02, 0.5
        halves = tuple(half.detach().requires_grad_() for half in problem.w.split(1))
        losses = [lambda w, a, f=f: f((torch.cat(w),), a) for f in (problem.inner, problem.outer)]
        D = torch.tensor(steps, dtype=torch.float64)
        V = [D * problem.g]
        for _ in range(400):
            V.append(V[-1] - D * (problem.A @ V[-1]))
        assert max(after.norm() / before.norm() for before, after in pairwise(V)) > 1.01
        for tolerance in (None, 0.0):  # neither a warning nor an early stop
            estimate = hypergradient(*losses, halves, (problem.a,), Neumann(400, steps, tolerance=tolerance))
            torch.testing.assert_close(estimate.solution, sum(V))
            assert estimate.diagnostics.terms == 400
            assert estimate.diagnostics.contraction < 1

    def test_the_advice_for_a_diagonal_step_is_right(self):
        problem = quadratic(2, 1)
        problem.A = torch.tensor([[26.0, 5.0], [5.0, 1.0]], dtype=torch.float64)
        halves = tuple(half.detach().requires_grad_() for half in problem.w.split(1))
        losses = [lambda w, a, f=f: f((torch.cat(w),), a) for f in (problem.inner, problem.outer)]
        with pytest.warns(DivergenceWarning) as caught:
            hypergradient(*losses, halves, (problem.a,), Neumann(40, (0.3, 0.5)))
        factor = float(str(caught[0].message).split()[-1])
        D = torch.tensor([0.3, 0.5], dtype=torch.float64)
        largest = torch.linalg.eigvals(D[:, None] * problem.A).real.max().item()
        assert factor == pytest.approx(1 / largest, rel=0.25)  # one digit

    def test_a_step_below_two_over_the_eigenvalue_is_not_to_blame(self):
        problem = quadratic(2, 1)
        problem.A = torch.diag(torch.tensor([1.5, -1.0], dtype=torch.float64))
        with pytest.warns(DivergenceWarning, match="the curvature is not positive"):
            run(problem, Neumann(5, 1.0))

    def test_negative_curvature_has_no_safe_step(self, problem):
        problem.A = -problem.A
        with pytest.warns(DivergenceWarning, match="not positive; use curvature='gauss_newton'"):
            run(problem, Neumann(5, 0.01))

    def test_gauss_newton_does_not_blow_up_where_the_hessian_does(self):
        _, inner, outer, w, a, _ = mixture_problem(tracked=False)
        assert torch.linalg.eigvalsh(dense_hessian(inner, w, a))[0] < 0
        with pytest.warns(DivergenceWarning):
            wild = hypergradient(inner, outer, w, a, Neumann(300, "auto"))
        tame = hypergradient(inner, outer, w, a, Neumann(300, "auto", curvature="gauss_newton"))
        assert flat(wild.implicit).norm() > 1e3 * flat(tame.implicit).norm()

    def test_a_series_that_overflows_is_an_error(self, problem):
        with pytest.raises(NotFiniteError, match="hypergradient is not finite though the losses are"):
            run(problem, Neumann(2000, 1.0))


def test_identity_has_a_residual(problem):
    facts = run(problem, Identity(), diagnostics=True).diagnostics
    expected = torch.linalg.vector_norm(problem.g - problem.A @ problem.g) / torch.linalg.vector_norm(problem.g)
    assert facts.residual == pytest.approx(expected.item(), rel=1e-5)
