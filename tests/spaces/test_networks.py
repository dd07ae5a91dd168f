"""Discrete networks: what they compute, on any image size, in training and evaluation."""

from random import Random

import pytest
import torch
from torch import nn

from idarts.arch import Architecture, registry, sample
from idarts.errors import InputError
from idarts.spaces import SPACES, Skeleton, nas_bench_101, nas_bench_201, network
from idarts.spaces.darts.network import DartsNetwork
from idarts.spaces.operations import EDGE_OPERATIONS, FactorizedReduce, operation

TINY = {"depth": 1, "channels": 8, "classes": 5}
RANDOM = [
    ("nas-bench-201", None),
    ("darts", None),
    ("nas-bench-101", None),
    ("nas-bench-1shot1", "S1"),
    ("nas-bench-1shot1", "S2"),
    ("nas-bench-1shot1", "S3"),
]


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


@pytest.mark.parametrize(("space", "variant"), RANDOM)
@pytest.mark.parametrize(("size", "in_channels"), [(32, 3), (9, 1)])
def test_random_architectures_train_and_evaluate(space, variant, size, in_channels):
    random = Random(size)
    for _ in range(3):
        net = network(sample(space, random, variant), **TINY, in_channels=in_channels)
        images = torch.randn(2, in_channels, size, size)
        logits = net(images)
        assert logits.shape == (2, 5)
        logits.square().sum().backward()
        assert all(weights.grad is None or weights.grad.isfinite().all() for weights in net.parameters())
        net.eval()
        with torch.no_grad():
            assert torch.equal(net(images), net(images))


