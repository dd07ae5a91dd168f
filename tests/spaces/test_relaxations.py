"""Relaxations know no space: others than softmax are added here, in the tests, and every space takes them."""

import pytest
import torch
from test_fused_supernets import Convolutions
from torch.nn.functional import cross_entropy, gumbel_softmax

from idarts import InputError
from idarts.layers.mixture import one_hot
from idarts.searching.relaxations.partial_channels import PartialChannels
from idarts.spaces import Mixture, space
from idarts.spaces.relaxation import softmax


def gumbel(alpha):
    """GDAS: one path is drawn and runs, the gradient comes from the softmax around it."""
    hard = gumbel_softmax(alpha, tau=1.0, hard=True)
    return Mixture(hard, tuple(tuple(row) for row in (hard.detach() > 0.5).tolist()))


def dirichlet(alpha):
    """DrNAS: weights are drawn from a Dirichlet distribution, differentiable in its concentration."""
    return Mixture(torch.distributions.Dirichlet(torch.nn.functional.elu(alpha) + 1).rsample())


def uniform(alpha):
    """A single path, all alike: RandomNAS and SPOS train their weights so."""
    return one_hot(torch.randint(alpha.shape[1], (len(alpha),)).tolist(), alpha.shape[1], alpha)


NAMES = ["nas-bench-201", "darts", "nas-bench-1shot1-s1"]


def supernet(name, relaxation):
    torch.manual_seed(0)
    found = space(name)
    depth = 3 if name == "darts" else 1
    return found.supernet(
        found.skeleton.changed(depth=depth, channels=8, classes=4), in_channels=1, relaxation=relaxation
    )


@pytest.mark.parametrize("relaxation", [softmax, gumbel, dirichlet])
@pytest.mark.parametrize("name", NAMES)
def test_gradients_reach_alpha(name, relaxation):
    net = supernet(name, relaxation)
    images, labels = torch.randn(4, 1, 16, 16), torch.randint(4, (4,))
    total = {key: torch.zeros_like(alpha) for key, alpha in net.alpha.items()}
    for _ in range(60 if relaxation is gumbel else 1):  # a path may well lead past a decision
        grads = torch.autograd.grad(
            cross_entropy(net(images), labels), list(net.alpha.values()), allow_unused=True, materialize_grads=True
        )
        for key, grad in zip(net.alpha, grads, strict=True):
            total[key] += grad.abs()
    assert all(value.isfinite().all() and value.any() for value in total.values())


@pytest.mark.parametrize("relaxation", [gumbel, uniform])
@pytest.mark.parametrize("name", NAMES)
def test_a_drawn_path_runs_little(name, relaxation):
    images = torch.randn(2, 1, 16, 16)
    with Convolutions() as everything:
        supernet(name, softmax)(images)
    with Convolutions() as path:
        supernet(name, relaxation)(images)
    assert path.channels < 0.7 * everything.channels


class TestPartialChannels:
    @pytest.mark.parametrize("name", ["nas-bench-201", "darts"])
    def test_fewer_weights_same_shapes(self, name):
        whole, part = supernet(name, softmax), supernet(name, PartialChannels(2))
        images = torch.randn(2, 1, 15, 15)
        assert whole(images).shape == part(images).shape
        in_cells = [sum(p.numel() for key, p in net.named_parameters() if ".fans." in key) for net in (whole, part)]
        assert in_cells[1] < 0.6 * in_cells[0]

    @pytest.mark.parametrize("name", ["nas-bench-201", "darts"])
    def test_what_passes_by_is_the_sum_of_the_nodes_before(self, name):
        """With all α on `none` the searched channels are zero, and the others carry the inputs to every node."""
        net = supernet(name, PartialChannels(4))
        graph = net.body[0] if name == "nas-bench-201" else net.cells[0].graph
        x = torch.randn(2, 8, 6, 6)
        none = one_hot([0] * len(graph.rows), len(graph.columns), x)
        states = graph([x] * graph.inputs, none)
        assert all(state.shape == x.shape for state in states)
        # Channel c of a node comes from part c % 4 of what was joined; part 0 went through the operations.
        first = states[graph.inputs].unflatten(1, (-1, 4))
        assert not first[:, :, 0].any()
        torch.testing.assert_close(first[:, :, 1], graph.inputs * x[:, 2:4])

    def test_bad_input(self):
        with pytest.raises(InputError, match="share=1"):
            PartialChannels(1)
        with pytest.raises(InputError, match="one in 3 of 8 channels"):
            supernet("darts", PartialChannels(3))
        with pytest.raises(InputError, match="operations on edges"):
            supernet("nas-bench-1shot1-s1", PartialChannels(2))


@pytest.mark.parametrize("name", NAMES)
def test_images_of_a_wrong_shape(name):
    with pytest.raises(InputError, match=r"expected \(batch, channels, height, width\)"):
        supernet(name, softmax)(torch.randn(1, 16, 16))


@pytest.mark.parametrize("name", NAMES)
def test_images_too_small_for_a_space(name):
    with pytest.raises(InputError, match="images of 2×8 pixels, expected at least 3×3: they are halved twice"):
        supernet(name, softmax)(torch.randn(2, 1, 2, 8))
