"""`from_optimizer` against the trajectories of torch's own optimisers."""

import copy

import pytest
import torch
from problems import dense_hessian, dense_mixed, flat, smooth
from torch.optim import LBFGS, SGD, Adagrad, Adam, AdamW, NAdam, RMSprop

from idarts import InputError
from idarts.hypergrad import Neumann, OneStep, ReverseMode, TruncatedReverse, from_optimizer, hypergradient

OPTIMIZERS = {
    "plain": lambda w: SGD(w, lr=0.05, weight_decay=0.1),
    "momentum": lambda w: SGD(w, lr=0.05, momentum=0.9),
    "dampened": lambda w: SGD(w, lr=0.05, momentum=0.9, dampening=0.3, weight_decay=0.2),
    "nesterov": lambda w: SGD(w, lr=0.05, momentum=0.9, nesterov=True),
    "groups": lambda w: SGD([{"params": w[:1], "momentum": 0.5}, {"params": w[1:], "lr": 0.02}], lr=0.05, momentum=0.9),
    "adam": lambda w: Adam(w, lr=0.05, weight_decay=0.1),
    "adam by groups": lambda w: Adam([{"params": w[:1], "betas": (0.5, 0.9)}, {"params": w[1:], "lr": 0.02}], lr=0.05),
    "amsgrad": lambda w: Adam(w, lr=0.05, amsgrad=True),
    "adamw": lambda w: AdamW(w, lr=0.05, weight_decay=0.3),
    "rmsprop": lambda w: RMSprop(w, lr=0.01, weight_decay=0.1),
    "centred rmsprop": lambda w: RMSprop(w, lr=0.01, centered=True, momentum=0.5),
}


def trajectory(inner, w, a, optimizer, steps):
    """w after some real steps of a copy of the optimiser."""
    moved, copied = copy.deepcopy((list(w), optimizer))
    copied.param_groups, groups = [], optimizer.param_groups
    place = {id(p): q for p, q in zip(w, moved, strict=True)}
    copied = type(optimizer)([{**g, "params": [place[id(p)] for p in g["params"]]} for g in groups])
    for p in w:
        if p in optimizer.state:
            copied.state[place[id(p)]] = copy.deepcopy(optimizer.state[p])
    for _ in range(steps):
        for p, g in zip(moved, torch.autograd.grad(inner(moved, a), moved), strict=True):
            p.grad = g
        copied.step()
    return tuple(p.detach() for p in moved)


def by_differences(inner, outer, w, a, optimizer, steps, epsilon=1e-5):
    """d/dα of L2 after the real trajectory, by central differences."""
    result = []
    for index, tensor in enumerate(a):
        for entry in range(tensor.numel()):
            values = []
            for sign in (1, -1):
                shifted = [t.detach().clone() for t in a]
                shifted[index].view(-1)[entry] += sign * epsilon
                values.append(outer(trajectory(inner, w, shifted, optimizer, steps), shifted).item())
            result.append((values[0] - values[1]) / (2 * epsilon))
    return torch.tensor(result, dtype=torch.float64)


@pytest.mark.parametrize("warm", [False, True])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_reverse_mode_is_the_derivative_of_the_real_trajectory(name, warm):
    inner, outer, w, a = smooth()
    optimizer = OPTIMIZERS[name](list(w))
    for _ in range(2 if warm else 0):
        for p, g in zip(w, torch.autograd.grad(inner(w, a), w), strict=True):
            p.grad = g
        optimizer.step()
    before = copy.deepcopy(optimizer.state_dict()), flat(w)
    steps = 3
    expected = by_differences(inner, outer, w, a, optimizer, steps)
    options = from_optimizer(optimizer, (p for p in w))
    rates = flat([torch.full_like(p, group["lr"]) for group in optimizer.param_groups for p in group["params"]])
    for method in (ReverseMode(steps, **options), TruncatedReverse(steps, steps, **options)):
        estimate = hypergradient(inner, outer, w, a, method)
        torch.testing.assert_close(flat(estimate.grads), expected, rtol=2e-5, atol=1e-8)
        assert estimate.diagnostics.step == pytest.approx(rates.mean().item())
    assert str(optimizer.state_dict()) == str(before[0])
    assert torch.equal(flat(w), before[1])


