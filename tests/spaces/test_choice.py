"""Choice: any module as a search space. What it computes, what is shared, single paths, states, derivatives."""

import copy
import io
import pickle
import threading

import pytest
import torch
from choice_models import Model, Scaled, activations, chosen
from torch import nn
from torch.nn.functional import mse_loss
from torch.utils._python_dispatch import TorchDispatchMode

from idarts.errors import InputError
from idarts.hypergrad import lift
from idarts.hypergrad.products import ExactProducts
from idarts.layers.mixture import Mixture, one_hot
from idarts.spaces import Choice, ChoiceSupernet, derive, tie
from idarts.spaces.supernet import ALPHA_SCALE


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


def test_a_choice_is_the_sum_of_its_branches_by_softmax():
    choice = activations()
    nn.init.normal_(choice.alpha)
    x, weights = torch.randn(5, 4), choice.alpha.softmax(1)[0]
    expected = weights[0] * x.relu() + weights[1] * x.tanh() + weights[2] * choice.branches["line"](x)
    torch.testing.assert_close(choice(x), expected)
    assert "alpha" in choice.state_dict()
    assert repr(choice).startswith("Choice(\n  'activation'")


def test_alpha_starts_near_zero():
    wide = Choice({f"branch{number}": nn.Identity() for number in range(2000)}, name="wide")
    assert wide.alpha.shape == (1, 2000)
    assert 0.9 * ALPHA_SCALE < wide.alpha.std() < 1.1 * ALPHA_SCALE


def test_images_sequences_and_several_inputs():
    convolutions = Choice({"3x3": nn.Conv2d(2, 3, 3, padding=1), "1x1": nn.Conv2d(2, 3, 1)}, name="convolution")
    assert convolutions(torch.randn(2, 2, 5, 5)).shape == (2, 3, 5, 5)
    bilinear = Choice({"a": nn.Bilinear(3, 4, 2), "b": nn.Bilinear(3, 4, 2, bias=False)}, name="bilinear")
    assert bilinear(torch.randn(6, 3), torch.randn(6, 4)).shape == (6, 2)
    assert Choice({"up": Scaled(2.0)}, name="scale")(torch.ones(()), plus=1.0).item() == 3.0


def test_one_name_is_one_alpha():
    model = Model()
    assert model.first.alpha is not model.second.alpha
    kept = model.first.alpha
    assert set(tie(model)) == {"activation", "direction"}
    assert model.first.alpha is model.second.alpha is kept
    assert len([name for name, _ in model.named_parameters() if name.endswith("alpha")]) == 2


def test_the_common_interface():
    net = ChoiceSupernet(Model())
    assert set(net.alpha) == {"activation", "direction"}
    assert net.alpha["activation"] is net.module.first.alpha is net.module.second.alpha
    outer, inner = net.architecture_parameters(), net.weight_parameters()
    assert {id(p) for p in outer} == {id(p) for p in net.alpha.values()}
    assert not {id(p) for p in outer} & {id(p) for p in inner}
    assert len(outer) + len(inner) == len(list(net.parameters()))
    assert {"alpha.activation", "alpha.direction", "module.first.alpha"} <= net.state_dict().keys()
    assert ChoiceSupernet(net).module is net.module


def test_equal_to_the_module_alone_and_to_given_mixtures():
    model = Model().eval()
    net = ChoiceSupernet(model)
    x = torch.randn(5, 4)
    torch.testing.assert_close(net(x, shift=0.5), model(x, 0.5))
    torch.testing.assert_close(net(x, 0.5, mixtures=net.mixtures()), model(x, 0.5))
    torch.testing.assert_close(net.mixed(x, net.mixtures()), model(x))
    with pytest.raises(InputError, match="Choice 'direction': no mixture is given for it"):
        net(x, mixtures={"activation": net.mixtures()["activation"]})


def test_mixtures_are_drawn_once_for_a_name():
    drawn = []

    def sampled(alpha):
        drawn.append(one_hot([torch.randint(alpha.shape[1], ()).item()], alpha.shape[1], alpha))
        return drawn[-1]

    net = ChoiceSupernet(nn.Sequential(*(activations() for _ in range(3))), relaxation=sampled)
    for _ in range(10):
        drawn.clear()
        x = torch.randn(2, 4)
        output = net(x)
        assert len(drawn) == 1
        branch = ["relu", "tanh", "line"][drawn[0].active[0].index(True)]
        torch.testing.assert_close(output, derive(net, chosen(activation=branch))(x))


