"""NAS-Bench-1Shot1's fused supernet is the plain one, in every order; its paths, architectures and bad input."""

from random import Random

import pytest
import torch
from conversion import to_plain
from plain_1shot1 import Plain1Shot1, place, to_fused
from torch.nn.functional import cross_entropy
from torch.utils._python_dispatch import TorchDispatchMode

from idarts.arch import parse, sample
from idarts.errors import InputError
from idarts.hypergrad import Neumann, hypergradient, lift
from idarts.hypergrad.products import ExactProducts
from idarts.layers.mixture import Mixture, multi_hot
from idarts.spaces import Skeleton, nas_bench_1shot1
from idarts.spaces.nas_bench_1shot1.cells import COLUMNS, PARENTS
from idarts.spaces.nas_bench_1shot1.supernet import ConvNormReLU, NasBench1Shot1Supernet

SKELETON = Skeleton(depth=2, channels=11, classes=5, image=9)  # 11 channels divide by no number of nodes


class Pair:
    """Both supernets with the same weights and a random α, and a batch."""

    def __init__(self, variant, dtype=torch.float64):
        torch.manual_seed(0)
        self.fused, self.plain = (
            NasBench1Shot1Supernet(variant, SKELETON).to(dtype),
            Plain1Shot1(variant, SKELETON).to(dtype),
        )
        for alpha in self.fused.alpha.values():
            torch.nn.init.normal_(alpha)
        self.plain.load_state_dict(to_plain(self.fused.state_dict(), self.plain.state_dict(), place))
        self.batch = torch.randn(4, 3, 9, 9, dtype=dtype), torch.randint(5, (4,))


@pytest.fixture(params=PARENTS)
def pair(request):
    return Pair(request.param)


def close(fused, plain, tolerance=1e-9):
    assert fused.keys() == plain.keys()
    for key, value in plain.items():
        torch.testing.assert_close(fused[key], value, rtol=tolerance, atol=tolerance, msg=lambda m, k=key: f"{k}: {m}")


def gradients(net, batch):
    loss = cross_entropy(net(batch[0]), batch[1])
    names, parameters = zip(*net.named_parameters(), strict=True)
    return {"loss": loss, **dict(zip(names, torch.autograd.grad(loss, parameters), strict=True))}


def test_weights_convert_both_ways(pair):
    state = pair.fused.state_dict()
    back = to_fused(to_plain(state, pair.plain.state_dict(), place))
    assert state.keys() == back.keys()
    assert all(torch.equal(state[key], back[key]) for key in state)


def test_outputs_and_running_statistics(pair):
    for training in (True, False, True):
        outputs = [net.train(training)(pair.batch[0]) for net in (pair.fused, pair.plain)]
        torch.testing.assert_close(*outputs, rtol=1e-9, atol=1e-9)
    close(pair.fused.state_dict(), to_fused(pair.plain.state_dict()))


@pytest.mark.parametrize("training", [True, False])
def test_gradients_in_w_and_alpha(pair, training):
    found = [gradients(net.train(training), pair.batch) for net in (pair.fused, pair.plain)]
    close(found[0], to_fused(found[1]))


def test_float32(pair):
    found = [gradients(net.float(), (pair.batch[0].float(), pair.batch[1])) for net in (pair.fused, pair.plain)]
    plain = to_fused(found[1])
    error = sum((found[0][key] - plain[key]).square().sum() for key in plain).sqrt()
    assert error < 1e-4 * sum(plain[key].square().sum() for key in plain).sqrt()


def products(net, batch, v):
    """H·v and v·∂²/∂w∂α, by the parameters' names."""
    parameters = dict(net.named_parameters())
    w, a = tuple(parameters[name] for name in v), tuple(net.alpha.values())
    at = ExactProducts(lift(net, cross_entropy, batch, w, a), w, a)
    hessian, mixed = at.joint(at.layout.flatten(list(v.values())))
    return dict(zip(v, at.layout.unflatten(hessian), strict=True)) | dict(zip(net.alpha, mixed, strict=True))


def test_hessian_vector_and_mixed_products(pair):
    torch.manual_seed(1)
    along = {name: torch.randn_like(p) for name, p in pair.plain.named_parameters() if not name.startswith("alpha")}
    plain = to_fused(products(pair.plain, pair.batch, along))
    close(products(pair.fused, pair.batch, to_fused(along)), plain)


