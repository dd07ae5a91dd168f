"""Networks of equal size: how many channels an architecture needs for a number of parameters."""

import math
from functools import cache

import torch

from idarts.arch import Architecture, Skeleton
from idarts.errors import InputError
from idarts.spaces import count, network

TOLERANCE = 0.05  # largest difference of two sizes that count as equal
MOST = 1024  # channels


@cache
def parameters(architecture: Architecture, skeleton: Skeleton, in_channels: int) -> int:
    """The parameters of an architecture's network.

    >>> from idarts.arch import parse
    >>> parameters(parse("nas-bench-201:0"), Skeleton(depth=1, channels=4, classes=10, image=8), 1)
    5606
    """
    with torch.device("meta"):
        net = network(architecture, skeleton, in_channels=in_channels)
    return sum(weights.numel() for weights in net.parameters())


@cache
def multiply_adds(architecture: Architecture, skeleton: Skeleton, in_channels: int) -> int:
    """The multiply-adds of an architecture's network for one image."""
    return count(architecture, skeleton, in_channels=in_channels).multiply_adds["conv+fc"]


def resized(architecture: Architecture, skeleton: Skeleton, target: float, in_channels: int) -> Skeleton:
    """The skeleton with the number of channels that brings an architecture nearest to a number of parameters.

    >>> from idarts.arch import parse
    >>> small = Skeleton(depth=1, channels=16, classes=10, image=16)
    >>> resized(parse("nas-bench-201:0"), small, 170_000, 3).channels
    23
    """
    low, high = 1, 1
    while high < MOST and parameters(architecture, skeleton.changed(channels=high), in_channels) < target:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        small = parameters(architecture, skeleton.changed(channels=middle), in_channels) < target
        low, high = (middle, high) if small else (low, middle)
    return min(
        (skeleton.changed(channels=channels) for channels in (low, high)),
        key=lambda one: abs(math.log(parameters(architecture, one, in_channels) / target)),
    )


def equal_sizes(
    first: Architecture, second: Architecture, skeleton: Skeleton, target: float, in_channels: int
) -> tuple[Skeleton, Skeleton]:
    """Skeletons in which two architectures have equal parameters within 5 %, both near the target.

    >>> from idarts.arch import parse
    >>> small = Skeleton(depth=1, channels=16, classes=10, image=16)
    >>> one, two = parse("nas-bench-201:0"), parse("nas-bench-201:1462")
    >>> [pair.channels for pair in equal_sizes(one, two, small, 170_000, 3)]
    [23, 11]
    """
    middle = resized(first, skeleton, target, in_channels).channels
    for channels in sorted(range(max(1, middle // 2), 2 * middle + 1), key=lambda channels: abs(channels - middle)):
        one = skeleton.changed(channels=channels)
        size = parameters(first, one, in_channels)
        two = resized(second, skeleton, size, in_channels)
        other = parameters(second, two, in_channels)
        if max(size, other) <= (1 + TOLERANCE) * min(size, other):
            return one, two
    raise InputError(
        f"no two networks of {first.space} near {target:,.0f} parameters agree in size within {TOLERANCE:.0%}; "
        "give more minutes, which make them larger"
    )
