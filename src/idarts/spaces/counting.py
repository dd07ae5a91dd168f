"""Exact parameters and multiply-adds of a network for one image, without arithmetic and almost without memory.

The network is made on the meta device, its weights become memory that is never written to, and an empty batch goes
through it: every layer sees the right shapes and has nothing to compute. (A meta tensor would do as well, but its first
use makes torch import its compiler, which takes longer than all of this.)

Two conventions, because papers use both:

- `conv+fc`: every multiply-add of convolutions and fully connected layers; a bias counts as one more input. The tables
  of NAS-Bench-201 count in this way.
- `conv+fc+bn`: two more for every output element of a BatchNorm.
"""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from math import prod
from os import PathLike
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.conv import _ConvNd, _ConvTransposeNd

from idarts.arch import Architecture, Skeleton, parse, space_of
from idarts.errors import InputError
from idarts.spaces.networks import network, resolve

_COUNTED = (_BatchNorm, _ConvNd, nn.Linear, nn.MultiheadAttention)
CONVENTIONS = ("conv+fc", "conv+fc+bn")


@dataclass(frozen=True)
class Counts:
    """`params` is without the auxiliary head; a network that has none has the same number with it."""

    params: int
    params_with_auxiliary: int
    multiply_adds: dict[str, int]


def count(
    architecture: "Architecture | str | PathLike[str]",
    skeleton: str | Skeleton | None = None,
    *,
    depth: int | None = None,
    channels: int | None = None,
    classes: int | None = None,
    image: int | None = None,
    in_channels: int = 3,
) -> Counts:
    """Counts for one image of the network that `network` builds from the same arguments.

    >>> count("DARTS_V2", "cifar").params
    3349342
    >>> count("NB201_all_conv3x3").multiply_adds["conv+fc"]
    220119690
    """
    record = parse(architecture)
    chosen = resolve(record, skeleton, depth=depth, channels=channels, classes=classes, image=image)
    has_auxiliary = space_of(record).has_auxiliary
    with torch.device("meta"):
        net = network(record, chosen, in_channels=in_channels, auxiliary=has_auxiliary)
    params = _params(net)
    extra = _params(net.get_submodule("auxiliary")) if has_auxiliary else 0
    _allocate(net)
    return Counts(params - extra, params, _forward(net, torch.empty(0, in_channels, chosen.image, chosen.image)))


def count_module(module: nn.Module, *inputs: Any, **named: Any) -> Counts:
    """Counts of any module for one sample of these inputs, whose values do not matter.

    A copy on the meta device is run with the first sample of the batch; not every module can take an empty batch.

    >>> count_module(nn.Linear(3, 2), torch.empty(5, 3)).multiply_adds
    {'conv+fc': 8, 'conv+fc+bn': 8}
    >>> count_module(nn.Linear(3, 2), input=torch.empty(5, 3)).params
    8
    """
    net = deepcopy(module).to("meta")
    params = _params(net)
    first = [_first_sample(value) for value in inputs]
    return Counts(
        params, params, _forward(net, *first, **{name: _first_sample(value) for name, value in named.items()})
    )


def _first_sample(value: Any) -> Any:
    """Of a tensor, or of all tensors in a list, a tuple or a dict."""
    if isinstance(value, Tensor):
        return value[:1].to("meta")
    if isinstance(value, Mapping):
        return {name: _first_sample(part) for name, part in value.items()}
    return type(value)(map(_first_sample, value)) if isinstance(value, list | tuple) else value


def _params(module: nn.Module) -> int:
    return sum(weights.numel() for weights in module.parameters())


def _allocate(net: nn.Module) -> None:
    for module in net.modules():
        for name, weights in list(module.named_parameters(recurse=False)):
            module.register_parameter(name, nn.Parameter(torch.empty(weights.shape), requires_grad=False))
        for name, buffer in list(module.named_buffers(recurse=False)):
            module.register_buffer(name, torch.empty(buffer.shape, dtype=buffer.dtype))


@torch.no_grad()
def _forward(net: nn.Module, *inputs: Any, **named: Any) -> dict[str, int]:
    """Run the network in evaluation mode with a counting hook on every layer with multiply-adds."""
    sums = {"layers": 0, "norms": 0}
    is_empty = any(isinstance(value, Tensor) and not len(value) for value in inputs)

    def size(value: Tensor) -> int:
        """Elements for one sample: all of them, however they are folded; for an empty batch, those it would have."""
        return prod(value.shape[1:]) if is_empty else value.numel()

    def add(layer: nn.Module, given: tuple[Any, ...], result: Tensor) -> None:
        if isinstance(layer, nn.MultiheadAttention):
            raise InputError("the multiply-adds of MultiheadAttention cannot be counted; use parameters or latency")
        outputs = size(result)
        if isinstance(layer, _BatchNorm):
            sums["norms"] += 2 * outputs
        else:
            assert isinstance(layer, (_ConvNd, nn.Linear))
            elements = size(given[0]) if isinstance(layer, _ConvTransposeNd) else outputs
            sums["layers"] += elements * prod(layer.weight.shape[1:]) + (0 if layer.bias is None else outputs)

    counted = (layer for layer in net.modules() if isinstance(layer, _COUNTED))
    handles = [layer.register_forward_hook(add) for layer in counted]
    try:
        net.eval()(*inputs, **named)
    finally:
        for handle in handles:
            handle.remove()
    return {"conv+fc": sums["layers"], "conv+fc+bn": sums["layers"] + sums["norms"]}
