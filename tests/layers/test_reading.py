"""Gradients of depthwise weights, and the forms in which operations read a node, against torch's own."""

import pytest
import torch
from torch.nn import functional

from idarts.layers.depthwise import depthwise_weight, is_slow
from idarts.layers.lean import conv2d
from idarts.layers.reading import Reads, every_other, side_by_side, space_to_batch


@pytest.mark.parametrize("kernel", [(3, 3), (5, 5), (7, 7), (2, 4), (1, 6), (5, 3)])
@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("sides", [(2, 2), (4, 7), (9, 8), (1, 4), (3, 2), (16, 16)])
def test_the_gradient_of_a_depthwise_weight_is_torchs(kernel, stride, sides):
    torch.manual_seed(0)
    padding = [kernel[0] // 2, kernel[1] // 2]
    x = torch.randn(3, 4, *sides, dtype=torch.float64).contiguous(memory_format=torch.channels_last)
    weight = torch.randn(4, 1, *kernel, dtype=torch.float64, requires_grad=True)
    y = functional.conv2d(x, weight, None, stride, padding, 1, 4)
    g = torch.randn_like(y)
    (expected,) = torch.autograd.grad(y, weight, g)
    ours = depthwise_weight(g, x, weight.detach(), ([stride, stride], padding, [1, 1], 4))
    torch.testing.assert_close(ours, expected)


@pytest.mark.parametrize(("kernel", "side"), [(5, 8), (3, 2), (7, 4)])
def test_first_and_second_derivatives_of_slow_depthwise_convolutions(kernel, side):
    torch.manual_seed(0)
    x = torch.randn(2, 3, side, side, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(3, 1, kernel, kernel, dtype=torch.float64, requires_grad=True)
    assert is_slow(x, weight, ([1, 1], [kernel // 2] * 2, [1, 1], 3))

    def run(x, weight):
        return conv2d(x, weight, padding=kernel // 2, groups=3)

    assert torch.autograd.gradcheck(run, (x, weight))
    assert torch.autograd.gradgradcheck(run, (x, weight))


@pytest.mark.parametrize("sides", [(4, 6), (5, 7), (4, 5)])
def test_forms_of_a_node_differentiate_twice(sides):
    x = torch.randn(2, 3, *sides, dtype=torch.float64, requires_grad=True)
    for form in (lambda x: side_by_side(x, 3), every_other, lambda x: every_other(x, 1), space_to_batch):
        assert torch.autograd.gradcheck(form, (x,))
        assert torch.autograd.gradgradcheck(form, (x,))


def test_a_node_is_read_in_each_form_once():
    x = torch.randn(2, 3, 5, 7)
    reads = Reads(x)
    assert reads() is x
    assert torch.equal(reads(copies=2), torch.cat([x, x], dim=1))
    assert torch.equal(reads("even"), x[:, :, ::2, ::2])
    assert torch.equal(reads("odd"), functional.pad(x[:, :, 1::2, 1::2], (0, 1, 0, 1)))
    assert torch.equal(reads("phases", copies=2), space_to_batch(torch.cat([x, x], dim=1)))
    assert reads("phases") is reads("phases")
