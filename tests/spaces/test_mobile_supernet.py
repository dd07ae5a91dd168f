"""The mobile supernet is the plain one: values, gradients in w and α, Hessian-vector products, running statistics."""

from random import Random

import pytest
import torch
from plain_mobile import PlainMobile, part
from test_fused_supernets import Convolutions
from torch.nn.functional import cross_entropy

from idarts import InputError
from idarts.arch import parse
from idarts.hypergrad import lift
from idarts.hypergrad.products import ExactProducts
from idarts.layers import Mixture
from idarts.searching.relaxations.partial_channels import PartialChannels
from idarts.spaces import Skeleton
from idarts.spaces.mobile.chain import CHAIN, SHAPES
from idarts.spaces.mobile.supernet import MobileSupernet

SMALL = Skeleton(depth=2, channels=4, classes=5, image=9)


def chain(seed, depth=2):
    random = Random(seed)
    return CHAIN.from_blocks(
        [[random.choice(CHAIN.further if block else CHAIN.first) for block in range(depth)] for _ in range(5)]
    )


class Pair:
    def __init__(self, dtype=torch.float64, skeleton=SMALL):
        torch.manual_seed(0)
        self.fused = MobileSupernet(skeleton).to(dtype)
        for alpha in self.fused.alpha.values():
            torch.nn.init.normal_(alpha)
        self.plain = PlainMobile(self.fused)
        self.batch = torch.randn(3, 3, skeleton.image, skeleton.image, dtype=dtype), torch.randint(5, (3,))


@pytest.fixture
def pair():
    return Pair()


def close(one, other, tolerance=1e-9):
    torch.testing.assert_close(one, other, rtol=tolerance, atol=tolerance)


def test_outputs_and_running_statistics(pair):
    for training in (True, False, True):
        stem = {key: value.clone() for key, value in pair.fused.state_dict().items()}
        fused = pair.fused.train(training)(pair.batch[0])
        after = pair.fused.state_dict()
        shared = {key: value for key, value in stem.items() if key.startswith(("stem", "head"))}
        pair.fused.load_state_dict({**after, **shared})  # both nets have these modules: they must not run twice
        close(fused, pair.plain.train(training)(pair.batch[0]))
    for block, statistics in zip(pair.fused.blocks, pair.plain.statistics, strict=True):
        for option in SHAPES:
            expected = part(block, option, "running_mean") | part(block, option, "running_var")
            assert expected.keys() == statistics[option].keys()
            for key, value in statistics[option].items():
                close(expected[key], value)


def test_gradients_in_weights_and_alpha(pair):
    parameters = dict(pair.fused.named_parameters())
    grads = [
        torch.autograd.grad(cross_entropy(net(pair.batch[0]), pair.batch[1]), list(parameters.values()))
        for net in (pair.fused, pair.plain)
    ]
    assert all(grad.any() for grad in grads[0])
    for fused, plain in zip(*grads, strict=True):
        close(fused, plain)


def test_hessian_vector_and_mixed_products(pair):
    w, a = pair.fused.weight_parameters(), pair.fused.architecture_parameters()
    v, both = [torch.randn_like(weight) for weight in w], []
    for net in (pair.fused, pair.plain):
        products = ExactProducts(lift(net, cross_entropy, pair.batch, w, a), w, a)
        both.append(products.joint(products.layout.flatten(v)))
    (hessian, mixed), (plain_hessian, plain_mixed) = both
    assert hessian.norm() > 0.1
    close(hessian, plain_hessian, 1e-8)
    for fused, plain in zip(mixed, plain_mixed, strict=True):
        close(fused, plain, 1e-8)


def test_float32_on_one_block_a_stage():
    pair = Pair(torch.float32, Skeleton(depth=1, channels=8, classes=5, image=8))
    assert list(pair.fused.alpha) == ["first"]
    close(pair.fused(pair.batch[0]), pair.plain(pair.batch[0]), 1e-4)


@pytest.mark.parametrize("seed", range(6))
def test_any_options_that_run_with_any_weights(pair, seed):
    """Weights need not sum to one, and what does not run adds nothing: the residual, too, is weighted."""
    random, mixtures, weights = Random(seed), {}, {}
    for group, alpha in pair.fused.alpha.items():
        values = torch.randn(alpha.shape, dtype=alpha.dtype, requires_grad=True)
        most = alpha.shape[1] - 1
        active = [random.sample(range(alpha.shape[1]), random.randint(1, most)) for _ in alpha]
        running = tuple(tuple(column in row for column in range(alpha.shape[1])) for row in active)
        mixtures[group] = Mixture(values, running)
        weights[group] = [
            [w if on else None for w, on in zip(*row, strict=True)] for row in zip(values, running, strict=True)
        ]
    outputs = pair.fused(pair.batch[0], mixtures=mixtures), pair.plain(pair.batch[0], weights)
    close(*outputs)
    inputs = [mixture.weights for mixture in mixtures.values()]
    for fused, plain in zip(*(torch.autograd.grad(out.square().sum(), inputs) for out in outputs), strict=True):
        close(fused, plain)


@pytest.mark.parametrize("seed", range(4))
def test_a_path_computes_its_own_channels_only(pair, seed):
    architecture = chain(seed)
    with Convolutions() as counted:
        pair.fused(pair.batch[0], mixtures=pair.fused.path(architecture))
    expected = 3 * 4 + 6 * 40  # stem and head
    options = [option for stage in CHAIN.to_blocks(architecture) for option in stage]
    for block, option in zip(pair.fused.blocks, options, strict=True):
        if option in SHAPES:
            expected += 2 * SHAPES[option][1] * block.place.inputs + block.place.outputs
    assert counted.channels == expected


def test_alpha_stands_for_the_path_that_it_prefers(pair):
    for seed in range(10):
        architecture = chain(seed)
        with torch.no_grad():
            for group, mixture in pair.fused.path(architecture).items():
                pair.fused.alpha[group].copy_(mixture.weights)
        assert pair.fused.architecture() == architecture


def test_what_is_refused(pair):
    with pytest.raises(InputError, match="an architecture of darts is not a chain of mobile"):
        pair.fused.path(parse("DARTS_V2"))
    with pytest.raises(InputError, match="the architecture has 3 blocks in a stage, and the supernet 2; build"):
        pair.fused.path(chain(0, depth=3))
    with pytest.raises(InputError, match="partial channels need a cell with operations on edges"):
        MobileSupernet(SMALL, relaxation=PartialChannels(2))
    with pytest.raises(InputError, match="images of 2×2 pixels"):
        MobileSupernet(SMALL.changed(image=2))
