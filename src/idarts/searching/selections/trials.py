"""Candidates trained for real: the architecture of α and its neighbours, each from scratch for a few steps.

In a supernet every edge has a skip connection in its mixture, so no single one is needed there; in the final, deep
network a skip connection may decide whether it learns at all. α cannot see that, and a few steps of that network can.
"""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor, nn

from idarts.arch import Architecture
from idarts.engine.ranks import all_mean
from idarts.engine.schedules import learning_rate
from idarts.engine.sgd import SGD
from idarts.hypergrad.isolation import forked
from idarts.layers import lean_depthwise
from idarts.searching.candidates import CANDIDATES
from idarts.searching.judge import FORWARD_COST, Batch
from idarts.searching.registries import SELECTIONS
from idarts.searching.round import accuracy
from idarts.searching.strategy import Selected, Tried
from idarts.searching.streams import peek_batch, replay

if TYPE_CHECKING:
    from idarts.searching.loop import Search


LOOKS = 8  # at the validation batches during a trial that is judged by the best of its curve
FEWEST_STEPS = 10  # of a trial: with fewer, candidates hardly differ
SLACK = 1.2  # for what a trial takes beside its steps
SHORTEST = 1e-6  # seconds of a step, where the clock cannot tell


@SELECTIONS.register("trials")
class Trials:
    """Successive halving over the neighbours of α: train all, keep the better half, double the steps, repeat."""

    needs_network: ClassVar[bool] = True  # so a model that no networks can be built of is refused before the search

    def __init__(self) -> None:
        self.step_seconds: float | None = None  # of one step of a trial, measured once

    def __call__(self, search: "Search") -> Selected:
        trial = Trial.of(search, [next(search.task.valid) for _ in range(search.selection.batches)])
        steps, pace = search.selection.steps, self._step_seconds(search)
        propose = search.task.candidates or CANDIDATES[search.selection.candidates]
        candidates = search.strategy.finalists(search.selection.samples) or propose(search)
        most = math.inf if search.settings.minutes is None else max(search.seconds_left(), 0.0) / pace
        count, shorter = shortened(len(candidates), steps, most)
        if (count, shorter) != (len(candidates), steps):
            search.on_message(f"selection: {count} candidates and {shorter} steps at first, to end in time")
        return halve(candidates[:count], trial, shorter, search.on_message, pace, lambda: search.seconds_left() <= 0)

    def seconds(self, search: "Search") -> float:
        """As long as all trials of all candidates take, by the time of one step."""
        options = sum(sum(row) - 1 for rows in search.mask.values() for row in rows if any(row))
        most = math.inf if search.selection.candidates == "draws" else 1 + options
        count = int(min(most if search.shares_weights else search.number, search.selection.samples))
        return self._step_seconds(search) * evaluations(count, search.selection.steps) if count else 0.0

    def _step_seconds(self, search: "Search") -> float:
        if self.step_seconds is None:
            trial, batch = Trial.of(search, []), peek_batch(search.task.train)
            self.step_seconds = SLACK * trial.step_seconds(search.current(), batch)
        return self.step_seconds


def evaluations(count: int, steps: int) -> int:
    """Gradient evaluations of successive halving.

    >>> evaluations(4, 10)  # four of 10 steps, two of 20
    80
    """
    total = 0
    while count > 1:
        total += count * steps
        count, steps = count // 2, 2 * steps
    return total


def shortened(count: int, steps: int, most: float) -> tuple[int, int]:
    """Candidates and steps that need at most so many gradient evaluations: first fewer steps, then fewer candidates.

    >>> shortened(4, 40, most=200), shortened(4, 40, most=50), shortened(4, 40, most=5)
    ((4, 25), (3, 10), (1, 10))
    """
    if evaluations(count, steps) <= most:
        return count, steps
    least = min(steps, FEWEST_STEPS)
    steps = max(least, int(most / max(evaluations(count, 1), 1)))
    while count > 1 and evaluations(count, steps) > most:
        count -= 1
    return count, steps


