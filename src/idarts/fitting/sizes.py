"""The networks that are compared: how wide each must be, and which ones are drawn at random."""

import math
import time
from collections.abc import Callable
from functools import cache
from random import Random
from statistics import median

import torch

from idarts.arch import Architecture, Skeleton
from idarts.spaces import count, network, space
from idarts.spaces.supernet import channels_last

TOLERANCE = 0.05  # largest difference of two sizes that count as equal
MOST = 1024  # channels
PASSES = 15  # of a measurement of time

Measure = Callable[[Architecture, Skeleton, int], float]  # of a network with so many input channels


def own_depth(name: str) -> int | None:
    """The usual depth of a space whose architectures decide on their depth; None where the skeleton does.

    >>> own_depth("nas-bench-201") is None
    True
    """
    chosen = space(name)
    return None if chosen.depth_of is None else chosen.skeleton.depth


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


@cache
def milliseconds(architecture: Architecture, skeleton: Skeleton, in_channels: int) -> float:
    """The time of an architecture's network for one image on this machine: the median of some passes."""
    net = network(architecture, skeleton, in_channels=in_channels).eval()
    channels_last(net)
    image = torch.zeros(1, in_channels, skeleton.image, skeleton.image)
    times: list[float] = []
    with torch.inference_mode():
        while len(times) < 3 + PASSES:
            started = time.perf_counter()
            net(image)
            times.append(time.perf_counter() - started)
    return 1000 * median(times[3:])


# What a network costs, by the names of `idarts search --cost.kind`.
MEASURES: dict[str, Measure] = {"parameters": parameters, "multiply_adds": multiply_adds, "latency": milliseconds}


def resized(
    architecture: Architecture, skeleton: Skeleton, target: float, in_channels: int, measure: Measure = parameters
) -> Skeleton:
    """The skeleton with the number of channels that brings an architecture nearest to a cost, by default parameters.

    >>> from idarts.arch import parse
    >>> small = Skeleton(depth=1, channels=16, classes=10, image=16)
    >>> resized(parse("nas-bench-201:0"), small, 170_000, 3).channels
    23
    """
    low, high = 1, 1
    while high < MOST and measure(architecture, skeleton.changed(channels=high), in_channels) < target:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        small = measure(architecture, skeleton.changed(channels=middle), in_channels) < target
        low, high = (middle, high) if small else (low, middle)
    return min(
        (skeleton.changed(channels=channels) for channels in (low, high)),
        key=lambda one: abs(math.log(measure(architecture, one, in_channels) / target)),
    )


def equal_sizes(
    first: Architecture,
    second: Architecture,
    skeleton: Skeleton,
    target: float,
    in_channels: int,
    measure: Measure = parameters,
) -> tuple[Skeleton, Skeleton]:
    """Skeletons in which two architectures have equal parameters within 5 %, and the first is near to the cost.

    Narrow networks differ by more from one channel to the next, so a wider pair may have to be taken. Where widths are
    so coarse that no pair agrees, the nearest one is.

    >>> from idarts.arch import parse
    >>> small = Skeleton(depth=1, channels=16, classes=10, image=16)
    >>> one, two = parse("nas-bench-201:0"), parse("nas-bench-201:1462")
    >>> [pair.channels for pair in equal_sizes(one, two, small, 170_000, 3)]
    [23, 11]
    """
    middle = resized(first, skeleton, target, in_channels, measure).channels
    nearest: tuple[float, Skeleton, Skeleton] | None = None
    for channels in sorted(range(max(1, middle // 2), 4 * middle + 1), key=lambda channels: abs(channels - middle)):
        one = skeleton.changed(channels=channels)
        size = parameters(first, one, in_channels)
        two = resized(second, skeleton, size, in_channels)
        ratio = abs(math.log(parameters(second, two, in_channels) / size))
        if nearest is None or ratio < nearest[0]:
            nearest = ratio, one, two
        if ratio <= math.log1p(TOLERANCE):
            break
    assert nearest is not None
    return nearest[1:]


def random_architectures(name: str, count: int, seed: int) -> list[Architecture]:
    """Random architectures without `none`, which the search does not use either: some cells with it pass nothing on.

    >>> from idarts.arch import as_text
    >>> cells = random_architectures("nas-bench-201", 2, seed=0)
    >>> cells == random_architectures("nas-bench-201", 2, seed=0), any("none" in as_text(cell) for cell in cells)
    (True, False)
    """
    random, drawn = Random(seed), list[Architecture]()
    while len(drawn) < count:
        cell = space(name).sample(random)
        if not any(edge.op == "none" for part in cell.cells.values() for edge in part.edges):
            drawn.append(cell)
    return drawn
