"""A step of training against the same by hand: clipping, accumulation, smoothing, auxiliary head, average."""

import math
from copy import deepcopy

import pytest
import torch
from torch import nn

from idarts.data import Augment, Batches, load
from idarts.data.record import take
from idarts.errors import NotFiniteError
from idarts.spaces import network
from idarts.training import TrainConfig, Training, Weights, loss_and_accuracy

CLASSES = 10


@pytest.fixture(scope="module")
def digits():
    return load("digits")


def line():
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 16), nn.Tanh(), nn.Linear(16, CLASSES))


def batches(data, size=32, **more):
    return Batches(data.train, size, seed=3, **more)


def run(net, data, rounds=None, batch=32, **settings):
    training = Training(net, batches(data, batch), None, TrainConfig(batch=batch, log_steps=1, **settings))
    found = [record for _, record in zip(range(rounds or training.total), training.rounds(), strict=False)]
    return training, found


def weights_of(net):
    return torch.cat([parameter.detach().flatten() for parameter in net.parameters()])


def smoothed(logits, labels, smoothing):
    """−Σ q log p with q = (1 − ε)·one-hot + ε/classes."""
    targets = torch.full_like(logits, smoothing / logits.shape[1])
    targets.scatter_add_(1, labels[:, None], torch.full((len(labels), 1), 1 - smoothing))
    return -(targets * logits.log_softmax(dim=1)).sum(dim=1).mean()


def test_steps_are_sgd_by_hand(digits):
    """Momentum, decay, clipping, label smoothing and the schedule, written out."""
    weights = Weights(rate=0.5, momentum=0.8, decay=0.01, clip=0.3)
    training, found = run(line(), digits, rounds=5, epochs=1, weights=weights, smoothing=0.1)
    net, stream = line(), batches(digits)
    moments = [torch.zeros_like(parameter) for parameter in net.parameters()]
    for step in range(5):
        images, labels = next(stream)
        loss = smoothed(net(images), labels, 0.1)
        assert found[step].train_loss == pytest.approx(loss.item(), rel=1e-5)
        grads = torch.autograd.grad(loss, list(net.parameters()))
        norm = math.sqrt(sum(float((grad**2).sum()) for grad in grads))
        now = 0.5 * 0.5 * (1 + math.cos(math.pi * step / len(stream)))
        assert found[step].rate == pytest.approx(now)
        with torch.no_grad():
            for parameter, grad, moment in zip(net.parameters(), grads, moments, strict=True):
                moment.mul_(0.8).add_(grad * min(1, 0.3 / norm) + 0.01 * parameter)
                parameter.sub_(now * moment)
    torch.testing.assert_close(weights_of(training.net), weights_of(net), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("parts", [2, 4, 32])
def test_accumulation_is_the_large_batch(digits, parts):
    """Without BatchNorm, whose statistics are those of a part."""
    whole, first = run(line(), digits, rounds=6, epochs=1)
    divided, second = run(line(), digits, rounds=6, epochs=1, accumulate=parts)
    torch.testing.assert_close(weights_of(divided.net), weights_of(whole.net), rtol=1e-5, atol=1e-6)
    assert [r.train_loss for r in second] == pytest.approx([r.train_loss for r in first], rel=1e-5)
    assert [r.train_accuracy for r in second] == pytest.approx([r.train_accuracy for r in first], abs=1e-6)


def test_unequal_parts_of_a_batch_weigh_by_their_images(digits):
    """The last batch of an epoch may be short: 30 images make parts of 8, 8, 8 and 6."""
    few, found = take(digits.train, torch.arange(30), {}), []
    for parts in (1, 4):
        settings = TrainConfig(batch=32, epochs=2, log_steps=1, accumulate=parts)
        training = Training(line(), Batches(few, 32, seed=3, drop_last=False), None, settings)
        losses = [record.train_loss for record in training.rounds()]
        found.append((losses, weights_of(training.net)))
    assert found[1][0] == pytest.approx(found[0][0], rel=1e-5)
    torch.testing.assert_close(found[1][1], found[0][1], rtol=1e-5, atol=1e-6)


def test_the_average_is_its_closed_form(digits):
    """Σ of all weights so far, each with the share that later steps left it."""
    training = Training(line(), batches(digits), None, TrainConfig(epochs=1, batch=32, log_steps=1, average=0.5))
    expected, states = weights_of(training.net), training.rounds()
    for step in range(12):
        next(states)
        share = min(0.5, (1 + step) / (10 + step))
        expected = share * expected + (1 - share) * weights_of(training.net)
    torch.testing.assert_close(weights_of(training.result), expected, rtol=1e-5, atol=1e-7)
    assert not torch.allclose(weights_of(training.net), expected)


def test_averaged_statistics_of_batchnorm_follow(digits):
    net = nn.Sequential(nn.BatchNorm2d(1), nn.Flatten(), nn.Linear(64, CLASSES))
    training, _ = run(net, digits, rounds=8, epochs=1, average=0.9)
    mine, theirs = training.result[0], training.net[0]
    assert mine.num_batches_tracked == theirs.num_batches_tracked == 8
    assert 0 < abs(float(mine.running_mean - theirs.running_mean)) < 0.1


def test_the_auxiliary_head_weighs_in_training_only(digits):
    torch.manual_seed(0)
    net = network("DARTS_V2", depth=3, channels=4, in_channels=1, auxiliary=True)
    start, stream = deepcopy(net), batches(digits)
    training, found = run(net, digits, rounds=1, epochs=1, auxiliary=0.4)
    images, labels = next(stream)
    logits, extra = start.train()(images)
    expected = smoothed(logits, labels, 0.0) + 0.4 * smoothed(extra, labels, 0.0)
    assert found[0].train_loss == pytest.approx(expected.item(), rel=1e-4)
    assert isinstance(training.net.eval()(images), torch.Tensor)
    assert training.net.auxiliary.classifier.weight.ne(start.auxiliary.classifier.weight).any()


def test_drop_path_follows_the_schedule_and_is_off_in_evaluation(digits):
    net = network("DARTS_V2", depth=2, channels=2, in_channels=1)
    settings = TrainConfig(epochs=4, batch=256, log_steps=2, drop_path=0.4, weights=Weights(by="epoch"))
    training = Training(net, batches(digits, 256), None, settings)
    seen = [(record.epoch, record.drop_path, net.drop_path) for record in training.rounds()]
    assert [used for _, used, _ in seen] == pytest.approx([0, 0, 0, 0.1, 0.1, 0.1, 0.2, 0.2, 0.2, 0.3, 0.3, 0.3])
    assert all(used == now for _, used, now in seen)
    images = torch.randn(4, 1, 8, 8)
    net.eval()
    assert torch.equal(net(images), net(images))
    net.train()
    assert not torch.equal(net(images), net(images))


def test_drop_path_drops_whole_samples_and_keeps_the_mean():
    from idarts.spaces.darts.network import _drop

    torch.manual_seed(0)
    x = torch.rand(4000, 2, 3, 3) + 1
    dropped = _drop(x, 0.3)
    kept = (dropped != 0).flatten(1)
    assert (kept.all(dim=1) | ~kept.any(dim=1)).all()
    assert kept.float().mean() == pytest.approx(0.7, abs=0.03)
    torch.testing.assert_close(dropped[kept[:, 0]], x[kept[:, 0]] / 0.7)


def test_cutout_reaches_the_batches(digits):
    """A square of zeros, the mean colour, of at most the given side in every image."""
    images, _ = next(batches(digits, 64, augment=Augment(cutout=3)))
    plain, _ = next(batches(digits, 64))
    zeros = (images == 0)[:, 0]
    assert images.shape == plain.shape
    assert (zeros.any(dim=2).sum(dim=1) <= 3).all()
    assert (zeros.sum(dim=(1, 2)) >= 4).all()  # at least 2×2 remain of a square whose centre is in the image


def test_evaluation_by_hand(digits):
    net = line()
    test = Batches(digits.test, 100, shuffle=False, drop_last=False)
    loss, accuracy = loss_and_accuracy(net, test)
    pixels = digits.test.images.float() / 255
    logits = net((pixels - digits.mean[0]) / digits.std[0])
    assert loss == pytest.approx(nn.functional.cross_entropy(logits, digits.test.labels).item(), rel=1e-5)
    assert accuracy == pytest.approx((logits.argmax(dim=1) == digits.test.labels).double().mean().item())


@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
def test_lower_precision_learns_alike(digits, precision):
    exact, first = run(line(), digits, epochs=1, weights=Weights(rate=0.1))
    low, second = run(line(), digits, epochs=1, weights=Weights(rate=0.1), precision=precision)
    assert all(parameter.dtype == torch.float32 for parameter in low.net.parameters())
    assert second[-1].train_loss == pytest.approx(first[-1].train_loss, rel=0.1)
    assert not torch.equal(weights_of(low.net), weights_of(exact.net))
    assert low.sgd.scaler.is_enabled() == (precision == "float16")


def test_layouts_agree(digits):
    nets = []
    for last in (True, False):
        torch.manual_seed(0)
        net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(144, CLASSES))
        nets.append(run(net, digits, rounds=3, epochs=1, channels_last=last)[0].net)
    torch.testing.assert_close(weights_of(nets[0]), weights_of(nets[1]), rtol=1e-4, atol=1e-5)


