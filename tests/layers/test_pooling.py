"""The lean max pooling against torch's: values, gradients and double gradients, ties, odd sizes, layout."""

import pytest
import torch
from torch.nn import functional

from idarts.layers.pooling import max_pool2d

LAYOUTS = [torch.channels_last, torch.contiguous_format]


def orders(pool, x):
    """Value, gradient, and the gradient's gradients in the image and in what arrives."""
    y = pool(x)
    g = torch.linspace(-1, 2, y.numel(), dtype=x.dtype).view_as(y).requires_grad_()
    (grad,) = torch.autograd.grad(y.sin(), x, g, create_graph=True)
    return [y, grad, *torch.autograd.grad(grad.square().sum(), (x, g))]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("window", [(3, 1, 1, False), (3, 2, 1, False), (2, 2, 0, True)])
@pytest.mark.parametrize("channels", [1, 3, 4, 6, 11])  # one axis at a time for the few, as torch does for the others
def test_equals_torch_in_all_orders(channels, window, layout):
    torch.manual_seed(0)
    kernel, stride, padding, ceil_mode = window
    for size in [(7, 9), (8, 8), (1, 1), (3, 2), (1, 5)]:
        for ties in (False, True):
            x = torch.randn(2, channels, *size, dtype=torch.float64)
            x = (x.relu() if ties else x).contiguous(memory_format=layout).requires_grad_()
            ours = orders(lambda x: max_pool2d(x, *window), x)
            stock = orders(lambda x: functional.max_pool2d(x, kernel, stride, padding, ceil_mode=ceil_mode), x)
            for one, other in zip(ours, stock, strict=True):
                torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("channels", [3, 8])
def test_every_order_stays_channels_last(channels):
    x = torch.randn(2, channels, 6, 6).contiguous(memory_format=torch.channels_last).requires_grad_()
    for tensor in orders(lambda x: max_pool2d(x, 3, 1, 1), x):
        assert tensor.is_contiguous(memory_format=torch.channels_last)


def test_without_gradients_it_is_torchs_own():
    x = torch.randn(2, 3, 6, 6)
    with torch.no_grad():
        assert torch.equal(max_pool2d(x, 3, 1, 1), functional.max_pool2d(x, 3, 1, 1))
    assert torch.equal(torch.func.vmap(lambda t: max_pool2d(t, 3, 1, 1))(x[None])[0], functional.max_pool2d(x, 3, 1, 1))
