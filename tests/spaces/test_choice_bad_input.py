"""What cannot be a Choice, a model of Choices, or an architecture of one: a sentence that names the offending part."""

import pytest
import torch
from choice_models import Model, activations, chosen
from torch import nn

from idarts.arch import parse
from idarts.errors import InputError
from idarts.layers.mixture import Mixture
from idarts.spaces import Choice, ChoiceSupernet, derive, tie


@pytest.mark.parametrize(
    ("branches", "name", "message"),
    [
        ({}, "block", "Choice 'block': no branches, expected names with their modules"),
        ([nn.ReLU()], "block", r"Choice 'block': branches are \[ReLU\(\)\], expected names"),
        ({"a": torch.relu}, "block", "Choice 'block': branch 'a' is <built-in .*, expected a torch.nn.Module"),
        (
            {"a.b": nn.ReLU()},
            "block",
            "Choice 'block': a branch cannot be called 'a.b', expected a name such as 'conv3'",
        ),
        ({"": nn.ReLU()}, "block", "Choice 'block': a branch cannot be called ''"),
        ({"pop": nn.ReLU()}, "block", "Choice 'block': a branch cannot be called 'pop'"),
        ({3: nn.ReLU()}, "block", "Choice 'block': a branch cannot be called 3"),
        ({"a": nn.ReLU()}, "block.1", "Choice 'block.1': a parameter cannot have this name, expected one such as"),
        ({"a": nn.ReLU()}, "", "Choice '': a parameter cannot"),
        ({"a": nn.ReLU()}, "1st", "Choice '1st': a parameter cannot"),
        ({"a": nn.ReLU()}, "keys", "Choice 'keys': a parameter cannot"),
        ({"a": nn.ReLU()}, None, "Choice None: a parameter cannot"),
    ],
)
def test_a_choice_that_cannot_be(branches, name, message):
    with pytest.raises(InputError, match=message) as error:
        Choice(branches, name)
    assert "\n" not in str(error.value)


def test_outputs_that_do_not_fit():
    differing = Choice({"same": nn.Identity(), "other": nn.Linear(4, 1)}, name="block")
    message = (
        r"Choice 'block': branch 'same' gives the shape \(2, 4\) and branch 'other' \(2, 1\), expected the same of"
    )
    with pytest.raises(InputError, match=message):
        differing(torch.zeros(2, 4))
    with pytest.raises(InputError, match="Choice 'block': branch 'lstm' gives a tuple, expected a tensor"):
        Choice({"lstm": nn.LSTM(4, 4)}, name="block")(torch.zeros(2, 4))
    net = ChoiceSupernet(activations())
    nothing = {"activation": Mixture(torch.zeros(1, 3), ((False, False, False),))}
    with pytest.raises(InputError, match="Choice 'activation': its mixture runs no branch"):
        net(torch.zeros(2, 4), mixtures=nothing)


def test_a_branch_that_changes_what_the_others_read_is_refused():
    block = Choice({"relu": nn.ReLU(inplace=True), "same": nn.Identity()}, name="block")
    with pytest.raises(InputError, match="branch 'relu' changes its input in place; use inplace=False"):
        block(torch.tensor([-1.0, 2.0]))
    alone = ChoiceSupernet(block)  # where a branch runs alone, nobody else reads it
    path = alone.path(chosen(block="relu"))
    assert alone(torch.tensor([-1.0, 2.0]), mixtures=path).tolist() == [0.0, 2.0]


@pytest.mark.parametrize("use", [tie, ChoiceSupernet, derive])
def test_models_that_cannot_be(use):
    with pytest.raises(InputError, match="there is no Choice in this Linear, expected at least one to search"):
        use(nn.Linear(4, 4))
    with pytest.raises(InputError, match=r"ReLU.* is not a model, expected a torch.nn.Module"):
        use(nn.ReLU)
    other = Choice({"relu": nn.ReLU(), "gelu": nn.GELU()}, name="activation")
    message = "Choice 'activation' occurs with the branches relu, tanh, line and with relu, gelu; expected"
    with pytest.raises(InputError, match=message):
        use(nn.Sequential(activations(), other))


@pytest.mark.parametrize(
    ("architecture", "message"),
    [
        (chosen(activaton="relu"), "unknown Choice 'activaton'; did you mean activation?"),
        (chosen(zzz="relu"), "unknown Choice 'zzz'; there are activation, direction"),
        (chosen(activation="relo", direction="up"), "Choice 'activation': unknown branch 'relo'; did you mean relu?"),
        (chosen(activation="x", direction="up"), "Choice 'activation': unknown branch 'x'; there are relu, tanh"),
        (
            chosen(activation="relu"),
            "Choice 'direction': the architecture names no branch for it, expected one of up, d",
        ),
        (parse("DARTS_V2"), "an architecture of darts does not choose branches, expected one of choice"),
    ],
)
def test_architectures_that_do_not_fit(architecture, message):
    net = ChoiceSupernet(Model())
    for use in (net.path, lambda architecture: derive(net, architecture)):
        with pytest.raises(InputError) as error:
            use(architecture)
        assert str(error.value).startswith(message)
