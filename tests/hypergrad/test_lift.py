"""`lift`: shared modules, recomputation, batches of keywords; nothing of the module changes."""

import random
from collections import OrderedDict

import numpy as np
import pytest
import torch
from problems import flat
from torch import nn
from torch.nn.functional import cross_entropy, mse_loss
from torch.utils.checkpoint import checkpoint

from idarts import InputError
from idarts.hypergrad import Exact, Neumann, ReverseMode, TruncatedReverse, hypergradient, lift

DATA = torch.Generator().manual_seed(0)
X, Y = torch.randn(8, 4, generator=DATA), torch.randint(3, (8,), generator=DATA)


class Shared(nn.Module):
    """One block under two names, with BatchNorm; a tied weight; α scales the features."""

    def __init__(self):
        super().__init__()
        self.block = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Tanh())
        self.again = self.block
        self.first, self.last = nn.Linear(4, 4), nn.Linear(4, 4)
        self.last.weight = self.first.weight
        self.head = nn.Linear(4, 3)
        self.alpha = nn.Parameter(torch.ones(4))

    def forward(self, x):
        return self.head(self.last(self.again(self.first(self.block(x * self.alpha)))))


def problem(net, data=(X, Y)):
    a = (net.alpha,)
    w = tuple(p for p in net.parameters() if p is not net.alpha)
    half = len(data[1]) // 2
    batches = [tuple(t[part] for t in data) for part in (slice(None, half), slice(half, None))]
    return *(lift(net, cross_entropy, batch, w, a) for batch in batches), w, a


def test_a_shared_submodule_is_left_as_it_was():
    torch.manual_seed(0)
    net = Shared()
    inner, outer, w, a = problem(net)
    parameters, state = (
        dict(net.named_parameters(remove_duplicate=False)),
        {k: v.clone() for k, v in net.state_dict().items()},
    )
    hypergradient(inner, outer, w, a, Neumann(1, 0.01))
    after = dict(net.named_parameters(remove_duplicate=False))
    assert parameters.keys() == after.keys()
    assert all(after[name] is parameter for name, parameter in parameters.items())
    assert all(torch.equal(value, state[name]) for name, value in net.state_dict().items())
    assert all(isinstance(layer.weight, nn.Parameter) for layer in (net.block[0], net.again[0], net.first, net.last))
    assert all(p.grad is None for p in net.parameters())


def test_a_shared_module_has_the_hypergradient_of_its_formula():
    torch.manual_seed(0)
    net = Shared().double().eval()
    inner, outer, w, a = problem(net, (X.double(), Y))

    names = [n for n, p in net.named_parameters() if p is not net.alpha]
    half = slice(None, 4), slice(4, None)
    plain = [
        lambda w, a, s=s: cross_entropy(
            torch.func.functional_call(net, {**dict(zip(names, w, strict=True)), "alpha": a[0]}, (X.double()[s],)), Y[s]
        )
        for s in half
    ]
    ours = hypergradient(inner, outer, w, a, Exact(1.0))
    theirs = hypergradient(*plain, w, a, Exact(1.0))
    torch.testing.assert_close(ours.grads, theirs.grads)


class Recomputed(nn.Module):
    """Two blocks, one inside the other's recomputation, with or without it."""

    def __init__(self, recompute, **options):
        super().__init__()
        self.inside = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Tanh())
        self.outside, self.head = nn.Linear(4, 4), nn.Linear(4, 3)
        self.alpha, self.recompute, self.options = nn.Parameter(torch.ones(4)), recompute, options

    def nested(self, x):
        return torch.tanh(self.outside(self.run(self.inside, x)))

    def run(self, block, x):
        return checkpoint(block, x, **self.options) if self.recompute else block(x)

    def forward(self, x):
        return self.head(self.run(self.nested, x * self.alpha))


METHODS = [
    Neumann(2, 0.05),
    Neumann(2, 0.05, products="finite_difference"),
    ReverseMode(3, 0.5),
    TruncatedReverse(3, 2, 0.5),
]


@pytest.mark.parametrize("method", METHODS, ids=lambda m: f"{type(m).__name__}-{m.products}")
@pytest.mark.parametrize("wrapped", [False, True])
def test_recomputation_sees_the_weights_of_the_forward_pass(method, wrapped):
    results, state = [], None
    for recompute in (False, True):
        torch.manual_seed(0)
        net = Recomputed(recompute, use_reentrant=False).double()
        state = {k: v.clone() for k, v in net.state_dict().items()}
        inner, outer, w, a = problem(net, (X.double(), Y))
        if wrapped:  # in a function that knows nothing of the module
            inner, outer = (lambda w, a, f=f: f(w, a) + 0.1 * (w[0] ** 2).sum() for f in (inner, outer))
        results.append(hypergradient(inner, outer, w, a, method).grads[0])
        assert all(torch.equal(value, state[name]) for name, value in net.state_dict().items())
    torch.testing.assert_close(*results, rtol=1e-9, atol=1e-12)


