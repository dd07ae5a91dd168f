"""Candidates tried for real: what α stands for and its neighbours, each trained from scratch for a little while.

In a supernet every edge has a skip connection in its mixture, so none of them is needed there; in the final, deep
network one may decide whether it learns at all. Such things α cannot see, and a few steps of that network show them.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from idarts.arch import Architecture
from idarts.engine import Tell
from idarts.engine.ranks import all_mean, mean_gradients
from idarts.searching.selection import FORWARD_COST, Batch, Pick, largest
from idarts.searching.settings import Selection
from idarts.spaces import Supernet

Build = Callable[[Architecture], nn.Module]


def neighbours(net: Supernet, rule: Selection, pick: Pick = largest) -> list[Architecture]:
    """What α stands for, then what it would if one decision fell otherwise, the nearest by α first.

    >>> from idarts.spaces import space
    >>> found = space("nas-bench-201")
    >>> net = found.supernet(found.skeleton.changed(depth=1, channels=4))
    >>> len(neighbours(net, Selection(none=False)))  # itself, and three others on each of six edges
    19
    """
    alphas = {name: alpha.detach().clone() for name, alpha in net.alpha.items()}
    found: list[tuple[float, Architecture]] = [(-1.0, pick(net, rule, alphas))]
    for name, alpha in alphas.items():
        for row in range(len(alpha)):
            first = int(alpha[row].argmax())
            for column in range(alpha.shape[1]):
                other = alpha.clone()
                other[row, [first, column]] = alpha[row, [column, first]]
                gap = float(alpha[row, first] - alpha[row, column])
                found.append((gap, pick(net, rule, {**alphas, name: other})))
    nearest = sorted(found, key=lambda one: one[0])
    return list({str(architecture): architecture for _, architecture in nearest}.values())[: rule.samples]


@dataclass(frozen=True)
class Trial:
    """A short training, the same for every candidate: the same seed, the same batches, of which each rank has a share.

    Longer ones begin from other weights, so that a lucky draw does not win twice.
    """

    build: Build
    train: Callable[[], Iterator[Batch]]
    valid: list[Batch]
    loss: Callable[[Any, Any], Tensor]
    rate: float
    seed: int

    def __call__(self, architecture: Architecture, steps: int) -> float:
        """The loss on the validation batches after so many steps, by those batches' own statistics."""
        with torch.random.fork_rng():
            torch.manual_seed(self.seed + steps)
            net = self.build(architecture).train()
        weights = list(net.parameters())
        optimizer = torch.optim.SGD(weights, self.rate, momentum=0.9, nesterov=True, weight_decay=5e-4)
        for step, (inputs, targets) in zip(range(steps), self.train(), strict=False):
            for group in optimizer.param_groups:
                group["lr"] = self.rate * 0.5 * (1 + math.cos(math.pi * step / steps))
            loss = self.loss(net(inputs), targets)
            grads, _ = mean_gradients(torch.autograd.grad(loss, weights, allow_unused=True), loss.detach())
            for weight, grad in zip(weights, grads, strict=True):
                weight.grad = grad
            optimizer.step()
        with torch.no_grad():
            losses = torch.stack([self.loss(net(inputs), targets) for inputs, targets in self.valid])
        found = all_mean(losses.mean()).item()
        return found if math.isfinite(found) else math.inf


class Tried(NamedTuple):
    """A candidate, how long it was trained, and its loss on validation batches then."""

    architecture: Architecture
    steps: int
    loss: float


def by_trials(
    trial: Trial, candidates: list[Architecture], steps: int, tell: Tell = lambda _: None
) -> tuple[Architecture, float, list[Tried]]:
    """Successive halving: the better half is tried again, twice as long, until one is left.

    Also says what it cost, in gradient evaluations, and how every trial ended.
    """
    cost, every = 0.0, []
    while len(candidates) > 1:
        found: list[Tried] = []
        for candidate in candidates:
            tell(f"selection: trial {len(found) + 1} of {len(candidates)}, {steps} steps each")
            found.append(Tried(candidate, steps, trial(candidate, steps)))
        cost += len(candidates) * (steps + FORWARD_COST * len(trial.valid))
        best_first = sorted(found, key=lambda tried: tried.loss)
        candidates = [tried.architecture for tried in best_first[: len(candidates) // 2]]
        every += best_first
        steps *= 2
    return candidates[0], cost, every