@dataclass(frozen=True)
class Trial:
    """A short training, the same for every candidate: the same seed, the same batches, of which each rank has a share.

    Longer ones start from other weights, so that a lucky draw does not win twice. Its score is the loss on the
    validation batches at its end or, with `best`, the best of some looks at them: on few images the loss rises again.
    """

    network: Callable[[Architecture], nn.Module]
    train: Callable[[], Iterator[Batch]]
    valid: list[Batch]
    loss: Callable[[Any, Any], Tensor]
    rate: float
    seed: int
    best: bool = False
    clock: AbstractContextManager[Any] = field(default_factory=nullcontext)
    known: dict[str, float] = field(default_factory=dict)  # the losses of trials that have ended, for checkpoints

    @classmethod
    def of(cls, search: "Search", valid: list[Batch]) -> "Trial":
        """The trial of a search: its networks, its training batches from here on, its loss."""
        task, chosen, seed = search.task, search.selection, search.settings.seed
        assert task.network is not None
        best = chosen.judge == "best"
        train, clock, known = replay(task.train), search.clock, search.trials
        return cls(task.network, train, valid, task.loss, chosen.rate, seed, best, clock, known)

    def __call__(self, architecture: Architecture, steps: int) -> float:
        """The loss on the validation batches, by those batches' own statistics. No trial runs twice."""
        name = f"{steps} steps of {architecture}"
        if name not in self.known:
            self.known[name] = self.measure(architecture, steps)[0]
        return self.known[name]

    def measure(self, architecture: Architecture, steps: int) -> tuple[float, float]:
        """Loss and accuracy; the loss is infinite if the training diverged, the accuracy NaN if there is none."""
        with forked(self.valid):  # so that the next trial does not depend on this one
            torch.manual_seed(self.seed + steps)
            return self._trained(architecture, steps)

    def _trained(self, architecture: Architecture, steps: int) -> tuple[float, float]:
        net, sgd = self._start(architecture)
        looks, seen = self.looks(steps), []
        with self.clock:
            for step, (inputs, targets) in zip(range(steps), self.train(), strict=False):
                self._step(net, sgd, inputs, targets, learning_rate(self.rate, 0.0, step, steps))
                if step + 1 in looks:
                    seen.append(self._look(net))
        looked = torch.stack(seen).tolist()
        best = min((look for look in looked if math.isfinite(look[0])), key=lambda look: look[0], default=None)
        return (math.inf, looked[-1][1]) if best is None else (best[0], best[1])

    def looks(self, steps: int) -> set[int]:
        """The steps after which the validation batches are looked at."""
        count = min(LOOKS, steps) if self.best else 1
        return {round(steps * look / count) for look in range(1, count + 1)}

    def cost(self, steps: int) -> float:
        """In gradient evaluations."""
        return steps + FORWARD_COST * len(self.valid) * len(self.looks(steps))

    def step_seconds(self, architecture: Architecture, batch: Batch) -> float:
        """How long a step takes here: the second one on a batch, since the first one also sets things up."""
        with forked(batch):
            net, sgd = self._start(architecture)
            for _ in range(2):
                started = time.monotonic()
                self._step(net, sgd, *batch, self.rate)
        passed = torch.tensor(time.monotonic() - started, dtype=torch.float64)
        return max(float(all_mean(passed)), SHORTEST)

    def _start(self, architecture: Architecture) -> tuple[nn.Module, SGD]:
        """A new network and its optimiser."""
        net = self.network(architecture).train()
        lean_depthwise(net)
        return net, SGD(net.parameters(), momentum=0.9, nesterov=True, decay=5e-4)

    def _step(self, net: nn.Module, sgd: SGD, inputs: Any, targets: Any, rate: float) -> None:
        loss = self.loss(net(inputs), targets)
        sgd.step(sgd.gradients(loss), loss.detach().reshape(1), rate)

    @torch.no_grad()
    def _look(self, net: nn.Module) -> Tensor:
        losses, accuracies = [], []
        for inputs, targets in self.valid:
            outputs = net(inputs)
            losses.append(self.loss(outputs, targets))
            accuracies.append(accuracy(outputs, targets).to(losses[-1]))
        return all_mean(torch.stack([torch.stack(losses).mean(), torch.stack(accuracies).mean()]))


def better_half(tried: list[Tried], of: int | None = None) -> list[Architecture]:
    """The better half of the candidates, best first; of so many, where not all could be tried."""
    best_first = sorted(tried, key=lambda one: one.loss)
    return [one.architecture for one in best_first[: max(1, (of or len(tried)) // 2)]]


def halve(
    candidates: list[Architecture],
    trial: Trial,
    steps: int,
    on_message: Callable[[str], None] = lambda _: None,
    step_seconds: float = 0.0,
    time_is_up: Callable[[], bool] = lambda: False,
) -> Selected:
    """Successive halving: the better half is tried again, twice as long, until one is left or the time is up."""
    cost, every = 0.0, []
    while len(candidates) > 1 and not time_is_up():
        tried: list[Tried] = []
        for place, candidate in enumerate(candidates):
            if place and time_is_up():
                break
            left = step_seconds * (evaluations(len(candidates), steps) - place * steps)
            ends = f", about {left:.0f} s left" if left >= 1 else ""
            on_message(f"selection: trial {place + 1} of {len(candidates)}, {steps} steps each{ends}")
            tried.append(Tried(candidate, steps, trial(candidate, steps)))
        cost += len(tried) * trial.cost(steps)
        candidates = better_half(tried, len(candidates))
        every += sorted(tried, key=lambda one: one.loss)
        steps *= 2
    return Selected(candidates[0], cost, every)
