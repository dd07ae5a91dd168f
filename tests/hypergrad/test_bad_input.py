"""Wrong input raises the package's own error, in one sentence that says what to do."""

import numpy as np
import pytest
import torch
from problems import quadratic, smooth
from torch import nn
from torch.autograd.function import once_differentiable

from idarts import IdartsError, InputError, NotDifferentiableError, NotFiniteError
from idarts.errors import SingularCurvatureError
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
    hypergradient,
    lift,
)

ALL = [
    OneStep(0.1),
    Identity(),
    Exact(1.0),
    Neumann(2, 0.1),
    Neumann(2, 0.1, products="finite_difference"),
    ConjugateGradient(2),
    Nystrom(2, 1.0),
    ReverseMode(2, 0.1),
    TruncatedReverse(2, 1, 0.1),
]
IDS = [f"{type(m).__name__}-{m.products}" for m in ALL]


@pytest.mark.parametrize(
    "method", [ConjugateGradient(), Neumann(1, 0.1), Neumann(1), Exact(), Nystrom(1), OneStep(0.1)], ids=repr
)
@pytest.mark.parametrize("where", ["outer gradient", "curvature"])
def test_numbers_that_are_not_finite_never_become_zeros(method, where):
    w, a = (torch.tensor([1.0, 2.0], requires_grad=True),), (torch.tensor([1.0], requires_grad=True),)

    def inner(w, a):
        infinite = ((w[0] - w[0].detach()).abs() ** 1.5).sum() if where == "curvature" else 0.0
        return (w[0] ** 2).sum() + (a[0] * w[0]).sum() + infinite

    def outer(w, a):
        steep = (w[0] - w[0].detach()).abs().sum().sqrt() if where == "outer gradient" else 0.0
        return w[0].sum() + steep + 3 * a[0].sum()

    if where == "curvature" and isinstance(method, OneStep):
        return  # it does not use the curvature
    with pytest.raises((NotFiniteError, SingularCurvatureError)):
        hypergradient(inner, outer, w, a, method)


def test_an_automatic_step_needs_curvature():
    w, a = (torch.tensor([1.0], requires_grad=True),), (torch.tensor([1.0], requires_grad=True),)
    with pytest.raises(SingularCurvatureError, match="no curvature"):
        hypergradient(lambda w, a: (a[0] * w[0]).sum(), lambda w, a: w[0].sum(), w, a, Neumann(2))


def test_half_precision_is_not_called_singular():
    w, a = (torch.tensor([1.0], requires_grad=True),), (torch.tensor([1.0], requires_grad=True),)
    half = tuple(tensor.detach().bfloat16().requires_grad_() for tensor in w)
    estimate = hypergradient(lambda w, a: ((w[0] - a[0]) ** 2).sum(), lambda w, a: w[0].sum(), half, a, Exact())
    assert estimate.grads[0].item() == 1.0


@pytest.mark.parametrize("step", [torch.tensor(0.1), np.float32(0.1), 0.1, [0.1]], ids=repr)
def test_a_step_may_be_any_kind_of_number(step):
    w, a = (torch.tensor([3.0], requires_grad=True),), (torch.tensor([3.0], requires_grad=True),)
    inner, outer = (lambda w, a: ((w[0] - a[0]) ** 2).sum()), (lambda w, a: (w[0] ** 2).sum())
    assert hypergradient(inner, outer, w, a, OneStep(step)).grads[0].item() == pytest.approx(1.2)


@pytest.mark.parametrize("decay", ["x", None, -1.0, [0.1, "x"]])
def test_invalid_weight_decay(decay):
    with pytest.raises(InputError, match="weight_decay="):
        OneStep(0.1, weight_decay=decay)


