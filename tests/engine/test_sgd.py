"""The shared step of SGD against the same written out, bit for bit."""

import math

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from idarts.engine.sgd import SGD

WEIGHTS = {"momentum": 0.9, "nesterov": True, "decay": 0.01, "clip": 0.5}


def problem(unused=False):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 3))
    x, y = torch.randn(4, 16, 5), torch.randint(3, (4, 16))
    w = [*net.parameters(), *([nn.Parameter(torch.ones(2))] if unused else [])]
    return net, w, list(zip(x, y, strict=True))


def flat(w):
    return torch.cat([parameter.detach().flatten() for parameter in w])


def by_hand(w, batches, net, rates, clip):
    """Nesterov momentum, decay and clipping by torch's own optimiser, one gradient at a time."""
    optimizer = torch.optim.SGD(w, 0.3, 0.9, weight_decay=0.01, nesterov=True)
    for rate, (x, y) in zip(rates, batches, strict=True):
        grads = torch.autograd.grad(cross_entropy(net(x), y), w, allow_unused=True)
        norm = torch.nn.utils.get_total_norm([grad for grad in grads if grad is not None])
        scale = (clip / (norm + 1e-6)).clamp(max=1.0) if clip else 1.0
        for parameter, grad in zip(w, grads, strict=True):
            parameter.grad = None if grad is None else grad * scale
        optimizer.param_groups[0]["lr"] = rate
        optimizer.step()
    return flat(w)


@pytest.mark.parametrize("clip", [0.5, 0.0, None])
@pytest.mark.parametrize("unused", [False, True])
def test_steps_by_gradients_of_w_alone(clip, unused):
    """As a search takes them, and a trial, which clips nothing."""
    rates = [0.3, 0.2, 0.1, 0.05]
    net, w, batches = problem(unused)
    expected = by_hand(w, batches, net, rates, clip)
    net, w, batches = problem(unused)
    sgd = SGD(w, **WEIGHTS | {"clip": clip})
    for rate, (x, y) in zip(rates, batches, strict=True):
        with sgd.autocast():
            loss = cross_entropy(net(x), y)
        seen, finite = sgd.step(sgd.gradients(loss), torch.stack([loss.detach(), torch.tensor(0.25)]), rate)
        assert finite
        assert torch.equal(seen, torch.stack([loss.detach(), torch.tensor(0.25)]))
    assert torch.equal(flat(w), expected)
    assert all(parameter.grad is None for parameter in w)


def test_steps_by_accumulated_gradients_are_the_same():
    """As a training takes them: backward, which leaves gradients in `.grad`."""
    results = []
    for accumulated in (False, True):
        net, w, batches = problem()
        sgd = SGD(w, **WEIGHTS)
        for x, y in batches:
            loss = cross_entropy(net(x), y)
            if accumulated:
                sgd.scaler.scale(loss).backward()
            grads = [parameter.grad for parameter in w] if accumulated else sgd.gradients(loss)
            sgd.step(grads, loss.detach().reshape(1), 0.1)
        results.append(flat(w))
    assert torch.equal(*results)


@pytest.mark.parametrize("spoil", ["loss", "gradient"])
def test_a_step_that_is_not_finite_takes_no_gradient(spoil):
    net, w, batches = problem()
    sgd = SGD(w, momentum=0.0, clip=0.0)
    before = flat(w)
    loss = cross_entropy(net(batches[0][0]), batches[0][1])
    grads = [grad * (math.inf if spoil == "gradient" else 1) for grad in sgd.gradients(loss)]
    _, finite = sgd.step(grads, loss.detach().reshape(1) * (math.nan if spoil == "loss" else 1), 0.1)
    assert not finite
    assert torch.equal(flat(w), before)


def test_without_clip_nothing_is_checked():
    """A trial that diverges must not look as if it had converged."""
    net, w, batches = problem()
    sgd = SGD(w, momentum=0.0)
    loss = cross_entropy(net(batches[0][0]), batches[0][1])
    _, finite = sgd.step([grad * math.nan for grad in sgd.gradients(loss)], loss.detach().reshape(1), 0.1)
    assert finite
    assert flat(w).isnan().all()


def test_float16_scales_the_loss_and_lowers_the_scale_when_it_overflows():
    net, w, batches = problem()
    sgd = SGD(w, **WEIGHTS, precision="float16")
    with sgd.autocast():
        outputs = net(batches[0][0])
        loss = cross_entropy(outputs.float(), batches[0][1])
    assert outputs.dtype == torch.float16
    grads = sgd.gradients(loss)
    scale, before = sgd.scaler.get_scale(), flat(w)
    assert scale > 1000
    _, finite = sgd.step([grad * math.inf for grad in grads], loss.detach().reshape(1), 0.1)
    assert finite  # the loss is; such a step is usual
    assert torch.equal(flat(w), before)
    assert sgd.scaler.get_scale() == scale / 2


def test_float32_stays_float32_inside_a_callers_autocast():
    net, w, batches = problem()
    with torch.autocast("cpu", torch.bfloat16), SGD(w, **WEIGHTS).autocast():
        assert net(batches[0][0]).dtype == torch.float32