def test_hooks_entered_elsewhere_are_torchs_own():
    unpacked = []
    hooks = torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: (unpacked.append(1), t)[1])
    inside, weight = nn.Linear(4, 3), torch.ones(3, 4, requires_grad=True)

    class Hooked(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = inside

        def forward(self, x):
            with hooks:
                return self.layer(x).exp()

    net = Hooked()
    lifted = lift(net, cross_entropy, (X, Y), (inside.weight,))
    torch.autograd.grad(lifted((weight,), ()), weight)
    before = len(unpacked)
    with hooks:
        value = (weight * weight).sum()
    torch.autograd.grad(value, weight)
    assert len(unpacked) > before
    assert torch.autograd.graph.saved_tensors_hooks.__enter__.__module__ == "torch.autograd.graph"


def test_reentrant_recomputation_is_refused_in_one_line():
    torch.manual_seed(0)
    inner, outer, w, a = problem(Recomputed(True, use_reentrant=True))
    with pytest.raises(InputError, match="set use_reentrant=False") as caught:
        hypergradient(inner, outer, w, a, Neumann(1, 0.1))
    assert "\n" not in str(caught.value)


def test_a_recurrent_layer_keeps_its_list_of_weights():
    net = nn.LSTM(4, 3)
    before = list(net._flat_weights)
    lifted = lift(net, lambda out, _: out[0].square().sum(), (X[:, None], None), net.parameters())
    leaves = tuple(p.detach().clone().requires_grad_() for p in net.parameters())
    assert all(g is not None for g in torch.autograd.grad(lifted(leaves, ()), leaves))
    assert all(one is other for one, other in zip(net._flat_weights, before, strict=True))


@pytest.mark.parametrize("curvature", ["hessian", "gauss_newton"])
def test_batches_of_keywords_and_generators_of_parameters(curvature):
    torch.manual_seed(0)
    net = nn.Bilinear(4, 4, 3).double()
    scale = nn.Parameter(torch.ones(3, dtype=torch.float64))
    net.register_parameter("scale", scale)
    net.register_forward_hook(lambda layer, _, out: out * layer.scale)
    pair = {"input1": X.double(), "input2": X.double().flip(0)}
    forms = [
        (tuple(pair.values()), Y),
        (pair, Y),
        (OrderedDict(pair), Y),
    ]
    method = Exact(1.0, curvature=curvature)

    def weights():
        return (p for p in net.parameters() if p is not scale)

    def estimate(batch, loss=cross_entropy):
        lifted = lift(net, loss, batch, weights(), (p for p in (scale,)))
        return hypergradient(lifted, lifted, weights(), (p for p in (scale,)), method).grads[0]

    expected = estimate(forms[0])
    for batch in forms[1:]:
        assert torch.equal(estimate(batch), expected)
    whole = estimate(pair, lambda outputs, batch: cross_entropy(outputs, Y) + 0 * batch["input1"].sum())
    torch.testing.assert_close(whole, expected)


@pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")
def test_a_scripted_module_is_refused():
    net = torch.jit.trace(nn.Linear(4, 3), X)
    with pytest.raises(InputError, match="lift the original"):
        lift(net, cross_entropy, (X, Y), net.parameters())


@pytest.mark.parametrize("products", ["exact", "finite_difference"])
def test_the_random_states_of_numpy_and_python_are_put_back(products):
    w, a = (torch.ones(3, requires_grad=True),), (torch.ones(3, requires_grad=True),)

    def loss(w, a):
        noise = torch.as_tensor(np.random.rand(3) + random.random(), dtype=torch.float32)
        return ((w[0] * noise) ** 2 * a[0]).sum()

    np.random.seed(0), random.seed(0)
    expected = np.random.rand(), random.random()
    np.random.seed(0), random.seed(0)
    first = hypergradient(loss, loss, w, a, Neumann(1, 0.01, products=products)).grads[0]
    second = hypergradient(loss, loss, w, a, Neumann(1, 0.01, products=products)).grads[0]
    assert torch.equal(first, second)
    assert (np.random.rand(), random.random()) == expected


def test_finite_differences_draw_the_same_numbers_for_every_evaluation():
    """With other numbers for each evaluation, a difference would be noise of order 1/ε."""
    torch.manual_seed(0)
    w, a = (
        (torch.randn(6, dtype=torch.float64, requires_grad=True),),
        (torch.ones(6, dtype=torch.float64, requires_grad=True),),
    )

    def inner(w, a):
        mask = torch.nn.functional.dropout(torch.ones(6, dtype=torch.float64), 0.5)
        mask = mask + torch.as_tensor(np.random.rand(6)) + random.random()
        return (torch.sin(w[0] * mask) * a[0]).sum() + 4 * (w[0] ** 2).sum()

    exact, difference = (
        flat(hypergradient(inner, lambda w, a: (w[0] ** 2).sum(), w, a, Neumann(2, 0.02, products=kind)).implicit)
        for kind in ("exact", "finite_difference")
    )
    torch.testing.assert_close(difference, exact, rtol=1e-3, atol=1e-4)
    assert mse_loss(exact, torch.zeros(6, dtype=torch.float64)) > 1e-3