class Spoilt(nn.Module):
    """BatchNorm and a line, whose images are not finite in some calls."""

    def __init__(self, bad):
        super().__init__()
        self.norm, self.line, self.calls, self.bad = nn.BatchNorm2d(1), nn.Linear(64, CLASSES), 0, bad

    def forward(self, x):
        self.calls += self.training
        x = x * math.nan if self.training and self.calls in self.bad else x
        return self.line(self.norm(x).flatten(1))


def test_a_bad_batch_moves_nothing(digits):
    torch.manual_seed(0)
    net = Spoilt({3})
    training = Training(
        net, batches(digits), None, TrainConfig(epochs=1, batch=32, log_steps=2, weights=Weights(clip=0))
    )
    rounds = training.rounds()
    next(rounds)
    with pytest.warns(UserWarning, match="1 of 2 steps"):
        found = next(rounds)
    assert found.skipped == 1
    assert math.isfinite(found.train_loss)
    assert all(value.isfinite().all() for value in net.state_dict().values())
    assert training.healthy
    assert next(rounds).skipped == 0


def test_too_many_in_a_row_end_it(digits):
    training = Training(
        Spoilt(set(range(4, 100))), batches(digits), None, TrainConfig(epochs=1, batch=32, log_steps=2, average=0.9)
    )
    seen = []

    def watched():
        for record in training.rounds():
            seen.append((record.number, training.healthy))  # noqa: PERF401 (it ends in an error)

    with pytest.warns(UserWarning, match="not finite"), pytest.raises(NotFiniteError, match=r"step 8; lower"):
        watched()
    assert seen == [(1, True), (2, False), (3, False)]
    assert all(value.isfinite().all() for value in training.result.state_dict().values())
