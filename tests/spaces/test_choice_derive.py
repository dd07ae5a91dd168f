"""From Choices to a plain module: derived with its weights, also from nested Choices, and found by a search."""

import copy

import pytest
import torch
from choice_models import Model, activations, chosen
from torch import nn
from torch.nn.functional import mse_loss

from idarts.arch import to_json
from idarts.hypergrad import FirstOrder, Neumann, hypergradient, lift
from idarts.spaces import Choice, ChoiceSupernet, derive


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


@pytest.mark.parametrize("wrapped", [False, True])
def test_derive_gives_the_single_path_as_a_plain_module(wrapped):
    model = Model().eval()
    model.norm.running_mean.normal_()
    net = ChoiceSupernet(model)
    before = copy.deepcopy(net.state_dict())
    x = torch.randn(5, 4)
    for architecture in (None, chosen(activation="line", direction="down"), chosen(activation="relu", direction="up")):
        plain = derive(net if wrapped else model, architecture)
        assert type(plain) is Model
        assert not any(isinstance(module, Choice) for module in plain.modules())
        assert not any("alpha" in name for name in plain.state_dict())
        assert torch.equal(plain(x), net(x, mixtures=net.path(architecture or net.architecture())))
        with torch.no_grad():
            for parameter in plain.parameters():
                parameter.add_(1.0)
        plain.train()(x)
    assert all(torch.equal(before[key], value) for key, value in net.state_dict().items())
    assert not model.training
    assert isinstance(model.first, Choice)


def test_derive_keeps_each_choices_own_weights_and_what_is_shared():
    line = nn.Linear(4, 4)
    blocks = [Choice({"line": line, "same": nn.Identity()}, name="shared") for _ in range(2)]
    plain = derive(nn.Sequential(*blocks, activations(), activations()), chosen(shared="line", activation="line"))
    assert plain[0] is plain[1]
    assert plain[0] is not line
    assert torch.equal(plain[0].weight, line.weight)
    assert not torch.equal(plain[2].weight, plain[3].weight)


def test_derive_of_a_choice_and_from_text():
    choice = activations()
    assert isinstance(derive(choice, chosen(activation="tanh")), nn.Tanh)
    assert isinstance(derive(ChoiceSupernet(choice), to_json(chosen(activation="relu"))), nn.ReLU)


def nested():
    inner = Choice({"tanh": nn.Tanh(), "line": nn.Linear(4, 4)}, name="inner")
    outer = Choice({"block": nn.Sequential(nn.Linear(4, 4), inner), "just": inner, "skip": nn.Identity()}, name="outer")
    return nn.Sequential(inner, outer, Choice({"end": outer, "stop": nn.ReLU()}, name="last"))


@pytest.mark.parametrize("outer", ["block", "just", "skip"])
@pytest.mark.parametrize("last", ["end", "stop"])
def test_choices_inside_branches(outer, last):
    net = ChoiceSupernet(nested())
    x = torch.randn(3, 4)
    architecture = chosen(inner="line", outer=outer, last=last)
    plain = derive(net, architecture)
    assert not any(isinstance(module, Choice) for module in plain.modules())
    assert torch.equal(plain(x), net(x, mixtures=net.path(architecture)))
    assert len(net(x)) == 3
    assert set(net.architecture().choices) == {"inner", "outer", "last"}


class Recurrent(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.cell = kind(1, 8, batch_first=True)

    def forward(self, x):
        return self.cell(x)[0]


class Pointwise(nn.Module):
    """Sees one moment of a sequence at a time."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(1, 8), nn.Tanh())

    def forward(self, x):
        return self.layers(x)


@pytest.mark.parametrize("method", [FirstOrder(), Neumann(2, "auto", curvature="gauss_newton")])
def test_a_search_on_sequences_finds_the_branch_that_fits(method):
    """The running sum of a sequence: only a branch with a memory can follow it."""
    blocks = {"pointwise": Pointwise(), "recurrent": Recurrent(nn.RNN)}
    net = ChoiceSupernet(nn.Sequential(Choice(blocks, name="memory"), nn.Linear(8, 1)))
    w, a = net.weight_parameters(), net.architecture_parameters()
    inner, outer = torch.optim.Adam(w, lr=0.02), torch.optim.Adam(a, lr=0.1)

    def batch():
        x = torch.randn(16, 6, 1)
        return x, x.cumsum(1)

    for _ in range(25):
        for _ in range(3):
            inner.zero_grad()
            x, y = batch()
            mse_loss(net(x), y).backward()
            inner.step()
        losses = [lift(net, mse_loss, batch(), w, a) for _ in range(2)]
        hypergradient(*losses, w, a, method).write_grad(a)
        outer.step()
    assert net.alpha["memory"].detach().softmax(1)[0, 1] > 0.65
    assert net.architecture() == chosen(memory="recurrent")
    x, _ = batch()
    found = derive(net)
    assert isinstance(found[0], Recurrent)
    assert torch.equal(found(x), net(x, mixtures=net.path(net.architecture())))
