"""Looking at a supernet without training it: what α selects, and how good a mixture is on validation batches."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from idarts.arch import Architecture
from idarts.engine.ranks import all_mean
from idarts.errors import NotFiniteError
from idarts.hypergrad.lift import call_module
from idarts.layers.mixture import Mixture
from idarts.searching.round import Step, judged
from idarts.searching.settings import Selection
from idarts.spaces import Supernet

if TYPE_CHECKING:
    from idarts.searching.loop import Search

Batch = tuple[Any, Any]
FORWARD_COST = 1 / 3  # of a gradient evaluation: forward, and backward in weights and in activations


def largest(net: Supernet, selection: Selection, alphas: Mapping[str, Tensor] | None = None) -> Architecture:
    """The architecture of the largest α, by the space's rule, or of values in its place; without `none`, if barred.

    >>> from idarts.spaces import space
    >>> chosen = space("nas-bench-201")
    >>> net = chosen.supernet(chosen.skeleton.changed(depth=1, channels=4))
    >>> alphas = {"cell": torch.tensor([[3.0, 0.0, 0.0, 2.0, 0.0]] * 6)}
    >>> [largest(net, Selection(none=none), alphas).cell.edges[0].op for none in (True, False)]
    ['none', 'nor_conv_3x3']
    """
    values = {name: alpha.detach().clone() for name, alpha in (alphas or net.alpha).items()}
    if not selection.none and net.none is not None:
        for value in values.values():
            value[:, net.none] = -torch.inf
    with _alpha_set_to(net, values):
        return net.architecture()


@torch.no_grad()
def look(search: "Search", mixtures: Mapping[str, Mixture]) -> Step:
    """Loss and accuracy of mixtures on the next validation batch; a loss that is not finite ends the step."""
    inputs, targets = next(search.task.valid)
    with statistics_kept(search.net):
        outputs = call_module(search.net, inputs, mixtures=mixtures)
    search.spent.gradient_evaluations += FORWARD_COST
    loss, accuracy = all_mean(judged(search.task.loss(outputs, targets), outputs, targets)).tolist()
    if not torch.tensor(loss).isfinite():
        raise NotFiniteError("the validation loss is not finite")
    return Step(loss, accuracy)


@dataclass(frozen=True)
class Judge:
    """Scores mixtures on some validation batches: the larger, the better."""

    net: Supernet
    batches: list[Batch]
    score: Callable[[Any, Any], Tensor]

    @classmethod
    def of(cls, search: "Search") -> "Judge":
        """The judge of a selection: it draws its batches, of which each rank sees its share."""

        def score(outputs: Any, labels: Any) -> Tensor:
            """Accuracy or, where the task is not classification, the negative loss."""
            loss, right = judged(search.task.loss(outputs, labels), outputs, labels)
            return all_mean(torch.where(right.isnan(), -loss, right))

        return cls(search.net, [next(search.task.valid) for _ in range(search.selection.batches)], score)

    @torch.no_grad()
    def __call__(self, mixtures: Mapping[str, Mixture]) -> float:
        """BatchNorm uses each batch's own statistics, as in training: the running ones are not those of a path."""
        with statistics_kept(self.net):
            scores = [self.score(call_module(self.net, x, mixtures=mixtures), y) for x, y in self.batches]
        return float(torch.stack(scores).mean())

    @property
    def cost(self) -> float:
        """Of one judgement, in gradient evaluations."""
        return FORWARD_COST * len(self.batches)


@contextmanager
def _alpha_set_to(net: Supernet, values: Mapping[str, Tensor]) -> Iterator[None]:
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
    """Restore BatchNorm's running statistics afterwards: a look at a path leaves no trace in them."""
    kept = {name: buffer.clone() for name, buffer in net.named_buffers()}
    try:
        yield
    finally:
        with torch.no_grad():
            for name, buffer in net.named_buffers():
                buffer.copy_(kept[name])
