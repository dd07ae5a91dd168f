"""Second derivatives that torch or a custom function gets wrong do not pass unnoticed."""

import pytest
import torch
from networks import mixture_problem
from problems import quadratic, smooth
from torch import nn

from idarts.errors import CurvatureWarning
from idarts.hypergrad import ConjugateGradient, Exact, Identity, Neumann, hypergradient, lift


def normalised(kind, dtype=torch.float64):
    """A small network with a weight_norm of one of torch's two kinds; α scales the inputs."""
    torch.manual_seed(0)
    wrap = nn.utils.parametrizations.weight_norm if kind == "parametrization" else nn.utils.weight_norm

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.alpha = nn.Parameter(torch.ones(4))
            self.body = nn.Sequential(wrap(nn.Linear(4, 5)), nn.Tanh(), nn.Linear(5, 3))

        def forward(self, x):
            return self.body(x * self.alpha)

    net = Net().to(dtype)
    w = tuple(p for p in net.parameters() if p is not net.alpha)
    x, y = torch.randn(8, 4, dtype=dtype), torch.randint(3, (8,))
    inner, outer = (
        lift(net, nn.functional.cross_entropy, (x[s], y[s]), w, (net.alpha,)) for s in (slice(4), slice(4, 8))
    )
    return inner, outer, w, (net.alpha,)


@pytest.mark.filterwarnings("ignore:.*weight_norm.*:FutureWarning")
@pytest.mark.filterwarnings("ignore::idarts.errors.DivergenceWarning")
@pytest.mark.parametrize("kind", ["parametrization", "hook"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
@pytest.mark.parametrize(
    "method", [Neumann(2, 0.05), Exact(1.0), ConjugateGradient(3, damping=1.0)], ids=lambda m: type(m).__name__
)
def test_the_double_backward_of_weight_norm_is_noticed(kind, dtype, method):
    problem = normalised(kind, dtype)
    with pytest.warns(CurvatureWarning, match=r"not symmetric.*perhaps torch's weight_norm"):
        estimate = hypergradient(*problem, method)
    assert estimate.diagnostics.asymmetry > 1e-3
    with pytest.warns(CurvatureWarning):
        checked = hypergradient(*problem, method, diagnostics=True)
    assert checked.diagnostics.product_error > 0.01


@pytest.mark.parametrize("method", [Identity(), Neumann(0, 0.1)], ids=repr)
def test_a_product_error_on_request_needs_no_second_product(method):
    assert hypergradient(*normalised("parametrization"), method, diagnostics=True).diagnostics.product_error > 0.01


class Scale(torch.autograd.Function):
    """x·y, whose gradient by x forgets that it depends on y."""

    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g * y.detach(), (g * x).sum(0)


class Cube(torch.autograd.Function):
    """x³, whose gradient forgets that its factor depends on x: wrong, but symmetric."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * x.detach() ** 2 * g


@pytest.mark.parametrize("method", [Neumann(2, 0.02), Exact(0.5), ConjugateGradient(3)], ids=lambda m: type(m).__name__)
def test_a_custom_function_with_a_detached_backward_is_noticed_and_named(method):
    inner, outer, w, a = smooth()

    def scaled(w, a):
        return inner(w, a) + Scale.apply(w[0], w[1]).square().sum() + 3 * sum((t**2).sum() for t in w)

    def cubed(w, a):
        return inner(w, a) + Cube.apply(w[0]).exp().sum() + 3 * sum((t**2).sum() for t in w)

    with pytest.warns(CurvatureWarning, match="perhaps Scale"):
        hypergradient(scaled, outer, w, a, method)
    assert hypergradient(cubed, outer, w, a, method, diagnostics=True).diagnostics.product_error > 0.01


@pytest.mark.filterwarnings("ignore::idarts.errors.DivergenceWarning")
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
@pytest.mark.parametrize("seed", range(3))
def test_right_products_raise_no_alarm(dtype, seed):
    for method in (
        Neumann(2, 1e-4),
        Neumann(3, "auto", curvature="gauss_newton"),
        Exact(5.0),
        ConjugateGradient(4, damping=5.0),
    ):
        _, inner, outer, w, a, _ = mixture_problem(dtype, seed, dropout=0.3)
        facts = hypergradient(inner, outer, w, a, method, diagnostics=True).diagnostics
        assert facts.asymmetry == pytest.approx(0.0, abs=1e-3)
        assert facts.product_error < 0.05


@pytest.mark.parametrize("products", ["exact", "finite_difference"])
def test_the_product_error_compares_products_of_one_dropout_mask(products):
    _, inner, outer, w, a, _ = mixture_problem(dropout=0.5)
    method = Neumann(1, 0.01, products=products, radius=1e-3)
    assert hypergradient(inner, outer, w, a, method, diagnostics=True).diagnostics.product_error < 1e-2


def test_one_product_says_nothing_of_symmetry():
    problem = quadratic()
    estimate = hypergradient(problem.inner, problem.outer, (problem.w,), (problem.a,), Neumann(1, 0.01))
    assert estimate.diagnostics.asymmetry is None
