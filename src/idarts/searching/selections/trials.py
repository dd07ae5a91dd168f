"""Candidates trained for real: the architecture of α and its neighbours, each from scratch for a few steps.

In a supernet every edge has a skip connection in its mixture, so no single one is needed there; in the final, deep
network a skip connection may decide whether it learns at all. α cannot see that, and a few steps of that network can.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor, nn

from idarts.arch import Architecture
from idarts.engine.ranks import all_mean
from idarts.engine.schedules import learning_rate
from idarts.engine.sgd import SGD
from idarts.searching.judge import FORWARD_COST, Batch, Judge
from idarts.searching.registries import SELECTIONS
from idarts.searching.strategy import Selected, Tried
from idarts.searching.streams import replay

if TYPE_CHECKING:
    from idarts.searching.loop import Search


@SELECTIONS.register("trials")
class Trials:
    """Successive halving over the neighbours of α: train all, keep the better half, double the steps, repeat."""

    needs_network: ClassVar[bool] = True  # so a model that no networks can be built of is refused before the search

    def __call__(self, search: "Search") -> Selected:
        judge = Judge.of(search)
        return halve(neighbours(search), Trial.of(search, judge.batches), search.selection.steps, search.on_message)


def neighbours(search: "Search") -> list[Architecture]:
    """What α stands for, then what it would if one decision fell otherwise, the nearest by α first."""
    alphas = {name: alpha.detach().clone() for name, alpha in search.net.alpha.items()}
    candidates: list[tuple[float, Architecture]] = [(-1.0, search.pick(alphas))]
    for name, alpha in alphas.items():
        for row in range(len(alpha)):
            first = int(alpha[row].argmax())
            for column in range(alpha.shape[1]):
                other = alpha.clone()
                other[row, [first, column]] = alpha[row, [column, first]]
                gap = float(alpha[row, first] - alpha[row, column])
                candidates.append((gap, search.pick({**alphas, name: other})))
    nearest = sorted(candidates, key=lambda candidate: candidate[0])
    different = {str(architecture): architecture for _, architecture in nearest}
    return list(different.values())[: search.selection.samples]


@dataclass(frozen=True)
class Trial:
    """A short training, the same for every candidate: the same seed, the same batches, of which each rank has a share.

    Longer ones start from other weights, so that a lucky draw does not win twice.
    """

    network: Callable[[Architecture], nn.Module]
    train: Callable[[], Iterator[Batch]]
    valid: list[Batch]
    loss: Callable[[Any, Any], Tensor]
    rate: float
    seed: int

    @classmethod
    def of(cls, search: "Search", valid: list[Batch]) -> "Trial":
        """The trial of a search: its networks, its training batches from here on, its loss."""
        task = search.task
        assert task.network is not None
        return cls(task.network, replay(task.train), valid, task.loss, search.selection.rate, search.settings.seed)

    def __call__(self, architecture: Architecture, steps: int) -> float:
        """The loss on the validation batches after so many steps, by those batches' own statistics."""
        with torch.random.fork_rng():
            torch.manual_seed(self.seed + steps)
            net = self.network(architecture).train()
        sgd = SGD(net.parameters(), momentum=0.9, nesterov=True, decay=5e-4)
        for step, (inputs, targets) in zip(range(steps), self.train(), strict=False):
            loss = self.loss(net(inputs), targets)
            rate = learning_rate(self.rate, 0.0, step, steps)
            sgd.step(sgd.gradients(loss), loss.detach().reshape(1), rate)
        with torch.no_grad():
            losses = torch.stack([self.loss(net(inputs), targets) for inputs, targets in self.valid])
        mean = all_mean(losses.mean()).item()
        return mean if math.isfinite(mean) else math.inf


def halve(
    candidates: list[Architecture], trial: Trial, steps: int, on_message: Callable[[str], None] = lambda _: None
) -> Selected:
    """Successive halving: the better half is tried again, twice as long, until one is left."""
    cost, every = 0.0, []
    while len(candidates) > 1:
        tried: list[Tried] = []
        for candidate in candidates:
            on_message(f"selection: trial {len(tried) + 1} of {len(candidates)}, {steps} steps each")
            tried.append(Tried(candidate, steps, trial(candidate, steps)))
        cost += len(candidates) * (steps + FORWARD_COST * len(trial.valid))
        best_first = sorted(tried, key=lambda one: one.loss)
        candidates = [one.architecture for one in best_first[: len(candidates) // 2]]
        every += best_first
        steps *= 2
    return Selected(candidates[0], cost, every)