@pytest.mark.filterwarnings("ignore::idarts.errors.DivergenceWarning")
@pytest.mark.parametrize("name", ["momentum", "adam", "adamw", "rmsprop", "centred rmsprop"])
def test_a_series_has_the_present_preconditioner(name):
    inner, outer, w, a = smooth()
    optimizer = OPTIMIZERS[name](list(w))
    for _ in range(2):
        for p, g in zip(w, torch.autograd.grad(inner(w, a), w), strict=True):
            p.grad = g
        optimizer.step()
    states = [optimizer.state[p] for p in w]
    group = optimizer.param_groups[0]
    scale = torch.ones(15, dtype=torch.float64)
    if "adam" in name:
        scale = flat([(s["exp_avg_sq"] / (1 - group["betas"][1] ** 2)).sqrt() + group["eps"] for s in states])
    if "rmsprop" in name:
        centre = [s["grad_avg"] ** 2 if group["centered"] else 0 for s in states]
        scale = flat([(s["square_avg"] - c).sqrt() + group["eps"] for s, c in zip(states, centre, strict=True)])
    decay = group["weight_decay"] * (scale if name == "adamw" else torch.ones_like(scale))
    D, H = torch.diag(group["lr"] / scale), dense_hessian(inner, w, a) + torch.diag(decay)
    g, eye = flat(torch.autograd.grad(outer(w, a), w)), torch.eye(15, dtype=torch.float64)
    options = from_optimizer(optimizer, w)
    for method, terms in ((Neumann(3, **options), 4), (OneStep(**options), 1)):
        x = sum(torch.linalg.matrix_power(eye - D @ H, k) for k in range(terms)) @ D @ g
        implicit = flat(hypergradient(inner, outer, w, a, method).implicit)
        torch.testing.assert_close(implicit, -x @ dense_mixed(inner, w, a), rtol=1e-8, atol=1e-10)


def test_a_group_that_rests_has_no_part_in_a_series():
    w = tuple(torch.ones(2, requires_grad=True) for _ in range(2))
    a = (torch.ones(2, requires_grad=True),)
    inner = lambda w, a: ((w[0] - a[0]) ** 2).sum() + ((w[1] - a[0]) ** 2).sum()  # noqa: E731
    outer = lambda w, a: (w[0] ** 2 + w[1] ** 2).sum()  # noqa: E731
    adam = torch.optim.Adam([{"params": [w[0]], "lr": 0.1}, {"params": [w[1]], "lr": 0.0}])
    inner(w, tuple(2 * t.detach() for t in a)).backward()
    adam.step()
    estimate = hypergradient(inner, outer, w, a, Neumann(3, **from_optimizer(adam, w)))
    moved, rests = estimate.solution.split(2)
    assert (moved != 0).all()
    assert (rests == 0).all()
    assert estimate.diagnostics.contraction is not None


def test_a_weight_that_never_moved_does_not_become_nan():
    inner, outer, w, a = smooth()
    spare = torch.zeros(2, dtype=torch.float64, requires_grad=True)
    options = from_optimizer(Adam([*w, spare]), (*w, spare))
    assert all(g.isfinite().all() for g in hypergradient(inner, outer, (*w, spare), a, ReverseMode(2, **options)).grads)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda w: SGD(w, lr=0.1, maximize=True), "SGD with maximize=True; the inner problem must be a minimisation"),
        (lambda w: Adam(w, maximize=True), "Adam with maximize=True"),
        (NAdam, "NAdam is not supported"),
        (Adagrad, "Adagrad is not supported"),
        (LBFGS, "LBFGS is not supported"),
        (
            lambda w: type("Lookahead", (SGD,), {})(w, lr=0.1),
            "Lookahead is not supported, only SGD, Adam, AdamW, RMSprop",
        ),
    ],
)
def test_what_has_no_meaning_is_refused_by_name(make, words):
    w = smooth()[2]
    with pytest.raises(InputError, match=words) as caught:
        from_optimizer(make(list(w)), w)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["adam", "adamw", "rmsprop"])
def test_a_series_needs_a_first_step(name):
    inner, outer, w, a = smooth()
    with pytest.raises(InputError, match="no preconditioner before its first step; take a step, or unroll it"):
        hypergradient(inner, outer, w, a, Neumann(2, **from_optimizer(OPTIMIZERS[name](list(w)), w)))
