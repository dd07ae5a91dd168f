"""PC-DARTS: partial channels, edge weights β, their product in the selection, and α that rests."""

import pytest
import torch
from tiny import begin

from idarts import InputError
from idarts.layers.graph import FusedGraph
from idarts.layers.mixture import Mixture, one_hot
from idarts.searching.relaxations.partial_channels import PartialChannels
from idarts.spaces import space
from idarts.spaces.darts import EDGES, OPS
from idarts.spaces.relaxation import softmax


def supernet(name, relaxation, channels=8):
    torch.manual_seed(0)
    chosen = space(name)
    skeleton = chosen.skeleton.changed(depth=3 if name == "darts" else 1, channels=channels)
    return chosen.supernet(skeleton, in_channels=1, relaxation=relaxation)


@pytest.mark.parametrize("name", ["darts", "nas-bench-201"])
def test_all_channels_and_equal_beta_are_darts_with_the_mean_of_the_inputs(name):
    net, plain = supernet(name, PartialChannels(1, edges=True)), supernet(name, softmax)
    with torch.no_grad():
        for beta in net.beta.values():
            beta.fill_(0.3)
    plain.load_state_dict({key: value for key, value in net.state_dict().items() if "beta" not in key})
    images = torch.randn(2, 1, 8, 8)
    averaged = {}
    for key, mixture in plain.mixtures().items():
        readers = net.readers[key]
        counts = torch.tensor([float(readers.count(reader)) for reader in readers])
        averaged[key] = Mixture(mixture.weights / counts[:, None])
    torch.testing.assert_close(net(images), plain(images, mixtures=averaged), atol=1e-5, rtol=1e-4)


def test_with_all_options_none_a_node_is_the_shuffled_bypass_by_beta():
    net = supernet("darts", PartialChannels(4, edges=True))
    graph, x, y = net.cells[0].graph, torch.randn(2, 8, 6, 6), torch.randn(2, 8, 6, 6)
    with torch.no_grad():
        net.beta["normal"].copy_(torch.randn(14))
    none = one_hot([0] * 14, 8, x)
    states = graph([x, y], net.weighed("normal", Mixture(none.weights)))
    shares = net.beta["normal"][:2].softmax(0)
    joined = torch.cat([torch.zeros(2, 2, 6, 6), shares[0] * x[:, 2:] + shares[1] * y[:, 2:]], dim=1)
    torch.testing.assert_close(states[2], joined[:, [0, 2, 4, 6, 1, 3, 5, 7]])


def test_the_shuffle_is_a_permutation_and_its_own_inverse_for_as_many_groups_as_channels_in_each():
    def shuffle(x, share):
        return x.unflatten(1, (share, -1)).transpose(1, 2).flatten(1, 2)

    x = torch.arange(16.0).view(1, 16, 1, 1)
    assert sorted(shuffle(x, 4).flatten().tolist()) == list(range(16))
    assert torch.equal(shuffle(shuffle(x, 4), 4), x)
    net = supernet("nas-bench-201", PartialChannels(4, edges=True), channels=16)
    graph = next(module for module in net.modules() if isinstance(module, FusedGraph))
    bypass = graph([x.expand(1, 16, 4, 4)], Mixture(torch.zeros(6, 5), None, torch.ones(6)))[1]
    expected = torch.cat([torch.zeros(1, 4, 1, 1), x[:, 4:]], dim=1)
    assert torch.equal(bypass[:, :, :1, :1], shuffle(expected, 4))


def test_beta_sums_to_one_a_node_and_gets_no_gradient_from_equal_edges():
    net = supernet("darts", PartialChannels(4, edges=True))
    with torch.no_grad():
        net.beta["normal"].copy_(torch.randn(14))
    shares = net.edge_weights("normal")
    sums = torch.stack([shares[[row for row, (_, t) in enumerate(EDGES) if t == node]].sum() for node in range(2, 6)])
    torch.testing.assert_close(sums, torch.ones(4))
    skip = one_hot([OPS.index("skip_connect")] * 14, 8, shares)
    x = torch.randn(2, 8, 6, 6)
    target = torch.randn(2, 8, 6, 6)
    for y, moves in ((x, False), (torch.randn(2, 8, 6, 6), True)):
        states = net.cells[0].graph([x, y], net.weighed("normal", skip))
        (grad,) = torch.autograd.grad((states[2] * target).sum(), net.beta["normal"])
        assert (grad[:2].abs().max() > 1e-2) == moves
        assert grad[:2].sum().abs() < 1e-4


def test_the_selection_takes_the_product():
    """α alone would keep the edges 0 and 1 into the last node; β makes it 3 and 4."""
    net = supernet("darts", PartialChannels(4, edges=True))
    conv = OPS.index("sep_conv_3x3")
    rows = [row for row, (_, target) in enumerate(EDGES) if target == 5]
    with torch.no_grad():
        net.alpha["normal"].zero_()
        net.beta["normal"].zero_()
        net.alpha["normal"][rows[0], conv] = net.alpha["normal"][rows[1], conv] = 1.0
        net.alpha["normal"][rows[3], conv] = net.alpha["normal"][rows[4], conv] = 0.5
    sources = [edge.source for edge in net.architecture().cells["normal"].edges if edge.target == 5]
    assert sources == [0, 1]
    with torch.no_grad():
        net.beta["normal"][rows[3]] = net.beta["normal"][rows[4]] = 2.0
    sources = [edge.source for edge in net.architecture().cells["normal"].edges if edge.target == 5]
    assert sources == [3, 4]


def test_alpha_rests_for_three_tenths_and_then_alpha_and_beta_move():
    search = begin("pc-darts", 7, channels=8)
    before = [value.detach().clone() for value in search.a]
    messages = []
    search.on_message = messages.append
    search._warm_up()
    assert search.stage_steps == len(messages) == 3  # of ten weight steps in all
    assert all(torch.equal(one, other) for one, other in zip(before, search.a, strict=True))
    moved = [
        [not torch.equal(one, other) for one, other in zip(before, search.a, strict=True)] for _ in search.rounds()
    ]
    assert moved == [[True, True]] * 7
    assert search.spent.weight_steps == 10
    assert [tuple(value.shape) for value in search.a] == [(6, 5), (6,)]


def test_edges_without_partial_channels_are_refused_where_nothing_is_built_in():
    with pytest.raises(InputError, match="operations on edges"):
        begin("pc-darts", 1, "nas-bench-1shot1-s1", relaxation_options={"share": 1, "edges": True})
