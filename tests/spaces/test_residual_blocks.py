"""The space of blocks: counts by closed formulas, the supernet against plain networks with its weights, prices."""

from random import Random

import pytest
import torch
from counts import counted_parameters

from idarts import InputError
from idarts.arch import SPACES, as_text, mutate, parse, sample
from idarts.layers.mixture import Mixture
from idarts.searching.cost import CostTarget
from idarts.searching.settings import Cost
from idarts.spaces import Skeleton, count, measure_latency, network
from idarts.spaces.prices import prices
from idarts.spaces.residual_blocks.chain import CHAIN, SHAPES

BLOCKS = SPACES["residual-blocks"]
SMALL = Skeleton(depth=2, channels=4, classes=7, image=9)  # an odd side: halves are rounded up
OPTIONS = tuple(SHAPES)


def supernet(depth=2):
    torch.manual_seed(0)
    net = BLOCKS.supernet(SMALL.changed(depth=depth), in_channels=2)
    for buffer in net.buffers():  # statistics that are not those of a new net
        if buffer.is_floating_point():
            torch.nn.init.uniform_(buffer, 0.5, 1.5)
    return net.double()


def parameters(architecture, skeleton, in_channels=3):
    """The closed formula: convolutions, and two for each channel of a BatchNorm."""
    c = skeleton.channels
    total, inputs = 9 * in_channels * c + 2 * c, c
    for stage, options in enumerate(CHAIN.to_blocks(architecture)):
        outputs = c * 2**stage
        for block, option in enumerate(options):
            if block == 0 and stage:
                total += inputs * outputs + 2 * outputs  # the shortcut
            if option != "skip":
                kind, k = SHAPES[option]
                total += {
                    "conv": k * k * outputs * (inputs + outputs) + 4 * outputs,
                    "sep": k * k * (inputs + outputs) + outputs * (inputs + outputs) + 4 * outputs,
                    "inv": 2 * inputs * (inputs + 2 + k * k + 2 + outputs) + 2 * outputs,
                }[kind]
            inputs = outputs
    return total + 2 * inputs + (inputs + 1) * skeleton.classes


@pytest.mark.parametrize("skeleton", [SMALL, BLOCKS.skeletons["cifar"]])
def test_parameters_by_the_closed_formula_and_multiply_adds_by_torch(skeleton):
    for seed in range(3):
        architecture = sample("residual-blocks", Random(seed))
        assert counted_parameters(architecture, skeleton) == parameters(architecture, skeleton)


def test_the_fixed_chain_is_a_residual_network():
    """Its blocks are ResNet's: two 3×3 convolutions and a sum."""
    fixed = BLOCKS.fixed()
    assert as_text(fixed) == "residual-blocks:conv3-conv3+conv3-conv3+conv3-conv3"
    convolutions = [m for m in network(fixed, SMALL).blocks.modules() if isinstance(m, torch.nn.Conv2d)]
    assert [m.kernel_size for m in convolutions].count((3, 3)) == 12
    assert [m.kernel_size for m in convolutions].count((1, 1)) == 2  # the shortcuts that widen


def with_weights_of(net, architecture):
    """The plain network of an architecture, with the weights of its path in the supernet."""
    plain = network(architecture, SMALL, in_channels=2).double()
    blocks, own = iter(plain.blocks), net.state_dict()
    taken = {name: own[name] for name in plain.state_dict() if not name.startswith("blocks.")}
    options = [option for stage in CHAIN.to_blocks(architecture) for option in stage]
    for mixed, option in zip(net.blocks, options, strict=True):
        if option != "skip":
            block = next(blocks)
            block.shortcut.load_state_dict(mixed.shortcut.state_dict())
            missing = block.layers.load_state_dict(mixed.layers[option].state_dict(), strict=False).missing_keys
            assert len(missing) == 2  # weight 1 and bias 0 of the last BatchNorm
    plain.load_state_dict(taken, strict=False)
    return plain


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("text", ["conv3-skip+sep3-inv5+inv3-inv3", "inv5-sep5+conv3-skip+sep3-conv3"])
def test_a_path_is_the_network_with_the_same_weights(text, training):
    net, architecture, x = supernet(), parse(f"residual-blocks:{text}"), torch.randn(3, 2, 9, 9).double()
    plain = with_weights_of(net, architecture).train(training)
    torch.testing.assert_close(net.train(training)(x, mixtures=net.path(architecture)), plain(x))


def test_a_mixture_is_the_weighted_sum_of_what_the_options_add():
    net, x = supernet().eval(), torch.randn(2, 8, 5, 5).double()
    block, weights = net.blocks[3], torch.tensor([[0.1, 0.2, 0.05, 0.3, 0.15, 0.2]]).double()  # stage 2, block 2
    expected = x + sum(p * block.layers[option](x) for p, option in zip(weights[0], OPTIONS, strict=False))
    torch.testing.assert_close(block(x, Mixture(weights), 0), expected)


def test_alpha_reads_back_and_gets_gradients_of_every_option():
    net = supernet()
    for seed in range(20):
        architecture = sample("residual-blocks", Random(seed))
        for name, mixture in net.path(architecture).items():
            net.alpha[name].data = mixture.weights.clone()
        assert net.architecture() == architecture
    net(torch.randn(4, 2, 9, 9).double()).square().sum().backward()
    assert all((alpha.grad != 0).all() for alpha in net.alpha.values())


def test_a_mutation_changes_one_block():
    start = parse("residual-blocks:conv3-skip+sep3-inv5+inv3-inv3")
    reached = {as_text(mutate(start, Random(seed))) for seed in range(400)}
    assert len(reached) == 3 * 4 + 3 * 5


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("conv3+conv3", "the blocks of its 2 stages are 1, 1, expected 3 stages with the same number of blocks"),
        ("skip+conv3+conv3", r"stage1.block1: it is 'skip' \(the first block of a stage changes the shape\)"),
        ("conv5+conv3+conv3", "stage1.block1: it is 'conv5', expected one of conv3, sep3, sep5, inv3, inv5"),
    ],
)
def test_wrong_texts_are_one_line(text, message):
    with pytest.raises(InputError, match=message):
        parse(f"residual-blocks:{text}")


@pytest.mark.parametrize("kind", ["parameters", "multiply_adds"])
def test_prices_sum_to_what_is_counted(kind):
    net = supernet(depth=2)
    limit = CostTarget(net, prices(net, kind), Cost(kind, target=1.0))
    for seed in range(5):
        architecture = sample("residual-blocks", Random(seed))
        counted = count(architecture)
        exact = counted.params if kind == "parameters" else counted.multiply_adds["conv+fc"]
        assert limit.cost(architecture) == limit.prices.whole(architecture) == exact


def test_latency_is_measured_for_every_option():
    table = measure_latency("residual-blocks", SMALL, seconds=0)
    assert [len(row) for row in table["first"]] == [5] * 3
    assert all(row[-1] == 0 and min(row[:-1]) > 0 for row in table["further"])
