"""How fast this machine is now: a few steps of a network and of a supernet, of the size that the data ask for."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from statistics import mean
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from idarts.arch import Architecture, Skeleton
from idarts.fitting.sizes import multiply_adds, own_depth, parameters, random_architectures, resized
from idarts.fitting.threads import share_work
from idarts.layers import lean_depthwise
from idarts.searching import Task, config
from idarts.spaces import network, space
from idarts.spaces.supernet import channels_last


class Size(NamedTuple):
    """Side of the images and batch of a measurement."""

    side: int
    batch: int


# Of the search. A round of iDARTS takes six times as long, and in the study its cells are not better (docs/study.md).
METHOD = "darts-first-order"
CHANNELS, SEARCH_CHANNELS = 16, 8  # of the networks that are measured, and of the supernet
# Side of the images and batch of the measurements: small ones, a larger step of training, a larger round of search.
SMALL, LARGE, SEARCHED = Size(8, 4), Size(16, 64), Size(16, 16)
RANDOM = 2  # random networks that are measured beside the fixed one
STEPS, SLOW = 3, 0.3  # of a measurement, at most, and the seconds after which it ends
TRIES, PAUSE = 3, 2.0  # of all threads, and the seconds between: a short command of the user must not decide on the fit


class Measured(NamedTuple):
    """Seconds of a step, and its units of work."""

    seconds: float
    units: float


@dataclass(frozen=True)
class Cost:
    """Seconds of a step: a part that is always there, and a part for each unit of work."""

    fixed: float
    unit: float

    def __call__(self, units: float) -> float:
        """Seconds of a step of so many units.

        >>> Cost(fixed=0.5, unit=0.1)(5)
        1.0
        """
        return self.fixed + self.unit * units


@dataclass(frozen=True)
class Speed:
    """What a step costs: of a training by multiply-adds, of a search's round by pixels in a batch."""

    step: Cost
    round: Cost
    threads: int


def measure(name: str, side: int, in_channels: int, classes: int, seconds: float = 10.0) -> Speed:
    """Measure with one thread and, unless the machine is busy, with all; keep the faster, also as torch's setting.

    On a busy machine the threads of one process wait for each other, which can take ten times as long. It may be busy
    for a moment only, so all threads get several tries. After so many `seconds` no further measurement starts: then the
    small ones alone must do.

    >>> 0 < measure("nas-bench-201", 8, 1, 10).step(1e6) < 10
    True
    """
    started, before = time.monotonic(), torch.get_num_threads()
    networks = _networks(name, in_channels, classes)

    def step(size: Size) -> Measured:
        return _step(networks, min(side, size.side), size.batch)

    def round_(size: Size) -> Measured:
        return _round(name, min(side, size.side), size.batch, in_channels, classes)

    def in_time(part: Callable[[Size], Measured], size: Size) -> Measured | None:
        return part(size) if time.monotonic() - started < seconds else None

    torch.set_num_threads(1)
    steps, rounds = step(SMALL), round_(SMALL)
    each, per_round = _line(steps, in_time(step, LARGE)), _line(rounds, in_time(round_, SEARCHED))
    for attempt in range(TRIES if before > 1 else 0):
        if attempt:
            time.sleep(min(PAUSE, seconds / 10))
        if share_work(before):
            torch.set_num_threads(before)
            more = _line(steps, in_time(step, LARGE))
            if more.unit < each.unit:
                return Speed(more, Cost(per_round.fixed, per_round.unit * more.unit / each.unit), before)
            torch.set_num_threads(1)
        if time.monotonic() - started >= seconds:
            break
    return Speed(each, per_round, 1)


def _line(small: Measured, large: Measured | None) -> Cost:
    """The cost through one or two measurements of seconds and units; noise must not make a part of it negative."""
    if large is None:
        return Cost(0.5 * small.seconds, 0.5 * small.seconds / small.units)
    unit = (large.seconds - small.seconds) / (large.units - small.units)
    unit = min(max(unit, 0.3 * large.seconds / large.units), large.seconds / large.units)
    return Cost(large.seconds - unit * large.units, unit)


def _networks(name: str, in_channels: int, classes: int) -> list[tuple[Architecture, Skeleton, int]]:
    """The fixed network and some random ones: equally large, as those of a fit are, but some take more time."""
    skeleton = space(name).resolve().changed(depth=1, channels=CHANNELS, classes=classes, image=LARGE.side)
    skeleton = skeleton.changed(depth=own_depth(name))
    fixed = space(name).fixed()
    size = parameters(fixed, skeleton, in_channels)
    drawn = [(one, resized(one, skeleton, size, in_channels)) for one in random_architectures(name, RANDOM, seed=0)]
    return [(one, changed, in_channels) for one, changed in [(fixed, skeleton), *drawn]]


def _step(networks: list[tuple[Architecture, Skeleton, int]], side: int, batch: int) -> Measured:
    """Seconds of a training step, the mean of some networks, and the multiply-adds of the first one."""
    seconds = []
    for architecture, skeleton, in_channels in networks:
        net = network(architecture, skeleton.changed(image=side), in_channels=in_channels)
        channels_last(net)
        lean_depthwise(net)  # as a training does
        images, labels = _batch(batch, side, in_channels, skeleton.classes)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.0)
        seconds.append(_seconds(partial(_train, net, optimizer, images, labels)))
    fixed, skeleton, in_channels = networks[0]
    return Measured(mean(seconds), batch * multiply_adds(fixed, skeleton.changed(image=side), in_channels))


def _train(net: torch.nn.Module, optimizer: torch.optim.Optimizer, images: Tensor, labels: Tensor) -> None:
    cross_entropy(net(images), labels).backward()
    optimizer.step()
    optimizer.zero_grad()


def _round(name: str, side: int, batch: int, in_channels: int, classes: int) -> Measured:
    """Seconds of a round of the search, and the pixels of its batch."""
    chosen = space(name)
    depth = own_depth(name) or 1
    size = chosen.skeleton.changed(depth=depth, channels=SEARCH_CHANNELS, classes=classes, image=side)
    net = chosen.supernet(size, in_channels=in_channels)
    stream = _Same(*_batch(batch, side, in_channels, classes))
    rounds = Task(net, stream, stream, config(METHOD, rounds=STEPS + 1, none=False)).search().rounds()
    return Measured(_seconds(lambda: next(rounds)), batch * side * side)


class _Same:
    """A stream that repeats one batch."""

    def __init__(self, images: torch.Tensor, labels: torch.Tensor) -> None:
        self.batch = images, labels

    def __iter__(self) -> "_Same":
        return self

    def __next__(self) -> tuple[torch.Tensor, torch.Tensor]:
        return self.batch

    def __len__(self) -> int:
        return 1

    def state_dict(self) -> dict[str, int]:
        return {}

    def load_state_dict(self, _state: dict[str, int]) -> None:
        pass


def _batch(batch: int, side: int, in_channels: int, classes: int) -> tuple[torch.Tensor, torch.Tensor]:
    images = torch.randn(batch, in_channels, side, side).to(memory_format=torch.channels_last)
    return images, torch.arange(batch) % classes


def _seconds(step: Callable[[], object]) -> float:
    """The mean time of a step, after one that warms up; one step is enough if it is slow."""
    step()
    started, steps, passed = time.perf_counter(), 0, 0.0
    while steps < STEPS and passed < SLOW:
        step()
        steps, passed = steps + 1, time.perf_counter() - started
    return passed / steps
