"""One round of a search: what is known after it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from idarts.layers.constants import constant
from idarts.searching.stage import Mask

if TYPE_CHECKING:
    from idarts.searching.loop import Search


@dataclass(frozen=True)
class Step:
    """What a step on the architecture saw: loss and accuracy on validation data (NaN: unknown), other measures."""

    loss: float = math.nan
    accuracy: float = math.nan
    measures: dict[str, float | None] = field(default_factory=dict)

    @property
    def reward(self) -> float:
        """Accuracy or, where the task is not classification, the negative loss.

        >>> Step(2.0, 0.25).reward, Step(2.0).reward
        (0.25, -2.0)
        """
        return -self.loss if math.isnan(self.accuracy) else self.accuracy


@dataclass(frozen=True)
class Round:
    """What is known after one round: T weight steps and a step on the architecture. None: it does not apply.

    Where `valid_loss` is NaN the round was skipped: a number was not finite, and α did not move.
    """

    number: int
    train_loss: float | None = None
    valid_loss: float | None = None
    rate: float | None = None  # of the weights
    entropy: float | None = None  # of α's softmax among the options that take part, mean over decisions, 1 for uniform
    gradient_evaluations: float | None = None  # so far
    margin: float | None = None  # between the two largest weights of α's softmax, mean over decisions
    train_accuracy: float | None = None
    valid_accuracy: float | None = None
    stage: int | None = None  # from 1, where a search has several
    expected_cost: float | None = None  # of the final network, under the softmax that the penalty cools
    cost: float | None = None  # of the final network that α selects
    measures: dict[str, float | None] = field(default_factory=dict)  # of the strategy: norm, implicit_share, …

    def entry(self) -> dict[str, Any]:
        """The round as one line of `metrics.jsonl`.

        >>> entry = Round(1, valid_loss=2.5, measures={"norm": 0.1}).entry()
        >>> entry["valid_loss"], entry["norm"], entry["train_loss"]
        (2.5, 0.1, None)
        """
        values = {part.name: getattr(self, part.name) for part in fields(self) if part.name != "measures"}
        if self.stage is None:
            del values["stage"]
        return {**values, **self.measures}


def round_of(search: "Search", train: Tensor, step: Step) -> Round:
    """What is known of a search after T weight steps (their mean loss and accuracy) and a step on the architecture."""
    entropy, margin = search.spread() if search.shares_weights else (None, None)
    train_loss, train_accuracy = train.tolist()
    cost = search.cost
    return Round(
        number=search.number,
        train_loss=train_loss if search.shares_weights else None,
        valid_loss=None if math.isnan(step.loss) and step.measures else step.loss,  # a table knows no loss
        rate=search.rate() if search.shares_weights else None,
        entropy=entropy,
        margin=margin,
        gradient_evaluations=search.gradient_evaluations,
        train_accuracy=None if math.isnan(train_accuracy) else train_accuracy,
        valid_accuracy=None if math.isnan(step.accuracy) else step.accuracy,
        stage=search.stage + 1 if len(search.stages) > 1 else None,
        expected_cost=cost.expected_at(search.used()).item() if cost else None,
        cost=cost.cost(search.current()) if cost else None,
        measures=step.measures,
    )


def accuracy(outputs: Any, labels: Any) -> Tensor:
    """The share of correct classes; NaN where the task is not classification.

    >>> outputs, labels = torch.tensor([[2.0, 1.0], [3.0, 4.0]]), torch.tensor([0, 0])
    >>> accuracy(outputs, labels), accuracy(outputs, [0, 0]), accuracy([outputs], labels)
    (tensor(0.5000), tensor(nan), tensor(nan))
    """
    if not isinstance(outputs, Tensor) or not isinstance(labels, Tensor):
        return torch.tensor(math.nan)
    if outputs.dim() < 2 or labels.is_floating_point() or labels.shape != outputs.argmax(dim=1).shape:
        return outputs.new_full((), math.nan)
    return (outputs.detach().argmax(dim=1) == labels).to(outputs.dtype).mean()


def judged(loss: Tensor, outputs: Any, labels: Any) -> Tensor:
    """Loss and accuracy of a batch, as one tensor."""
    return torch.stack([loss.detach().reshape(()), accuracy(outputs, labels).to(loss)])


def spread(alphas: Mapping[str, Tensor], mask: Mask) -> tuple[float, float]:
    """Entropy (as a share of the uniform distribution's) and margin of α's softmax among the living options.

    Decisions with one living option are left out.

    >>> spread({"cell": torch.tensor([[9.0, 0.0, 0.0]])}, {"cell": [[False, True, True]]})
    (1.0, 0.0)
    """
    entropies, margins = [], []
    for name, alpha in alphas.items():
        rows = [row for row, alive in enumerate(mask[name]) if sum(alive) > 1]
        if rows:
            alive = constant([mask[name][row] for row in rows], alpha.device)
            shares = alpha.detach()[constant(rows, alpha.device)].masked_fill(~alive, -torch.inf).softmax(dim=1)
            entropy = -(shares * shares.clamp_min(1e-30).log()).sum(1)
            uniform = [math.log(sum(mask[name][row])) for row in rows]
            one = uniform[0] if len(set(uniform)) == 1 else constant(uniform, entropy.device, entropy.dtype)
            entropies.append(entropy / one)
            top = shares.topk(2, dim=1).values
            margins.append(top[:, 0] - top[:, 1])
    if not entropies:
        return 0.0, 1.0
    mean, margin = torch.stack([torch.cat(entropies).mean(), torch.cat(margins).mean()]).tolist()
    return mean, margin
