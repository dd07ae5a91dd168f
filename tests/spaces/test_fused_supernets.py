"""Fused supernets are the plain ones: values, gradients in w and α, Hessian-vector products, running statistics."""

from functools import partial
from random import Random

import plain_201
import plain_darts
import pytest
import torch
from conversion import to_fused, to_plain
from torch.nn.functional import cross_entropy
from torch.utils._python_dispatch import TorchDispatchMode

from idarts import InputError
from idarts.arch import parse, sample
from idarts.hypergrad import Neumann, hypergradient, lift
from idarts.hypergrad.products import ExactProducts
from idarts.spaces import Mixture, Skeleton, darts
from idarts.spaces.darts.supernet import DartsSupernet
from idarts.spaces.nas_bench_201.supernet import NasBench201Supernet

SPACES = {
    "nas-bench-201": (NasBench201Supernet, plain_201.Plain201, plain_201.place, Skeleton(1, 4, 5, 16)),
    "darts": (DartsSupernet, plain_darts.PlainDarts, plain_darts.place, Skeleton(4, 4, 5, 16)),
    "darts-imagenet": (DartsSupernet, plain_darts.PlainDarts, plain_darts.place, Skeleton(3, 4, 5, 32, large=True)),
}
for _name, _ops in darts.VARIANTS.items():
    _parts = (partial(part, ops=_ops) for part in (DartsSupernet, plain_darts.PlainDarts, plain_darts.place))
    SPACES[_name] = (*_parts, Skeleton(4, 4, 5, 16))


class Pair:
    """Both supernets with the same weights, and a batch."""

    def __init__(self, space, dtype=torch.float64, size=None):
        fused, plain, self.place, skeleton = SPACES[space]
        torch.manual_seed(0)
        self.fused, self.plain = fused(skeleton).to(dtype), plain(skeleton).to(dtype)
        for alpha in self.fused.alpha.values():
            torch.nn.init.normal_(alpha)
        self.plain.load_state_dict(to_plain(self.fused.state_dict(), self.plain.state_dict(), self.place))
        sides = size or (skeleton.image, skeleton.image)
        self.batch = torch.randn(3, 3, *sides, dtype=dtype), torch.randint(5, (3,))

    def gradients(self, net):
        torch.manual_seed(2)  # a space may have noise, of which both must see the same
        loss = cross_entropy(net(self.batch[0]), self.batch[1])
        names, parameters = zip(*net.named_parameters(), strict=True)
        return loss, dict(zip(names, torch.autograd.grad(loss, parameters), strict=True))


@pytest.fixture(params=SPACES)
def pair(request):
    return Pair(request.param)


def close(fused, plain, tolerance=1e-9):
    assert fused.keys() >= plain.keys()
    for key, value in plain.items():
        torch.testing.assert_close(fused[key], value, rtol=tolerance, atol=tolerance, msg=lambda m, k=key: f"{k}: {m}")


def test_weights_convert_both_ways(pair):
    state = pair.fused.state_dict()
    back = to_fused(to_plain(state, pair.plain.state_dict(), pair.place), pair.place)
    assert state.keys() == back.keys()
    assert all(torch.equal(state[key], back[key]) for key in state)


def test_outputs_and_running_statistics(pair):
    for training in (True, False, True):
        outputs = []
        for net in (pair.fused, pair.plain):
            torch.manual_seed(2)
            outputs.append(net.train(training)(pair.batch[0]))
        torch.testing.assert_close(*outputs, rtol=1e-9, atol=1e-9)
    statistics = {k: v for k, v in pair.plain.state_dict().items() if "running" in k}
    close(to_plain(pair.fused.state_dict(), statistics, pair.place), statistics)


def test_gradients(pair):
    (loss, fused), (expected, plain) = pair.gradients(pair.fused), pair.gradients(pair.plain)
    torch.testing.assert_close(loss, expected)
    close(to_plain(fused, plain, pair.place), plain)