@pytest.fixture
def problem():
    return smooth()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Neumann(-1, 0.1), "terms=-1"),
        (lambda: Neumann(1.5, 0.1), "terms=1.5"),
        (lambda: Neumann(2, 0.0), "step=0.0"),
        (lambda: Neumann(2, -0.1), "step=-0.1"),
        (lambda: Neumann(2, "automatic"), "step='automatic'"),
        (lambda: Neumann(2, ()), "step"),
        (lambda: Neumann(2, (0.1, -0.1)), "positive"),
        (lambda: Neumann(2, 0.1, damping=-1), "damping=-1"),
        (lambda: Neumann(2, 0.1, damping="much"), "damping='much'"),
        (lambda: Neumann(2, 0.1, tolerance=-1), "tolerance=-1"),
        (lambda: Neumann(2, 0.1, refresh=0), "refresh=0"),
        (lambda: Neumann(2, 0.1, weight_decay=-0.1), "weight_decay"),
        (lambda: Neumann(2, 0.1, products="approximate"), "exact or finite_difference"),
        (lambda: Neumann(2, 0.1, curvature="fisher"), "hessian or gauss_newton"),
        (lambda: Neumann(2, 0.1, curvature="gauss_newton", products="finite_difference"), "products='exact'"),
        (lambda: Neumann(2, 0.1, radius=0), "radius=0"),
        (lambda: OneStep(0), "step=0"),
        (lambda: Exact(-1), "damping=-1"),
        (lambda: ConjugateGradient(0), "iterations=0"),
        (lambda: ConjugateGradient(1, tolerance=-1), "tolerance=-1"),
        (lambda: Nystrom(0, 1.0), "rank=0"),
        (lambda: Nystrom(2, 0.0), "damping=0.0"),
        (lambda: ReverseMode(0, 0.1), "steps=0"),
        (lambda: ReverseMode(1.5, 0.1), "a whole number of at least 1"),
        (lambda: TruncatedReverse(3, 4, 0.1), "between 1 and steps=3"),
        (lambda: TruncatedReverse(3, 0, 0.1), "terms=0"),
    ],
)
def test_invalid_options(make, words):
    with pytest.raises(InputError, match=words) as caught:
        make()
    assert isinstance(caught.value, ValueError)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("method", [FirstOrder(), *ALL], ids=["FirstOrder", *IDS])
class TestEveryMethod:
    def test_empty_parameters(self, problem, method):
        inner, outer, w, a = problem
        with pytest.raises(InputError, match="inner parameters w are empty"):
            hypergradient(inner, outer, (), a, method)
        with pytest.raises(InputError, match="outer parameters a are empty"):
            hypergradient(inner, outer, w, (), method)

    def test_parameters_that_do_not_require_grad(self, problem, method):
        inner, outer, w, a = problem
        with pytest.raises(InputError, match=r"number 1 of the inner parameters.*does not require grad"):
            hypergradient(inner, outer, (w[0], w[1].detach()), a, method)

    def test_a_loss_that_is_not_a_scalar(self, problem, method):
        inner, outer, w, a = problem
        with pytest.raises(InputError, match=r"the outer loss must return a tensor with one number.*\(4, 3\)"):
            hypergradient(inner, lambda w, a: w[0] * a[0], w, a, method)
        with pytest.raises(InputError, match="float"):
            hypergradient(inner, lambda w, a: outer(w, a).item(), w, a, method)

    def test_a_loss_that_is_not_finite(self, problem, method):
        inner, outer, w, a = problem
        with pytest.raises(NotFiniteError, match="the outer loss is nan"):
            hypergradient(inner, lambda w, a: outer(w, a) * float("nan"), w, a, method)
        estimate = hypergradient(inner, lambda w, a: outer(w, a) * float("nan"), w, a, method, check_finite=False)
        assert estimate.outer_loss.isnan()


@pytest.mark.parametrize("method", ALL, ids=IDS)
class TestSecondOrder:
    def test_an_inner_loss_that_is_not_a_scalar_or_not_finite(self, problem, method):
        inner, outer, w, a = problem
        with pytest.raises(InputError, match="the inner loss must return"):
            hypergradient(lambda w, a: w[0], outer, w, a, method)
        with pytest.raises((NotFiniteError, SingularCurvatureError, InputError)):
            hypergradient(lambda w, a: inner(w, a) * float("inf"), outer, w, a, method)

    def test_losses_that_do_not_depend_on_w(self, problem, method):
        inner, outer, w, a = problem
        with pytest.raises(InputError, match=r"the inner loss uses an inner or outer parameter .* itself"):
            hypergradient(lambda _, b: inner(w, b), outer, w, a, method)
        with pytest.raises(InputError, match="the inner loss does not depend on the inner parameters"):
            hypergradient(lambda w, a: torch.tensor(1.0), outer, w, a, method)
        with pytest.raises(InputError, match="the outer loss does not depend on the inner parameters"):
            hypergradient(inner, lambda _, b: (b[0] ** 2).sum(), w, a, method)