def test_threads_do_not_see_each_others_mixtures():
    barrier = threading.Barrier(2, timeout=60)

    class Meet(nn.Module):
        def forward(self, x):
            barrier.wait()
            return x

    net = ChoiceSupernet(nn.Sequential(Meet(), activations(), Meet()))
    x, found = torch.randn(2, 4), {}

    def run(branch):
        found[branch] = net(x, mixtures=net.path(chosen(activation=branch)))

    threads = [threading.Thread(target=run, args=[branch]) for branch in ("relu", "tanh")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert torch.equal(found["relu"], x.relu())
    assert torch.equal(found["tanh"], x.tanh())


class Broken(nn.Module):
    def forward(self, *_):
        raise AssertionError("this branch must not run")


def test_a_single_path_runs_the_chosen_branches_only():
    net = ChoiceSupernet(nn.Sequential(Choice({"good": nn.Tanh(), "bad": Broken()}, name="block")))
    x = torch.randn(2, 4)
    assert torch.equal(net(x, mixtures=net.path(chosen(block="good"))), x.tanh())
    with pytest.raises(AssertionError, match="must not run"):
        net(x)
    assert torch.equal(net.module[0].branches["good"](x), x.tanh())  # and the failure left no mixtures behind
    assert net.path(chosen(block="bad"))["block"].active == ((False, True),)


def test_a_sampled_branch_keeps_the_gradient_of_its_weight():
    def sampled(alpha):
        weights, path = alpha.softmax(1), one_hot([1], alpha.shape[1], alpha)
        return Mixture(path.weights + weights - weights.detach(), path.active)

    net = ChoiceSupernet(activations(), relaxation=sampled)
    x = torch.randn(3, 4)
    output = net(x)
    torch.testing.assert_close(output, x.tanh())
    output.sum().backward()
    p = net.alpha["activation"].detach().softmax(1)[0]
    expected = x.tanh().sum() * p[1] * (torch.tensor([0.0, 1.0, 0.0]) - p)
    torch.testing.assert_close(net.alpha["activation"].grad[0], expected)


def test_architecture_is_the_largest_alpha_and_the_first_of_equals():
    net = ChoiceSupernet(Model())
    with torch.no_grad():
        net.alpha["activation"].copy_(torch.tensor([[0.0, -1.0, 2.0]]))
        net.alpha["direction"].zero_()
    assert net.architecture() == chosen(activation="line", direction="up")


def test_copies_and_saved_states():
    net = ChoiceSupernet(Model())
    nn.init.normal_(net.alpha["activation"])
    x = torch.randn(5, 4)
    twin = copy.deepcopy(net)
    assert twin.alpha["activation"] is twin.module.first.alpha is twin.module.second.alpha
    assert twin.alpha["activation"] is not net.alpha["activation"]
    thawed = pickle.loads(pickle.dumps(net))
    assert thawed.alpha["activation"] is thawed.module.second.alpha
    stored = io.BytesIO()
    torch.save(net.state_dict(), stored)
    for assign in (False, True):
        stored.seek(0)
        fresh = ChoiceSupernet(Model())
        fresh.load_state_dict(torch.load(stored), assign=assign)
        assert fresh.alpha["activation"] is fresh.module.first.alpha is fresh.module.second.alpha
        assert len(fresh.weight_parameters()) == len(net.weight_parameters())
        assert torch.equal(fresh.eval()(x), net.eval()(x))
    assert net.double().alpha["activation"] is net.module.first.alpha
    assert net.module.first.alpha.dtype == torch.float64


def test_functional_call_replaces_all_that_is_tied():
    net = ChoiceSupernet(Model()).eval()
    x, other = torch.randn(5, 4), torch.tensor([[1.0, 2.0, -3.0]])
    replaced = torch.func.functional_call(net, {"alpha.activation": other}, (x,))
    tied = tie(net.module)["activation"]
    with torch.no_grad():
        tied.copy_(other)
    torch.testing.assert_close(replaced, net(x))
    torch.testing.assert_close(torch.func.functional_call(net.module, {"first.alpha": other}, (x,)), net(x))


def test_products_through_lift_equal_those_of_a_function_by_hand():
    net = ChoiceSupernet(Model().double().eval())
    x, y = torch.randn(6, 4, dtype=torch.float64), torch.randn(6, 2, dtype=torch.float64)
    w, a = net.weight_parameters(), net.architecture_parameters()
    products = ExactProducts(lift(net, mse_loss, (x, y), w, a), w, a)
    v = torch.randn_like(products.gradient)
    hessian, mixed = products.joint(v)
    grads = torch.autograd.grad(mse_loss(net.module(x), y), w, create_graph=True, allow_unused=True)
    along = products.layout.unflatten(v)
    dot = sum((g * u).sum() for g, u in zip(grads, along, strict=True) if g is not None)
    by_hand = torch.autograd.grad(dot, (*w, *a), allow_unused=True)
    torch.testing.assert_close(hessian, products.layout.flatten(by_hand[: len(w)]))
    for one, other in zip(mixed, by_hand[len(w) :], strict=True):
        torch.testing.assert_close(one, other)


class Counted(TorchDispatchMode):
    calls = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.calls += func is torch.ops.aten.addmm.default
        return func(*args, **(kwargs or {}))


def test_linear_layers_that_are_not_chosen_do_not_run():
    lines = Choice({f"line{number}": nn.Linear(4, 4) for number in range(5)}, name="lines")
    net = ChoiceSupernet(nn.Sequential(lines, lines))
    with Counted() as counted:
        net(torch.randn(2, 4), mixtures=net.path(chosen(lines="line3")))
    assert counted.calls == 2
