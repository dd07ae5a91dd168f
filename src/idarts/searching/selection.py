"""From α and the shared weights to one architecture: by α alone, or by what the weights do on validation batches."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from idarts.arch import Architecture
from idarts.hypergrad.lift import called
from idarts.searching.settings import Selection
from idarts.spaces import Mixture, Supernet
from idarts.spaces.relaxation import gumbel_noise

Batch = tuple[Any, Any]
Score = Callable[[Any, Any], Tensor]
FORWARD_COST = 1 / 3  # of a gradient evaluation: forward, and backward in weights and in activations


def largest(net: Supernet, rule: Selection, alphas: Mapping[str, Tensor] | None = None) -> Architecture:
    """The space's own rule on α, or on given values in its place; without `none`, if it must not be taken.

    >>> from idarts.spaces import space
    >>> found = space("nas-bench-201")
    >>> net = found.supernet(found.skeleton.changed(depth=1, channels=4))
    >>> alphas = {"cell": torch.tensor([[3.0, 0.0, 0.0, 2.0, 0.0]] * 6)}
    >>> [largest(net, Selection(none=none), alphas).cell.edges[0].op for none in (True, False)]
    ['none', 'nor_conv_3x3']
    """
    values = {name: alpha.detach().clone() for name, alpha in (alphas or net.alpha).items()}
    if not rule.none and net.none is not None:
        for value in values.values():
            value[:, net.none] = -torch.inf
    with _standing_at(net, values):
        return net.architecture()


Pick = Callable[[Supernet, Selection, Mapping[str, Tensor] | None], Architecture]


def drawn(net: Supernet, rule: Selection, pick: Pick = largest) -> Architecture:
    """An architecture at random: where the space takes the largest of a decision, by the softmax of α."""
    return pick(net, rule, {name: alpha.detach() + gumbel_noise(alpha) for name, alpha in net.alpha.items()})


@dataclass(frozen=True)
class Judge:
    """How good a mixture is on some batches: a score for each, the larger the better; counts what it costs."""

    net: Supernet
    batches: list[Batch]
    score: Score

    @torch.no_grad()
    def __call__(self, mixtures: Mapping[str, Mixture]) -> float:
        """BatchNorm takes each batch's own statistics, as in training: those on record are not a path's."""
        with statistics_kept(self.net):
            scores = [self.score(called(self.net, x, mixtures=mixtures), y) for x, y in self.batches]
        return float(torch.stack(scores).mean())

    @property
    def cost(self) -> float:
        """Of one judgement, in gradient evaluations."""
        return FORWARD_COST * len(self.batches)


def best_of(judge: Judge, candidates: list[Architecture]) -> tuple[Architecture, float]:
    """The best of some architectures with the shared weights, and what finding it cost."""
    different = list({str(candidate): candidate for candidate in candidates}.values())
    best = max(different, key=lambda candidate: judge(judge.net.path(candidate)))
    return best, judge.cost * len(different)


def by_perturbation(judge: Judge, rule: Selection, pick: Pick = largest) -> tuple[Architecture, float]:
    """DARTS-PT's rule, without its tuning in between: each decision keeps the option that is missed most.

    The options are tried one by one, the others standing mixed by the softmax; then the decision stands, and the next
    one is taken.
    """
    net, cost = judge.net, 0.0
    kept = {name: alpha.detach().clone() for name, alpha in net.alpha.items()}
    mixing = {name: value.clone() for name, value in kept.items()}  # a decision that is taken stands alone here
    if not rule.none and net.none is not None:
        for value in mixing.values():
            value[:, net.none] = -torch.inf  # it took no part in the training, or must not here
    for name, value in kept.items():
        options = [column for column in range(value.shape[1]) if column != net.none]
        for row in range(len(value)):
            left = [judge(_without(mixing, name, row, column)) for column in options]
            cost += judge.cost * len(options)
            missed, first = options[left.index(min(left))], int(value[row].argmax())
            value[row, [missed, first]] = value[row, [first, missed]]  # a rule that compares decisions sees no change
            mixing[name][row] = -torch.inf
            mixing[name][row, missed] = 0.0
    return pick(net, rule, kept), cost


def _without(values: Mapping[str, Tensor], name: str, row: int, column: int) -> dict[str, Mixture]:
    """The softmax of all, with one option taken away."""
    found = {key: value.softmax(dim=-1) for key, value in values.items()}
    without = values[name][row].clone()
    without[column] = -torch.inf
    found[name][row] = without.softmax(dim=-1)
    return {key: Mixture(value) for key, value in found.items()}


@contextmanager
def _standing_at(net: Supernet, values: Mapping[str, Tensor]) -> Iterator[None]:
    kept = {name: alpha.detach().clone() for name, alpha in net.alpha.items()}
    try:
        _write(net, values)
        yield
    finally:
        _write(net, kept)


@torch.no_grad()
def _write(net: Supernet, values: Mapping[str, Tensor]) -> None:
    for name, value in values.items():
        net.alpha[name].copy_(value)


@contextmanager
def statistics_kept(net: Supernet) -> Iterator[None]:
    """BatchNorm's running statistics are put back: a look at a path leaves no trace in them."""
    kept = {name: buffer.clone() for name, buffer in net.named_buffers()}
    try:
        yield
    finally:
        with torch.no_grad():
            for name, buffer in net.named_buffers():
                buffer.copy_(kept[name])