class Cube(torch.autograd.Function):
    """x³ with a derivative that cannot be differentiated."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * x**2 * g


def test_a_function_that_is_differentiable_once_is_named(problem):
    inner, outer, w, a = problem

    def cubed(w, a):
        return inner(w, a) + Cube.apply(w[1]).sum()

    def cubed_and_squared(w, a):
        return inner(w, a) + (Cube.apply(w[1]) ** 2).sum()

    for method in (Neumann(2, 0.1), ConjugateGradient(2), ReverseMode(2, 0.1)):
        for loss in (cubed, cubed_and_squared):
            with pytest.raises(NotDifferentiableError, match=r"Cube.*products='finite_difference'"):
                hypergradient(loss, outer, w, a, method)
    assert hypergradient(cubed, outer, w, a, Neumann(2, 0.01, products="finite_difference")).grads


class Square(torch.autograd.Function):
    """A decorated backward that can be differentiated again."""

    @staticmethod
    @torch.amp.custom_fwd(device_type="cpu")
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**2

    @staticmethod
    @torch.amp.custom_bwd(device_type="cpu")
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * x * g


def test_other_decorated_functions_are_accepted(problem):
    inner, outer, w, a = problem
    custom = hypergradient(lambda w, a: inner(w, a) + Square.apply(w[1]).sum(), outer, w, a, Neumann(2, 0.01))
    stock = hypergradient(lambda w, a: inner(w, a) + (w[1] ** 2).sum(), outer, w, a, Neumann(2, 0.01))
    torch.testing.assert_close(custom.grads, stock.grads)


def test_a_torch_operation_without_second_derivative_is_named():
    w, a = (torch.randn(1, 2, 4, 8, requires_grad=True),), (torch.ones(1, requires_grad=True),)

    def inner(w, a):
        with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.FLASH_ATTENTION):
            return (torch.nn.functional.scaled_dot_product_attention(w[0], w[0], w[0]) * a[0]).sum()

    with pytest.raises(NotDifferentiableError, match="flash_attention"):
        hypergradient(inner, lambda w, a: (w[0] ** 2).sum(), w, a, Neumann(1, 0.1))


def test_other_errors_of_a_loss_are_not_changed(problem):
    _, outer, w, a = problem
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied") as caught:
        hypergradient(lambda w, a: (w[0] @ w[0]).sum(), outer, w, a, Neumann(1, 0.1))
    assert not isinstance(caught.value, IdartsError)


def test_wrong_calls(problem):
    inner, outer, w, a = problem
    with pytest.raises(InputError, match="give a method such as"):
        hypergradient(inner, outer, w, a, "neumann")
    with pytest.raises(InputError, match="one tensor; give a tuple"):
        hypergradient(inner, outer, w[0], a, FirstOrder())
    with pytest.raises(InputError, match="not a floating-point tensor"):
        hypergradient(inner, outer, (torch.ones(2, dtype=torch.int64),), a, FirstOrder())
    with pytest.raises(InputError, match="empty sequence"):
        hypergradient([], outer, w, a, ReverseMode(2, 0.1))
    with pytest.raises(InputError, match="one inner loss or one for each of its 2 steps, but 3 were given"):
        hypergradient([inner] * 3, outer, w, a, ReverseMode(2, 0.1))
    with pytest.raises(InputError, match="Neumann uses one inner loss, but 2 were given"):
        hypergradient([inner] * 2, outer, w, a, Neumann(2, 0.1))
    with pytest.raises(InputError, match="step has 3 values for 2 inner parameters"):
        hypergradient(inner, outer, w, a, Neumann(2, (0.1, 0.1, 0.1)))
    with pytest.raises(InputError, match=r"idarts\.hypergrad\.lift"):
        hypergradient(inner, outer, w, a, Neumann(2, 0.1, curvature="gauss_newton"))
    with pytest.raises(InputError, match="other shapes"):
        hypergradient(inner, outer, w, a, FirstOrder()).write_grad(w)


def test_a_state_of_another_problem_or_method(problem):
    inner, outer, w, a = problem
    small = quadratic()
    state = hypergradient(small.inner, small.outer, (small.w,), (small.a,), Neumann(1)).state
    for method in (Neumann(1), Neumann(1, 0.01)):  # whether it needs the eigenvalue or not
        with pytest.raises(InputError, match="problem with 6 weights, but this one has 15; pass state=None") as caught:
            hypergradient(inner, outer, w, a, method, state=state)
        assert "\n" not in str(caught.value)
    with pytest.raises(InputError, match="not a state of Neumann"):
        hypergradient(inner, outer, w, a, Neumann(1), state={"v": torch.zeros(15)})


def test_curvature_without_an_inverse():
    problem = quadratic(4, 2)
    problem.A = torch.zeros(4, 4, dtype=torch.float64)
    with pytest.raises(SingularCurvatureError, match="give damping a positive value"):
        hypergradient(problem.inner, problem.outer, (problem.w,), (problem.a,), Exact())


def test_a_dense_matrix_that_is_too_large():
    w, a = (torch.zeros(30_000, requires_grad=True),), (torch.ones(1, requires_grad=True),)
    with pytest.raises(InputError, match="too large for 30,000 weights"):
        hypergradient(lambda w, a: (w[0] ** 2 * a[0]).sum(), lambda w, a: w[0].sum(), w, a, Exact())


def test_lift_names_a_tensor_that_is_not_a_parameter():
    net, other = torch.nn.Linear(2, 1), torch.nn.Linear(2, 1)
    with pytest.raises(InputError, match="tensor 1 of w is not a parameter of this Linear"):
        lift(net, torch.nn.functional.mse_loss, (torch.ones(1, 2), torch.ones(1, 1)), (net.weight, other.bias))


def test_a_lifted_loss_refuses_other_numbers_of_parameters():
    net = nn.Sequential(*(nn.Linear(3, 3, bias=False) for _ in range(3)))
    one, two, three = net.parameters()
    batch = torch.randn(4, 3), torch.randn(4, 3)
    loss = lift(net, nn.functional.mse_loss, batch, (one,), (three,))
    for w in ((one, two), ()):
        with pytest.raises(
            InputError, match=f"lifted with 1 tensors of w and 1 of a, but it is called with {len(w)} and"
        ):
            loss(w, (three,))
    with pytest.raises(InputError, match="the batch has 3 parts"):
        lift(net, nn.functional.mse_loss, (*batch, batch[0]), (one,))


def test_a_loss_that_changes_the_weights_in_place_is_refused():
    net = nn.Embedding(4, 2, max_norm=0.5)
    scale = torch.ones(2, requires_grad=True)
    loss = lambda w, a: (nn.functional.embedding(torch.tensor([1, 2]), w[0], max_norm=0.5) * a[0]).sum()  # noqa: E731
    with pytest.raises(InputError, match="changed w or a in place"):
        hypergradient(loss, loss, (net.weight,), (scale,), FirstOrder())


class TestSharedAndForeignTensors:
    def test_one_tensor_is_inner_or_outer_once(self, problem):
        inner, outer, w, a = problem
        for method in (FirstOrder(), Neumann(1, 0.1), ReverseMode(1, 0.1)):
            with pytest.raises(
                InputError, match=r"number 2 of a is the same tensor as number 0 of w; .* inner or outer"
            ):
                hypergradient(inner, outer, w, (*a, w[0]), method)
            with pytest.raises(InputError, match="number 2 of w is the same tensor as number 1 of w"):
                hypergradient(inner, outer, (*w, w[1]), a, method)

    @pytest.mark.parametrize("method", ALL, ids=IDS)
    def test_a_loss_that_uses_the_callers_own_tensor(self, problem, method):
        """Its derivative would be left out without a word."""
        inner, outer, w, a = problem
        with pytest.raises(InputError, match=r"the inner loss uses .* of shape .* itself.*take it from w or a"):
            hypergradient(lambda v, _: inner(v, a), outer, w, a, method)
        with pytest.raises(InputError, match="the outer loss uses an inner or outer parameter"):
            hypergradient(inner, lambda v, _: outer(v, a), w, a, method)
        assert hypergradient(lambda v, b: inner(v, b) + (v[1] - w[1].detach()).square().sum(), outer, w, a, method)

    @pytest.mark.parametrize("method", ALL, ids=IDS)
    def test_a_loss_that_uses_the_callers_own_tensor_where_it_is_no_leaf(self, problem, method):
        inner, outer, w, a = problem
        computed = tuple(t * 1 for t in a)
        hypergradient(inner, outer, w, computed, method)
        with pytest.raises(InputError, match=r"the inner loss uses .* of shape .* itself"):
            hypergradient(lambda v, _: inner(v, computed), outer, w, computed, method)

    def test_first_order_may_use_its_own_weights_but_not_its_own_alpha(self, problem):
        inner, outer, w, a = problem
        own = hypergradient(inner, lambda _, b: outer(w, b), w, a, FirstOrder())
        torch.testing.assert_close(own.grads, hypergradient(inner, outer, w, a, FirstOrder()).grads)
        with pytest.raises(InputError, match="the outer loss uses"):
            hypergradient(inner, lambda v, b: outer(v, (a[0], b[1])), w, a, FirstOrder())


class Cleaning:
    """Each example has a weight σ(α), which is in the criterion, not in the outputs."""

    def __init__(self, alpha=None):
        make = torch.Generator().manual_seed(0)
        self.x = torch.randn(6, 4, generator=make, dtype=torch.float64)
        self.y, self.alpha = torch.randn(6, generator=make, dtype=torch.float64), alpha

    def outputs(self, w, a):
        return torch.tanh(self.x @ w[0])

    def __call__(self, w, a):
        return (torch.sigmoid(a[0]) * (self.outputs(w, a) - self.y) ** 2).mean()


def test_gauss_newton_with_alpha_in_the_criterion_is_right_or_refused():
    w = (torch.ones(4, dtype=torch.float64, requires_grad=True),)
    a = (torch.linspace(-1, 1, 6, dtype=torch.float64).requires_grad_(),)
    method, outer = Exact(0.1, curvature="gauss_newton"), lambda w, a: (w[0] ** 2).sum()

    class Hidden(Cleaning):
        def criterion(self, outputs):
            return (torch.sigmoid(self.alpha) * (outputs - self.y) ** 2).mean()

    class Given(Cleaning):
        def criterion(self, outputs, a):
            return (torch.sigmoid(a[0]) * (outputs - self.y) ** 2).mean()

    with pytest.raises(InputError, match=r"criterion\(outputs, a\)"):
        hypergradient(Hidden(a[0]), outer, w, a, method)
    loss = Given()
    J = torch.func.jacrev(lambda v: loss.outputs((v,), a))(w[0].detach())
    weights = torch.sigmoid(a[0].detach())
    G = J.T @ torch.diag(2 * weights / 6) @ J + 0.1 * torch.eye(4, dtype=torch.float64)
    z = loss.outputs(w, a).detach()
    mixed = J.T @ torch.diag(weights * (1 - weights) * 2 * (z - loss.y) / 6)  # ∂²L1/∂w∂α
    expected = -torch.linalg.solve(G, 2 * w[0].detach()) @ mixed
    torch.testing.assert_close(hypergradient(loss, outer, w, a, method).implicit[0], expected)


class TestTorchsErrorsInOneLine:
    def one_line(self, words, kind, *arguments):
        with pytest.raises(kind, match=words) as caught:
            hypergradient(*arguments)
        assert "\n" not in str(caught.value)

    @pytest.mark.parametrize("method", [Neumann(1, 0.1), Neumann(1, 0.1, products="finite_difference")], ids=IDS[3:5])
    def test_sparse_gradients(self, method):
        net = torch.nn.Embedding(5, 3, sparse=True)
        scale = torch.ones(3, requires_grad=True)
        w, a = (net.weight,), (scale,)

        def loss(w, a):
            rows = torch.nn.functional.embedding(torch.tensor([0, 2]), w[0], sparse=True)
            return ((rows * a[0]) ** 2).sum()

        self.one_line("sparse=False", InputError, loss, loss, w, a, method)
        self.one_line("sparse=False", InputError, loss, lambda w, a: (w[0] ** 2).sum() * a[0].sum(), w, a, method)

    def test_tensors_of_inference_mode(self):
        with torch.inference_mode():
            x, made = torch.ones(3), torch.ones(3)
        w, a = (torch.ones(3, requires_grad=True),), (torch.ones(3, requires_grad=True),)

        def loss(w, a):
            return ((w[0] * x * a[0]) ** 2).sum()

        def fine(w, a):
            return ((w[0] * a[0]) ** 2).sum()

        words = "a tensor that was made in torch.inference_mode"
        self.one_line(words, InputError, loss, fine, w, a, Neumann(1, 0.1))
        self.one_line(words, InputError, fine, loss, w, a, Neumann(1, 0.1))
        self.one_line("inner parameters w was made in inference mode", InputError, fine, fine, (made,), a, FirstOrder())

    def test_a_compiled_loss(self):
        w, a = (torch.ones(3, requires_grad=True),), (torch.ones(3, requires_grad=True),)

        def plain(w, a):
            return torch.exp(w[0] * a[0]).sum()

        compiled = torch.compile(plain, backend="aot_eager")
        words = r"cannot be differentiated twice: .*double backward.*products='finite_difference'"
        self.one_line(words, NotDifferentiableError, compiled, plain, w, a, Neumann(1, 0.1))
        method = Neumann(1, 0.01, products="finite_difference")
        torch.testing.assert_close(
            hypergradient(compiled, plain, w, a, method).grads, hypergradient(plain, plain, w, a, method).grads
        )