class Convolved(TorchDispatchMode):
    """Counts convolutions and their output channels: the latter do not change when convolutions are fused."""

    def __init__(self):
        super().__init__()
        self.calls = self.channels = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func in (torch.ops.aten.convolution.default, torch.ops.aten.mkldnn_convolution.default):
            self.calls, self.channels = self.calls + 1, self.channels + args[1].shape[0]
        return func(*args, **(kwargs or {}))


def needed_channels(architecture, skeleton):
    """What the convolutions of one architecture give out: projections where the input is read, and operations."""
    parents = nas_bench_1shot1.parents_of(architecture)
    n = len(parents) - 1
    needed = {n + 1}
    for node in range(n + 1, 0, -1):
        needed |= set(parents[node - 1]) if node in needed else set()
    nodes = needed - {0, n + 1}
    slots = sum(0 in parents[node - 1] for node in nodes) + n * (0 in parents[-1])
    slots += sum("conv" in architecture.cell.ops[node - 1] for node in nodes)
    return skeleton.channels + slots * sum(skeleton.depth * (skeleton.channels * 2**stack // n) for stack in range(3))


@pytest.mark.parametrize("training", [True, False])
def test_a_single_path_runs_only_its_operations_and_equals_the_plain_net(pair, training):
    fused, plain = pair.fused.train(training), pair.plain.train(training)
    fused(pair.batch[0])  # statistics that are not those of the beginning
    for seed in range(6):
        architecture = sample("nas-bench-1shot1", Random(seed), fused.variant)
        plain.load_state_dict(to_plain(fused.state_dict(), plain.state_dict(), place))
        path = fused.path(architecture)
        with Convolved() as counted:
            output = fused(pair.batch[0], mixtures=path)
        expected = plain(pair.batch[0], {name: mixture.weights for name, mixture in path.items()})
        torch.testing.assert_close(output, expected, rtol=1e-9, atol=1e-9)
        assert counted.channels == needed_channels(architecture, SKELETON)


def test_all_paths_together_are_fused():
    """A cell has one convolution for all projections, and two for each node."""
    net = NasBench1Shot1Supernet("S3", SKELETON)
    with Convolved() as counted:
        net(torch.zeros(2, 3, 9, 9))
    assert counted.calls == 1 + 6 * (1 + 2 * 5)


def test_a_sample_keeps_the_gradient_of_its_weights():
    """One option of each row runs, with a weight that depends on α, as single-path methods have it."""
    torch.manual_seed(0)

    def sampled(alpha):
        weights = alpha.softmax(1)
        first = multi_hot([[0]] * len(alpha), alpha.shape[1], alpha)
        return Mixture(first.weights + weights - weights.detach(), first.active)

    net = NasBench1Shot1Supernet("S1", SKELETON, relaxation=sampled)
    net(torch.randn(2, 3, 9, 9)).square().sum().backward()
    assert net.alpha["output"].grad.abs().sum() > 0  # the input alone goes to the output
    assert all(alpha.grad is None or not alpha.grad.any() for name, alpha in net.alpha.items() if name != "output")
    assert torch.isfinite(net(torch.randn(2, 3, 9, 9))).all()


def test_nothing_at_all_may_run():
    net = NasBench1Shot1Supernet("S1", SKELETON).eval()
    nothing = {name: multi_hot([[]] * len(alpha), alpha.shape[1], alpha) for name, alpha in net.alpha.items()}
    torch.testing.assert_close(net(torch.randn(2, 3, 9, 9), mixtures=nothing), net.classifier.bias.expand(2, -1))
    dark = nothing | {"output": multi_hot([[4]], 5, net.alpha["output"])}  # a node without inputs and operations
    torch.testing.assert_close(net(torch.randn(2, 3, 9, 9), mixtures=dark), net.classifier.bias.expand(2, -1))


def test_known_alphas_give_the_known_architecture():
    net = NasBench1Shot1Supernet("S2", SKELETON)
    with torch.no_grad():
        net.alpha["ops"].copy_(torch.tensor([[1.0, 0, 0], [0, 1, 0], [0, 0, 1], [2, 3, 1]]))
        net.alpha["inputs_2"].copy_(torch.tensor([[0.0, 1]]))
        net.alpha["inputs_3"].copy_(torch.tensor([[1.0, -1, 0]]))
        net.alpha["inputs_4"].copy_(torch.tensor([[5.0, 5, 5, 5]]))  # equal: the first two
        net.alpha["output"].copy_(torch.tensor([[0.0, 4, 0, 3, 2]]))
    architecture = net.architecture()
    pool, conv3, conv1 = COLUMNS
    assert architecture.cell.ops == (pool, conv3, conv1, conv3)
    assert nas_bench_1shot1.parents_of(architecture) == [[0], [1], [0, 2], [0, 1], [1, 3, 4]]


@pytest.mark.parametrize("variant", PARENTS)
def test_architectures_and_paths_come_round(variant):
    net = NasBench1Shot1Supernet(variant, SKELETON)
    for seed in range(20):
        architecture = sample("nas-bench-1shot1", Random(seed), variant)
        with torch.no_grad():
            for name, mixture in net.path(architecture).items():
                net.alpha[name].copy_(3 * mixture.weights + 0.1 * torch.rand_like(mixture.weights))
        assert net.architecture() == architecture
        torch.nn.init.normal_(net.alpha["output"])
        nas_bench_1shot1.to_nas_bench_101(net.architecture())  # valid there, whatever α is


def test_alpha_is_in_the_state_and_apart_from_the_weights():
    net = NasBench1Shot1Supernet("S1", SKELETON)
    assert {
        f"alpha.{name}" for name in ("ops", "inputs_2", "inputs_3", "inputs_4", "output")
    } <= net.state_dict().keys()
    outer, inner = net.architecture_parameters(), net.weight_parameters()
    assert len(outer) == 5
    assert {id(p) for p in (*outer, *inner)} == {id(p) for p in net.parameters()}


@pytest.mark.filterwarnings("ignore::idarts.errors.DivergenceWarning")
def test_hypergradients_equal_those_of_the_plain_net_and_change_nothing(pair):
    estimates = []
    for net in (pair.fused, pair.plain):
        before = {key: value.clone() for key, value in net.state_dict().items()}
        a = tuple(net.alpha.values())
        w = tuple(p for name, p in net.named_parameters() if not name.startswith("alpha"))
        loss = lift(net, cross_entropy, pair.batch, w, a)
        estimates.append(hypergradient(loss, loss, w, a, Neumann(2, 0.01)))
        assert all(torch.equal(before[key], value) for key, value in net.state_dict().items())
    for one, other in zip(*(estimate.grads for estimate in estimates), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize(
    ("variant", "changes", "message"),
    [
        ("S4", {}, "unknown variant 'S4', expected one of S1, S2, S3"),
        (None, {}, "unknown variant None, expected one of S1, S2, S3"),
        ("S3", {"channels": 4}, "4 channels, expected at least 5: one for each node in a cell of S3"),
        ("S1", {"image": 2}, "images of 2×2 pixels, expected at least 3×3"),
    ],
)
def test_a_net_that_cannot_be(variant, changes, message):
    with pytest.raises(InputError, match=message):
        NasBench1Shot1Supernet(variant, SKELETON.changed(**changes))


def test_inputs_that_cannot_be():
    net = NasBench1Shot1Supernet("S1", Skeleton(depth=1, channels=4, classes=2, image=9), in_channels=1)
    assert net(torch.zeros(2, 1, 3, 3)).shape == (2, 2)
    with pytest.raises(InputError, match="images of 2×8 pixels, expected at least 3×3: they are halved twice"):
        net(torch.zeros(1, 1, 2, 8))
    with pytest.raises(InputError, match="of darts is not a path of the supernet of nas-bench-1shot1 S1"):
        net.path(parse("DARTS_V2"))
    with pytest.raises(InputError, match="of nas-bench-1shot1 S3 is not a path of the supernet of nas-bench-1shot1 S1"):
        net.path(sample("nas-bench-1shot1", Random(0), "S3"))


def test_a_part_of_the_projections_updates_its_own_statistics():
    torch.manual_seed(0)
    whole, part, x = ConvNormReLU(2, 6, 1), ConvNormReLU(2, 6, 1), torch.randn(4, 2, 3, 3)
    part.load_state_dict(whole.state_dict())
    torch.testing.assert_close(part(x, slice(2, 4)), whole(x)[:, 2:4])
    for name, untouched in (("running_mean", 0.0), ("running_var", 1.0)):
        ours, theirs = getattr(part.norm, name), getattr(whole.norm, name)
        torch.testing.assert_close(ours[2:4], theirs[2:4])
        assert ours[[0, 1, 4, 5]].eq(untouched).all()
