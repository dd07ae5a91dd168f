"""How fast this machine is now: a few steps of a network and of a supernet, of the size that the data ask for."""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch.nn.functional import cross_entropy

from idarts.fitting.sizes import multiply_adds, own_depth
from idarts.searching import Task, config
from idarts.spaces import network, space
from idarts.spaces.supernet import channels_last

CHANNELS, SEARCH_CHANNELS = 16, 8  # of the networks that are measured
LARGE, SMALL = (16, 16), (8, 4)  # side of the images and batch of two measurements
Measurement = Callable[[str, int, int, int, int], tuple[float, float]]  # seconds and units
STEPS, SLOW = 3, 0.3  # of a measurement, at most, and the seconds after which it ends


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

    On a busy machine the threads of one process wait for each other, which can take ten times as long. After so many
    `seconds` no further measurement starts: then the small ones alone must do.

    >>> 0 < measure("nas-bench-201", 8, 1, 10).step(1e6) < 10
    True
    """
    started, before, busy = time.monotonic(), torch.get_num_threads(), os.getloadavg()[0] > (os.cpu_count() or 1)
    large, small = ((min(side, wanted), batch) for wanted, batch in (LARGE, SMALL))

    def measured(part: Measurement, size: tuple[int, int]) -> tuple[float, float] | None:
        return part(name, *size, in_channels, classes) if time.monotonic() - started < seconds else None

    torch.set_num_threads(1)
    steps, rounds = _step(name, *small, in_channels, classes), _round(name, *small, in_channels, classes)
    step, round_ = _line(steps, measured(_step, large)), _line(rounds, measured(_round, large))
    if not busy and before > 1:
        torch.set_num_threads(before)
        more = _line(steps, measured(_step, large))
        if more.unit < step.unit:
            return Speed(more, Cost(round_.fixed, round_.unit * more.unit / step.unit), before)
        torch.set_num_threads(1)
    return Speed(step, round_, 1)


def _line(small: tuple[float, float], large: tuple[float, float] | None) -> Cost:
    """The cost through one or two measurements of seconds and units; noise must not make a part of it negative."""
    if large is None:
        return Cost(0.5 * small[0], 0.5 * small[0] / small[1])
    unit = (large[0] - small[0]) / (large[1] - small[1])
    unit = min(max(unit, 0.3 * large[0] / large[1]), large[0] / large[1])
    return Cost(large[0] - unit * large[1], unit)


def _step(name: str, side: int, batch: int, in_channels: int, classes: int) -> tuple[float, float]:
    """Seconds of a training step of the fixed network, and its multiply-adds."""
    skeleton = space(name).resolve().changed(depth=1, channels=CHANNELS, classes=classes, image=side)
    skeleton = skeleton.changed(depth=own_depth(name))
    fixed = space(name).fixed()
    net = network(fixed, skeleton, in_channels=in_channels)
    channels_last(net)
    images, labels = _batch(batch, side, in_channels, classes)
    seconds = _seconds(lambda: cross_entropy(net(images), labels).backward())
    return seconds, batch * multiply_adds(fixed, skeleton, in_channels)


def _round(name: str, side: int, batch: int, in_channels: int, classes: int) -> tuple[float, float]:
    """Seconds of a round of the search, and the pixels of its batch."""
    chosen = space(name)
    depth = own_depth(name) or 1
    size = chosen.skeleton.changed(depth=depth, channels=SEARCH_CHANNELS, classes=classes, image=side)
    net = chosen.supernet(size, in_channels=in_channels)
    stream = _Same(*_batch(batch, side, in_channels, classes))
    rounds = Task(net, stream, stream, config(rounds=STEPS + 1, none=False)).search().rounds()
    return _seconds(lambda: next(rounds)), batch * side * side


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
