"""The final trainings, side by side: every network takes the same steps, however slow the machine becomes."""

import time
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from idarts.data import Batches, Part
from idarts.engine.run import run_to_end
from idarts.fitting.threads import Threads
from idarts.training import TrainResult

LATE = 0.999  # share of the time at which a run that is behind continues

Running = Generator[Any, None, TrainResult]
OnLap = Callable[[float, float, str], None]  # the share that is done, seconds left of the trainings, a line of numbers


@dataclass
class Clock:
    """The time of the trainings: what earlier processes used, and what is left for them all."""

    seconds: float  # that are left, from now on
    before: float = 0.0
    now: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self.started = self.now()
        self.lap = 0.0  # seconds of the longest recent lap

    @property
    def passed(self) -> float:
        """Seconds since this process began."""
        return self.now() - self.started

    def share(self) -> float:
        """The share of the time that is used; 1 if another lap would not end in time.

        >>> clock = Clock(seconds=100.0, before=50.0)
        >>> 0.33 < clock.share() < 0.34
        True
        >>> clock.lap = 101.0
        >>> clock.share()
        1.0
        """
        if self.passed + self.lap >= self.seconds:
            return 1.0
        return (self.before + self.passed) / (self.before + self.seconds)


def train_together(
    runs: Mapping[str, Running], clock: Clock, on_lap: OnLap, threads: Threads | None = None
) -> dict[str, TrainResult]:
    """Train all, a round of each in turn, until their steps or the time are over. The schedules follow the clock.

    A run that resumes behind the others catches up first. If one stops, all write a checkpoint.
    """
    with ExitStack() as stack:
        works = {}
        for name, running in runs.items():
            stack.callback(running.close)  # in reverse order: each handles signals until it ends
            works[name] = next(running)
        while True:
            started, share = clock.now(), clock.share()
            least, most = (limit(work.step for work in works.values()) for limit in (min, max))
            behind = [name for name, work in works.items() if work.step == least]
            for name in behind:
                # Equal steps are worth more than the last seconds: one that is behind takes its steps in any case.
                works[name].share = share if least == most > 0 else min(share, LATE)
            if least == most and any(work.used() >= 1 for work in works.values()):
                break
            for name in behind:
                next(runs[name])
            lap = clock.now() - started
            clock.lap = max(0.5 * clock.lap, lap)
            if threads and behind == list(works):  # the last lap of an epoch may have fewer steps
                threads.note(lap / (works[behind[0]].step - least))
            first = next(iter(works.values()))
            on_lap(first.used(), _left(clock, first.step / first.steps), f"step {first.step:,}")
        results = {name: run_to_end(runs[name]) for name in reversed(list(runs))}
        return {name: results[name] for name in runs}


def _left(clock: Clock, steps: float) -> float:
    """Seconds left: of the time or, if the steps end earlier, of the steps."""
    by_time = clock.seconds - clock.passed
    return max(0.0, min(by_time, clock.passed * (1 - steps) / steps) if steps and not clock.before else by_time)


@torch.no_grad()
def right_answers(net: nn.Module, part: Part, batch: int = 256) -> list[bool]:
    """Whether the network classifies each image of a part correctly, in the order of the part.

    >>> from idarts.data import load
    >>> from torch import nn
    >>> test = load("digits").test
    >>> len(right_answers(nn.Sequential(nn.Flatten(), nn.Linear(64, 10)), test)) == len(test)
    True
    """
    net.eval()
    batches = Batches(part, batch, shuffle=False, drop_last=False, device=next(net.parameters()).device)
    answers = [net(images).argmax(dim=1) == labels for images, labels in batches.one_epoch()]
    return torch.cat(answers).tolist()