@pytest.mark.parametrize("name", registry.names())
def test_every_published_cell_makes_a_network(name):
    net = network(name, depth=3, channels=8, classes=5)
    assert net(torch.randn(2, 3, 16, 16)).shape == (2, 5)


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("size", [(6, 6), (7, 7), (6, 7)])
@pytest.mark.parametrize("name", EDGE_OPERATIONS)
def test_operations_keep_channels_and_halve_rounding_up(name, size, stride):
    images = torch.randn(2, 4, *size)
    result = operation(name, 4, stride)(images)
    assert result.shape == (2, 4, *(-(-side // stride) for side in size))
    bare = operation(name, 4, stride, affine=False)
    assert all(layer.weight is None for layer in bare.modules() if isinstance(layer, nn.BatchNorm2d))


def test_none_is_zero_also_where_the_input_is_not_finite():
    assert operation("none", 3)(torch.full((1, 3, 2, 2), float("nan"))).eq(0).all()


@pytest.mark.parametrize("size", [(6, 6), (5, 6), (6, 5), (5, 5)])
def test_factorized_reduce_sees_every_second_pixel_twice(size):
    """It is two strided 1×1 convolutions, the second one pixel further down and right, of 0 beyond the image."""
    layer = FactorizedReduce(3, 5).eval()
    images = torch.randn(2, 3, *size)
    positive = torch.zeros(2, 3, 6, 6)
    positive[:, :, : size[0], : size[1]] = images.relu()
    halves = [
        torch.nn.functional.conv2d(positive, layer.straight.weight, stride=2),
        torch.nn.functional.conv2d(positive[:, :, 1:, 1:], layer.shifted.weight, stride=2),
    ]
    torch.testing.assert_close(layer(images), layer.norm(torch.cat(halves, dim=1)))


def test_nas_bench_201_cells_add_up():
    """All skips: node 1 is x, node 2 is x + x, node 3 is x + x + 2x. All none: zero."""
    images = torch.randn(2, 8, 4, 4)
    skips = network(nas_bench_201.from_ops(["skip_connect"] * 6), **TINY)
    torch.testing.assert_close(skips.body[0](images), 4 * images)
    nothing = network(nas_bench_201.from_ops(["none"] * 6), **TINY)
    assert nothing.body[0](images).eq(0).all()
    via_zero = network(nas_bench_201.from_ops(["none"] * 5 + ["skip_connect"]), **TINY)
    assert via_zero.body[0](images).eq(0).all()


def test_darts_cells_add_two_edges_and_concatenate():
    cell = [("skip_connect", 0), ("max_pool_3x3", 1), ("skip_connect", 2), ("none", 0)]
    net = network(_darts(cell, [2, 3]), depth=1, channels=4, classes=3)
    net.eval()
    inner = next(iter(net.cells))
    before, previous = torch.randn(2, 12, 6, 6), torch.randn(2, 12, 6, 6)
    first, second = inner.preprocess0(before), inner.preprocess1(previous)
    expected = FactorizedReduce(8, 8)  # depth 1: the only cell is a reduction cell, so its skips halve the image
    expected.load_state_dict(inner.ops[0].state_dict())
    node = expected.eval()(first) + nn.functional.max_pool2d(second, 3, stride=2, padding=1)
    torch.testing.assert_close(inner(before, previous, 0.0), torch.cat([node, node], dim=1))


def _darts(pairs, concat) -> Architecture:
    from idarts.spaces import darts

    return darts.from_genotype(pairs, concat, pairs, concat)


def test_darts_reductions_stand_at_one_and_two_thirds():
    net = network("DARTS_V2", depth=20, channels=4)
    widths = [cell.preprocess1[1].out_channels for cell in net.cells]
    assert widths == [4] * 6 + [8] * 7 + [16] * 7
    reductions = [i for i, cell in enumerate(net.cells) if any(isinstance(op, nn.MaxPool2d) for op in cell.ops)]
    assert reductions == [6, 13]


def test_imagenet_stem_shrinks_eightfold_before_the_first_cell():
    net = network("DARTS_V2", "imagenet", depth=3, channels=8, classes=7)
    before, previous = net.stem(torch.randn(1, 3, 64, 64))
    assert (before.shape[2:], previous.shape[2:]) == ((16, 16), (8, 8))
    assert net(torch.randn(2, 3, 64, 64)).shape == (2, 7)


@pytest.mark.parametrize(
    ("skeleton", "size"), [("cifar", 32), ("cifar", 40), ("cifar", 8), ("imagenet", 224), ("imagenet", 64)]
)
def test_auxiliary_logits_come_only_in_training(skeleton, size):
    net = network("DARTS_V2", skeleton, depth=3, channels=4, classes=5, auxiliary=True)
    images = torch.randn(2, 3, size, size)
    logits, extra = net(images)
    assert logits.shape == extra.shape == (2, 5)
    assert net.eval()(images).shape == (2, 5)


def test_drop_path_drops_samples_only_in_training_and_keeps_the_mean():
    net = network("DARTS_V2", depth=3, channels=4, drop_path=0.5)
    assert isinstance(net, DartsNetwork)
    images = torch.randn(4, 3, 16, 16)
    assert not torch.equal(net(images), net(images))
    net.drop_path = 0.0
    assert torch.equal(net(images), net(images))
    net.eval()
    reference = net(images)
    net.drop_path = 0.9
    assert torch.equal(net(images), reference)
    from idarts.spaces.darts.network import _drop

    dropped = _drop(torch.ones(2000, 2, 3, 3), 0.25)
    assert sorted(dropped.unique().tolist()) == pytest.approx([0, 4 / 3])
    assert dropped.flatten(1).std(dim=1).eq(0).all()  # a sample is dropped as a whole
    assert float(dropped.mean()) == pytest.approx(1, abs=0.05)


def test_nas_bench_101_cells_project_truncate_and_concatenate():
    ops = ["maxpool3x3", "maxpool3x3", "maxpool3x3"]
    matrix = [[0, 1, 1, 0, 1], [0, 0, 0, 1, 0], [0, 0, 0, 0, 1], [0, 0, 0, 0, 1], [0, 0, 0, 0, 0]]
    net = network(nas_bench_101.from_matrix(matrix, ops), depth=1, channels=9)
    cell, images = net.body[0].eval(), torch.randn(2, 9, 6, 6)
    assert cell.channels == [9, 4, 5, 4, 9]
    first = cell.ops[0](cell.projections["1"](images))
    second = cell.ops[1](cell.projections["2"](images))
    joined = torch.cat([second, cell.ops[2](first)], dim=1)
    torch.testing.assert_close(cell(images), joined + cell.projections["4"](images))


def test_nas_bench_101_uses_tensorflow_s_momentum_the_way_pytorch_counts_it():
    norms = [layer for layer in network("NB101_best_cifar10", **TINY).modules() if isinstance(layer, nn.BatchNorm2d)]
    assert {(norm.momentum, norm.eps) for norm in norms} == {(0.003, 1e-5)}


def test_a_1shot1_network_is_that_of_its_nas_bench_101_cell():
    from idarts.spaces import nas_bench_1shot1

    found = sample("nas-bench-1shot1", Random(4), "S1")
    torch.manual_seed(1)
    one = network(found, **TINY)
    torch.manual_seed(1)
    other = network(nas_bench_1shot1.to_nas_bench_101(found), **TINY)
    images = torch.randn(2, 3, 16, 16)
    assert torch.equal(one(images), other(images))


def test_networks_can_be_copied_and_their_weights_saved():
    import copy

    net = network("DARTS_V2", depth=2, channels=4).eval()
    other = network("DARTS_V2", depth=2, channels=4).eval()
    other.load_state_dict(net.state_dict())
    images = torch.randn(1, 3, 16, 16)
    assert torch.equal(other(images), net(images))
    assert torch.equal(copy.deepcopy(net)(images), net(images))


def test_a_skeleton_can_be_given_whole():
    skeleton = Skeleton(depth=2, channels=6, classes=4, image=32)
    assert network("NB201_all_skip", skeleton)(torch.randn(1, 3, 8, 8)).shape == (1, 4)
    assert network("NB201_all_skip", skeleton, classes=9)(torch.randn(1, 3, 8, 8)).shape == (1, 9)
    assert [name for name in SPACES if not SPACES[name].skeletons] == ["choice"]


@pytest.mark.parametrize(
    ("what", "settings", "message"),
    [
        ("DARTS_V2", {"skeleton": "mnist"}, "unknown skeleton 'mnist' of darts, expected one of cifar, imagenet"),
        ("DARTS_V2", {"depth": 0}, "depth is 0"),
        ("DARTS_V2", {"channels": 1.5}, "channels is 1.5"),
        ("DARTS_V2", {"classes": True}, "classes is True"),
        ("DARTS_V2", {"in_channels": 0}, "in_channels is 0"),
        ("DARTS_V2", {"drop_path": 1.0}, "drop_path is 1.0, expected a probability below 1"),
        ("NB201_all_skip", {"auxiliary": True}, "a network of nas-bench-201 has no auxiliary head"),
        ("NB101_best_cifar10", {"drop_path": 0.1}, "a network of nas-bench-101 has no drop-path"),
        (
            {"schema": 1, "space": "choice", "choices": {"a": "b"}},
            {},
            "the space choice has no 'network' (use derive(model, architecture))",
        ),
        ("DARTS_V9", {}, "did you mean DARTS_V2"),
    ],
)
def test_bad_settings(what, settings, message):
    with pytest.raises(InputError) as caught:
        network(what, **settings)
    assert message in str(caught.value)


def test_unknown_operations_and_too_few_channels():
    from idarts.spaces.nas_bench_101.network import vertex_operation

    with pytest.raises(InputError, match="unknown operation 'conv9'"):
        operation("conv9", 4)
    with pytest.raises(InputError, match="unknown operation 'conv9'"):
        vertex_operation("conv9", 4)
    wide = [[0, 1, 1, 0], [0, 0, 0, 1], [0, 0, 0, 1], [0, 0, 0, 0]]
    with pytest.raises(InputError, match="1 channels are too few for a cell with 2 vertices before its output"):
        network(nas_bench_101.from_matrix(wide, ["maxpool3x3"] * 2), channels=1)