def test_hessian_vector_and_mixed_products(pair):
    torch.manual_seed(1)
    weights = {name: torch.randn_like(p) for name, p in pair.fused.named_parameters() if "alpha" not in name}
    like = {name: p for name, p in pair.plain.named_parameters() if "alpha" not in name}
    directions = to_plain(weights, like, pair.place)
    found = []
    for net, v in ((pair.fused, weights), (pair.plain, directions)):
        parameters = dict(net.named_parameters())
        w = tuple(parameters[name] for name in v)
        a = tuple(net.alpha.values())
        torch.manual_seed(2)
        products = ExactProducts(lift(net, cross_entropy, pair.batch, w, a), w, a)
        hessian, mixed = products.joint(products.layout.flatten(list(v.values())))
        found.append((dict(zip(v, products.layout.unflatten(hessian), strict=True)), mixed))
    (fused, fused_mixed), (plain, plain_mixed) = found
    close(to_plain(fused, plain, pair.place), plain, 1e-8)
    for one, other in zip(fused_mixed, plain_mixed, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize(
    ("space", "size"),
    [
        ("nas-bench-201", (11, 11)),
        ("darts", (11, 11)),
        ("darts", (11, 10)),
        ("darts-s2", (11, 10)),
        ("darts-s4", (11, 10)),
    ],
)
def test_float32_and_odd_images(space, size):
    pair = Pair(space, torch.float32, size)
    (loss, fused), (expected, plain) = pair.gradients(pair.fused), pair.gradients(pair.plain)
    torch.testing.assert_close(loss, expected)
    for name in pair.fused.alpha:
        torch.testing.assert_close(fused[f"alpha.{name}"], plain[f"alpha.{name}"], rtol=1e-3, atol=1e-5)


class Convolutions(TorchDispatchMode):
    """Counts convolutions, in output channels: what fusing does not change."""

    def __init__(self):
        super().__init__()
        self.channels = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func in (torch.ops.aten.convolution.default, torch.ops.aten.mkldnn_convolution.default):
            self.channels += args[1].shape[0]
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("space", ["nas-bench-201", "darts"])
def test_a_single_path_runs_its_operations_only_and_equals_the_plain_net(space):
    pair = Pair(space)
    for seed in range(5):
        architecture = sample(space, Random(seed))
        path = pair.fused.path(architecture)
        for name, mixture in path.items():  # the plain net by weights that a softmax makes one-hot
            with torch.no_grad():
                pair.plain.alpha[name].copy_(torch.where(mixture.weights > 0, 0.0, -1e9))
        pair.fused.eval()
        pair.plain.eval()
        with Convolutions() as counted:
            output = pair.fused(pair.batch[0], mixtures=path)
        if space == "nas-bench-201":
            torch.testing.assert_close(output, pair.plain(pair.batch[0]), rtol=1e-9, atol=1e-9)
            convolutions = sum((edge.op or "").startswith("nor_conv") for edge in architecture.cell.edges)
            assert counted.channels == 4 + (8 + 8 + 8) + (16 + 16 + 16) + convolutions * (4 + 8 + 16)
        with Convolutions() as everything:
            pair.fused(pair.batch[0])
        assert counted.channels < everything.channels


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_gradients_of_a_path_in_training_are_those_of_the_plain_net(dtype):
    pair = Pair("nas-bench-201", dtype)

    def plain(weights):
        x = pair.plain.stem(pair.batch[0])
        for block in pair.plain.body:
            x = block(x, weights) if isinstance(block, plain_201.PlainCell) else block(x)
        return pair.plain.classifier(torch.relu(pair.plain.norm(x)).mean(dim=(2, 3)))

    for seed in range(20):
        path = pair.fused.path(sample("nas-bench-201", Random(seed)))["cell"]
        weights = path.weights.clone().requires_grad_()
        logits = pair.fused(pair.batch[0], mixtures={"cell": Mixture(weights, path.active)}), plain(weights)
        grads = [torch.autograd.grad(cross_entropy(out, pair.batch[1]), weights)[0] for out in logits]
        ran = torch.tensor(path.active)  # what does not run has no gradient here
        tolerance = 1e-9 if dtype == torch.float64 else 1e-3
        torch.testing.assert_close(grads[0][ran], grads[1][ran], rtol=tolerance, atol=tolerance)


def test_a_darts_path_is_the_sum_of_its_operations():
    """Two edges enter each node with weight one; a softmax of two zeros would give a half."""
    pair = Pair("darts")
    architecture = sample("darts", Random(3))
    fused, plain = pair.fused.eval(), pair.plain.eval()
    path = fused.path(architecture)
    weights = {name: mixture.weights for name, mixture in path.items()}
    before, previous = plain.stem(pair.batch[0])
    for cell in plain.cells:
        before, previous = previous, cell(before, previous, weights["reduce" if cell.reduces else "normal"])
    expected = plain.classifier(previous.mean(dim=(2, 3)))
    torch.testing.assert_close(fused(pair.batch[0], mixtures=path), expected, rtol=1e-9, atol=1e-9)


def test_argmax_of_nas_bench_201_with_and_without_paths():
    net = SPACES["nas-bench-201"][0](Skeleton(1, 4, 5, 16))
    for seed in range(10):
        architecture = sample("nas-bench-201", Random(seed))
        with torch.no_grad():
            net.alpha["cell"].copy_(net.path(architecture)["cell"].weights)
        assert net.architecture() == architecture


@pytest.mark.parametrize("space", ["darts", *darts.VARIANTS])
def test_darts_keeps_two_edges_a_node_and_never_none(space):
    net = SPACES[space][0](Skeleton(3, 4, 5, 16))
    assert net.none == (0 if space in ("darts", "darts-s3") else None)
    for seed in range(10):
        architecture = sample(space, Random(seed))
        with torch.no_grad():
            for name, mixture in net.path(architecture).items():
                net.alpha[name].copy_(3 * mixture.weights)
                if net.none is not None:
                    net.alpha[name][:, net.none] = 10.0  # the largest of all
        assert net.architecture() == architecture


@pytest.mark.parametrize("space", ["nas-bench-201", "darts"])
def test_alpha_is_in_the_state_and_apart_from_the_weights(space):
    net = Pair(space).fused
    assert {f"alpha.{name}" for name in net.alpha} <= net.state_dict().keys()
    outer, inner = net.architecture_parameters(), net.weight_parameters()
    assert len(outer) + len(inner) == len(list(net.parameters()))
    assert not {id(p) for p in outer} & {id(p) for p in inner}


@pytest.mark.parametrize("space", ["nas-bench-201", "darts", "darts-s4"])
@pytest.mark.filterwarnings("ignore::idarts.errors.DivergenceWarning")
def test_hypergradients_leave_the_supernet_alone(space):
    pair = Pair(space, torch.float32)
    net = pair.fused
    before = {key: value.clone() for key, value in net.state_dict().items()}
    w, a = net.weight_parameters(), net.architecture_parameters()
    loss = lift(net, cross_entropy, pair.batch, w, a)
    random = torch.get_rng_state()
    estimate = hypergradient(loss, loss, w, a, Neumann(2, 0.01))
    assert torch.equal(torch.get_rng_state(), random)
    assert [g.shape for g in estimate.grads] == [p.shape for p in a]
    assert all(torch.equal(before[key], value) for key, value in net.state_dict().items())


def test_a_path_of_another_space_is_refused():
    net = NasBench201Supernet(Skeleton(1, 4, 5, 16))
    with pytest.raises(InputError, match="an architecture of darts is not a path"):
        net.path(parse("DARTS_V2"))
    with pytest.raises(InputError, match="which the supernet"):
        DartsSupernet(Skeleton(3, 4, 5, 16)).path(parse("NASNet-A"))
