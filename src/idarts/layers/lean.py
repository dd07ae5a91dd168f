"""Layers with a cheap double backward: drop-in replacements for some of torch's, equal to them up to rounding.

A Hessian-vector product differentiates the gradient once more. In this step PyTorch makes some twenty passes over the
activations for a batch normalisation, moves the batch into the channels of a convolution, and adds tensors of zeros for
ReLU and average pooling (contiguous ones, which bring the gradients of a channels-last network into the slow layout).
Here this step is written by hand. Use `memory_format=torch.channels_last` for the model and its inputs for full speed.

The functions fall back to torch's own without gradients, under autocast, torch.func transforms, forward mode or
torch.compile, and for dtypes other than float32 and float64.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from idarts.layers.convolution import Conv2d
from idarts.layers.depthwise import may_be_slow
from idarts.layers.fallback import is_small, must_fall_back
from idarts.layers.functions import BatchNorm, Linear, ReLU, call
from idarts.layers.pooling import LeanMaxPool2d

Pair = int | tuple[int, ...] | list[int]
Module = TypeVar("Module", bound=nn.Module)

_aten = torch.ops.aten
_gathers: list[Callable[[Tensor], Tensor]] = []  # set by `statistics_by`; the innermost is the last


def lean(module: Module) -> Module:
    """Replace every convolution, batch normalisation, ReLU and pooling layer of a model by its lean form, in place.

    Only instances of exactly torch's classes change, and only in their class: parameters, buffers, hooks and
    `state_dict` stay the same; `unlean` is the way back. On small inputs the layers run torch's own code, which is then
    the faster one.

    >>> net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU())
    >>> weight = net[0].weight
    >>> [type(layer).__name__ for layer in lean(net)], net[0].weight is weight
    (['LeanConv2d', 'LeanBatchNorm2d', 'LeanReLU'], True)
    """
    for layer in module.modules():
        if type(layer) in _LEAN:
            layer.__class__ = _LEAN[type(layer)]
    return module


def lean_depthwise(module: nn.Module) -> list[nn.Module]:
    """Make only those convolutions lean whose gradient torch computes slowly on a CPU, and return them.

    These are depthwise ones with more than three columns. In a training that takes no second derivatives, torch's own
    layers are the faster ones otherwise.

    >>> net = nn.Sequential(nn.Conv2d(8, 8, 5, groups=8), nn.Conv2d(8, 8, 3, groups=8), nn.Conv2d(8, 8, 5))
    >>> lean_depthwise(net) == [net[0]]
    True
    """
    slow = [layer for layer in module.modules() if type(layer) is nn.Conv2d and may_be_slow(layer)]
    return [lean(layer) for layer in slow]


def unlean(module: Module) -> Module:
    """The way back from `lean`, in place: torch's own classes with the same parameters, for tracing, fusing and export.

    >>> net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU())
    >>> [type(layer).__name__ for layer in unlean(lean(net))]
    ['Conv2d', 'ReLU']
    """
    stock = {ours: theirs for theirs, ours in _LEAN.items()}
    for layer in module.modules():
        if type(layer) in stock:
            layer.__class__ = stock[type(layer)]
    return module


def batch_norm(
    x: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """`torch.nn.functional.batch_norm` for images, differentiable any number of times; the first two are lean.

    >>> x, weight = torch.randn(8, 3, 5, 5), torch.ones(3, requires_grad=True)
    >>> y = batch_norm(x, None, None, weight, training=True)
    >>> torch.allclose(y, functional.batch_norm(x, None, None, weight, training=True), atol=1e-6)
    True
    """
    vectors = (running_mean, running_var, weight, bias)
    known = training or (running_mean is not None and running_var is not None)
    fits = known and all(t is None or t.shape == x.shape[1:2] for t in vectors)  # if not, torch raises an error
    if fits and training and _gathers:
        return _joint_batch_norm(x, running_mean, running_var, weight, bias, momentum, eps)
    # Torch's channels-last kernels read past the end of an expanded weight.
    weight, bias = (None if t is None else t.contiguous() for t in (weight, bias))
    if not fits or must_fall_back(x, weight, bias, running_mean, running_var):
        return functional.batch_norm(x, running_mean, running_var, weight, bias, training, momentum, eps)
    if training and x.numel() == x.shape[1]:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {x.size()}")
    weight, bias = (None if t is None else _view(t) for t in (weight, bias))
    y: Tensor = call(BatchNorm, x, weight, bias, running_mean, running_var, training, momentum, eps)
    return y


@contextmanager
def statistics_by(gather: Callable[[Tensor], Tensor]) -> Iterator[None]:
    """Within the block, batch normalisation in training uses the joint statistics of several batches of equal size.

    `gather` takes the statistics of this batch, a vector, and returns those of all batches as the rows of a matrix.

    >>> x, y = torch.randn(4, 3, 2, 2), torch.randn(4, 3, 2, 2)
    >>> var, mean = (torch.stack(both) for both in zip(*(torch.var_mean(b, (0, 2, 3), correction=0) for b in (x, y))))
    >>> with statistics_by(lambda _: torch.cat([mean, var], dim=1)):
    ...     joint = batch_norm(x, None, None, training=True)
    >>> torch.allclose(joint, functional.batch_norm(torch.cat([x, y]), None, None, training=True)[:4], atol=1e-5)
    True
    """
    _gathers.append(gather)
    try:
        yield
    finally:
        _gathers.pop()


def _joint_batch_norm(
    x: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None,
    bias: Tensor | None,
    momentum: float,
    eps: float,
) -> Tensor:
    wide = x if x.dtype == torch.float64 else x.float()
    var, mean = torch.var_mean(wide, (0, *range(2, x.dim())), correction=0)
    means, variances = _gathers[-1](torch.cat([mean, var])).chunk(2, dim=1)
    mean = means.mean(dim=0)
    var = variances.mean(dim=0) + (means - mean).square().mean(dim=0)  # within the batches, and between them
    count = len(means) * x.numel() // x.shape[1]
    for running, new in ((running_mean, mean), (running_var, var * count / (count - 1))):
        if running is not None:
            running.lerp_(new.detach().to(running), momentum)
    scale = (var + eps).rsqrt() if weight is None else (var + eps).rsqrt() * weight
    y = (wide - _channels(mean)) * _channels(scale)
    return (y if bias is None else y + _channels(bias)).to(x.dtype)


def _view(t: Tensor) -> Tensor:
    """A view of a leaf. Torch says by an exception that a leaf needs its gradient, which takes 40 µs; of others not."""
    return t.view_as(t) if t.is_leaf and t.requires_grad else t


def _channels(v: Tensor) -> Tensor:
    return v.view(-1, 1, 1)


def conv2d(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Pair = 1,
    padding: Pair | str = 0,
    dilation: Pair = 1,
    groups: int = 1,
) -> Tensor:
    """`torch.nn.functional.conv2d`, differentiable any number of times; the first two are lean.

    >>> x, weight = torch.randn(2, 3, 8, 8), torch.randn(4, 3, 3, 3, requires_grad=True)
    >>> torch.allclose(conv2d(x, weight, padding="same"), functional.conv2d(x, weight, padding=1), atol=1e-6)
    True
    """
    sides = None if must_fall_back(x, weight, bias) else _padding(padding, weight, _pair(stride), _pair(dilation))
    if sides is None:
        return functional.conv2d(x, weight, bias, stride, padding, dilation, groups)
    weight, bias = _view(weight), None if bias is None else _view(bias)
    y: Tensor = call(Conv2d, x, weight, bias, _pair(stride), sides, _pair(dilation), groups)
    return y


def relu(x: Tensor) -> Tensor:
    """`torch.relu`, differentiable any number of times.

    >>> relu(torch.tensor([-1.0, 2.0], requires_grad=True)).detach()
    tensor([0., 2.])
    """
    if must_fall_back(x):
        return torch.relu(x)
    y: Tensor = call(ReLU, x)
    return y


def avg_pool2d(
    x: Tensor,
    kernel_size: Pair,
    stride: Pair | None = None,
    padding: Pair = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """`torch.nn.functional.avg_pool2d`, differentiable any number of times.

    >>> avg_pool2d(torch.ones(1, 1, 4, 4, requires_grad=True), 2).shape
    torch.Size([1, 1, 2, 2])
    """
    if must_fall_back(x):
        return functional.avg_pool2d(x, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)
    kernel = _pair(kernel_size)
    window = kernel, kernel if stride is None else _pair(stride), _pair(padding), ceil_mode, count_include_pad
    like = x.detach()  # for its shape and layout

    def spread(g: Tensor) -> Tensor:
        result: Tensor = _aten.avg_pool2d_backward(g, like, *window, divisor_override)
        return result

    def pool(t: Tensor) -> Tensor:
        result: Tensor = _aten.avg_pool2d(t, *window, divisor_override)
        return result

    y: Tensor = call(Linear, x, pool, spread)
    return y


class LeanBatchNorm2d(nn.BatchNorm2d):
    """`nn.BatchNorm2d` with a cheap double backward."""

    def forward(self, input: Tensor) -> Tensor:
        if is_small(input) and not _gathers:
            return super().forward(input)
        self._check_input_dim(input)
        momentum = 0.0 if self.momentum is None else self.momentum
        if self.training and self.track_running_stats and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:  # a cumulative average
                momentum = 1.0 / float(self.num_batches_tracked)
        mean, var = self.running_mean, self.running_var
        by_batch = self.training or (mean is None and var is None)
        if self.training and not self.track_running_stats:
            mean = var = None
        return batch_norm(input, mean, var, self.weight, self.bias, by_batch, momentum, self.eps)


class LeanConv2d(nn.Conv2d):
    """`nn.Conv2d` with a cheap double backward; torch's own for padding modes other than zeros."""

    def forward(self, input: Tensor) -> Tensor:
        if self.padding_mode != "zeros" or is_small(input):
            return super().forward(input)
        return conv2d(input, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)


