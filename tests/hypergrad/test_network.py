"""Products and series of a network against finite differences, curvlinops, torch.func and dense algebra."""

import curvlinops
import pytest
import torch
from networks import mixture_problem
from problems import dense_hessian, flat
from torch import nn

from idarts.hypergrad import Exact, Identity, Neumann, hypergradient
from idarts.hypergrad.products import ExactProducts, FiniteDifferences
from idarts.hypergrad.vectors import Layout

# curvlinops uses forward over reverse, where torch 2.13 refuses running statistics and is wrong for BatchNorm's weight.
ORACLE = {"tracked": False, "affine": False}


def direction(w, seed=3):
    return torch.randn(sum(t.numel() for t in w), generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_exact_products_against_central_differences_of_the_gradient():
    _, inner, _, w, a, _ = mixture_problem()
    layout, v, epsilon = Layout.of(w), direction(w), 1e-6

    def gradients(sign):
        shifted = tuple(
            (t.detach() + sign * epsilon * d).requires_grad_() for t, d in zip(w, layout.unflatten(v), strict=True)
        )
        grads = torch.autograd.grad(inner(shifted, a), (*shifted, *a))
        return flat(grads[:-1]), grads[-1]

    (w_plus, a_plus), (w_minus, a_minus) = gradients(1), gradients(-1)
    products = ExactProducts(inner, w, a)
    torch.testing.assert_close(products.hessian(v), (w_plus - w_minus) / (2 * epsilon), rtol=1e-6, atol=1e-7)
    torch.testing.assert_close(products.mixed(v)[0], (a_plus - a_minus) / (2 * epsilon), rtol=1e-6, atol=1e-7)
    joint = products.joint(v)
    assert torch.equal(joint[0], products.hessian(v))
    torch.testing.assert_close(joint[1][0], products.mixed(v)[0])


def test_finite_difference_products_approach_the_exact_ones_where_the_network_is_smooth():
    _, inner, _, w, a, _ = mixture_problem()
    v, exact = direction(w), ExactProducts(inner, w, a)
    errors = []
    for radius in (1e-2, 1e-3, 1e-4):
        approximate = FiniteDifferences(inner, w, a, radius=radius)
        errors.append(torch.linalg.vector_norm(approximate.hessian(v) - exact.hessian(v)))
        torch.testing.assert_close(approximate.mixed(v)[0], exact.mixed(v)[0], rtol=1e-2, atol=radius)
    assert errors[0] > 50 * errors[1] > 50 * 50 * errors[2]  # second order in the radius


def test_products_against_curvlinops():
    model, inner, _, w, a, batches = mixture_problem(**ORACLE)
    v = direction(w)
    options = {"check_deterministic": False}
    data = [batches[0]]
    loss = nn.CrossEntropyLoss()
    hessian = curvlinops.HessianLinearOperator(model, loss, list(w), data, **options)
    ggn = curvlinops.GGNLinearOperator(model, loss, list(w), data, **options)
    products = ExactProducts(inner, w, a, split=True)
    torch.testing.assert_close(products.hessian(v), hessian @ v, rtol=1e-9, atol=1e-11)
    torch.testing.assert_close(products.gauss_newton(v), ggn @ v, rtol=1e-9, atol=1e-11)


@pytest.mark.filterwarnings("ignore::idarts.errors.DivergenceWarning")
def test_the_series_against_curvlinops():
    model, inner, outer, w, a, batches = mixture_problem(**ORACLE)
    hessian = curvlinops.HessianLinearOperator(
        model, nn.CrossEntropyLoss(), list(w), [batches[0]], check_deterministic=False
    )
    series = curvlinops.NeumannInverseLinearOperator(hessian, num_terms=4, scale=0.1)
    g = flat(torch.autograd.grad(outer(w, a), w))
    expected = ExactProducts(inner, w, a).mixed(series @ g)[0]
    estimate = hypergradient(inner, outer, w, a, Neumann(4, 0.1))
    torch.testing.assert_close(estimate.implicit[0], -expected, rtol=1e-9, atol=1e-12)


def test_a_long_series_is_a_dense_solve():
    _, inner, outer, w, a, _ = mixture_problem(tracked=False)
    H = dense_hessian(inner, w, a)
    damping = 0.2 - torch.linalg.eigvalsh(H)[0].item()  # makes it positive definite
    g = flat(torch.autograd.grad(outer(w, a), w))
    x = torch.linalg.solve(H + damping * torch.eye(len(H), dtype=H.dtype), g)
    expected = -ExactProducts(inner, w, a).mixed(x)[0]
    for method in (Neumann(400, "auto", damping=damping), Exact(damping)):
        estimate = hypergradient(inner, outer, w, a, method)
        torch.testing.assert_close(estimate.implicit[0], expected, rtol=1e-8, atol=1e-10)


def test_products_come_from_the_training_batch():
    """Swapping the batches must change the implicit part as the formula says, and not otherwise."""
    _, inner, outer, w, a, _ = mixture_problem()
    g = flat(torch.autograd.grad(outer(w, a), w))
    on_training, on_validation = (ExactProducts(loss, w, a).mixed(g)[0] for loss in (inner, outer))
    implicit = hypergradient(inner, outer, w, a, Identity()).implicit[0]
    torch.testing.assert_close(implicit, -on_training)
    assert not torch.allclose(implicit, -on_validation, rtol=1e-2)


def test_float32_follows_float64():
    for method in (Neumann(2, 0.05), Neumann(2, 0.05, curvature="gauss_newton"), Neumann(2, "auto")):
        grads = []
        for dtype in (torch.float32, torch.float64):
            torch.manual_seed(0)
            _, inner, outer, w, a, _ = mixture_problem(dtype)
            grads.append(hypergradient(inner, outer, w, a, method).implicit[0].double())
        torch.testing.assert_close(*grads, rtol=2e-2, atol=1e-4)


def test_mixed_dtypes():
    _, inner, outer, w, a, _ = mixture_problem()
    reference = hypergradient(inner, outer, w, a, Neumann(2, 0.05)).grads[0]
    narrow = tuple(t.detach().float().requires_grad_() if i % 2 else t for i, t in enumerate(w))
    wide = [lambda w, a, f=f: f(tuple(t.double() for t in w), a) for f in (inner, outer)]
    estimate = hypergradient(*wide, narrow, a, Neumann(2, 0.05))
    torch.testing.assert_close(estimate.grads[0], reference, rtol=1e-5, atol=1e-7)


def test_autocast_around_the_call_keeps_second_order_in_float32():
    _, inner, outer, w, a, _ = mixture_problem(torch.float32)
    method = Neumann(2, 0.05)
    reference = hypergradient(inner, outer, w, a, method)
    seen = []

    def watching(w, a):
        seen.append(torch.is_autocast_enabled("cpu"))
        return inner(w, a)

    with torch.autocast("cpu", dtype=torch.bfloat16):
        mixed = hypergradient(watching, lambda w, a: outer(w, a).float(), w, a, method)
        same_outer = hypergradient(inner, _full_precision(outer), w, a, method)
        assert torch.is_autocast_enabled("cpu")
    assert seen == [False]
    assert torch.equal(same_outer.implicit[0], reference.implicit[0])
    assert mixed.grads[0].dtype == torch.float32
    torch.testing.assert_close(mixed.grads[0], reference.grads[0], rtol=0.1, atol=5e-3)


def _full_precision(loss):
    def evaluate(w, a):
        with torch.autocast("cpu", enabled=False):
            return loss(w, a)

    return evaluate