class LeanReLU(nn.ReLU):
    """`nn.ReLU` with a cheap double backward; torch's own if in place."""

    def forward(self, input: Tensor) -> Tensor:
        return super().forward(input) if self.inplace or is_small(input) else relu(input)


class LeanAvgPool2d(nn.AvgPool2d):
    """`nn.AvgPool2d` with a cheap double backward."""

    def forward(self, input: Tensor) -> Tensor:
        if is_small(input):
            return super().forward(input)
        window = self.kernel_size, self.stride, self.padding
        return avg_pool2d(input, *window, self.ceil_mode, self.count_include_pad, self.divisor_override)


_LEAN: dict[type[nn.Module], type[nn.Module]] = {
    nn.BatchNorm2d: LeanBatchNorm2d,
    nn.Conv2d: LeanConv2d,
    nn.ReLU: LeanReLU,
    nn.AvgPool2d: LeanAvgPool2d,
    nn.MaxPool2d: LeanMaxPool2d,
}


def _padding(padding: Pair | str, weight: Tensor, stride: list[int], dilation: list[int]) -> list[int] | None:
    """The padding as numbers; None where torch pads one side more than the other, or raises an error."""
    if not isinstance(padding, str):
        return _pair(padding)
    if padding == "valid":
        return [0, 0]
    total = [d * (k - 1) for d, k in zip(dilation, weight.shape[2:], strict=True)]
    if padding != "same" or stride != [1, 1] or any(t % 2 for t in total):
        return None
    return [t // 2 for t in total]


def _pair(value: Pair) -> list[int]:
    sides = [value] if isinstance(value, int) else list(value)
    return sides * 2 if len(sides) == 1 else sides
