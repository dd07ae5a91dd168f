"""One round of a search: what it reads, and what is known after it."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor


class Stream(Protocol):
    """Batches without end, whose place can be saved: `idarts.data.Batches`, or anything alike."""

    def __next__(self) -> tuple[Any, Any]: ...

    def __len__(self) -> int: ...  # batches in an epoch

    def state_dict(self) -> dict[str, Any]: ...

    def load_state_dict(self, state: dict[str, Any]) -> None: ...


def peeked(stream: Stream) -> Any:
    """What the net is given next, of a stream that then stands where it stood."""
    state = stream.state_dict()
    inputs, _ = next(stream)
    stream.load_state_dict(state)
    return inputs


def replayed(stream: Stream) -> Callable[[], Iterator[tuple[Any, Any]]]:
    """What a stream gives from here on, as often as it is asked for, and never held in memory as a whole."""
    state = stream.state_dict()

    def again() -> Iterator[tuple[Any, Any]]:
        stream.load_state_dict(state)
        while True:
            yield next(stream)

    return again


@dataclass(frozen=True)
class Round:
    """What is known after one round: T weight steps and an α step.

    Where `valid_loss` is NaN the round was skipped: a number was not finite, and α did not move.
    """

    number: int
    train_loss: float
    valid_loss: float
    rate: float  # of the weights
    entropy: float  # of α's softmax, mean over decisions, 1 for uniform
    gradient_evaluations: float  # so far
    margin: float | None = None  # between the two largest weights of α's softmax, mean over decisions
    train_accuracy: float | None = None
    valid_accuracy: float | None = None
    norm: float | None = None  # of the hypergradient
    implicit_share: float | None = None
    contraction: float | None = None
    step: float | None = None  # γ
    expected_cost: float | None = None  # of the final network, under the softmax that the penalty cools
    cost: float | None = None  # of the final network that α stands for


def accuracy(outputs: Any, labels: Any) -> Tensor:
    """The share of right classes; NaN where the task is no classification."""
    if not isinstance(outputs, Tensor) or not isinstance(labels, Tensor):
        return torch.tensor(math.nan)
    if outputs.dim() < 2 or labels.is_floating_point() or labels.shape != outputs.argmax(dim=1).shape:
        return outputs.new_full((), math.nan)
    return (outputs.detach().argmax(dim=1) == labels).to(outputs.dtype).mean()


def judged(loss: Tensor, outputs: Any, labels: Any) -> Tensor:
    """Loss and accuracy of a batch, as one tensor."""
    return torch.stack([loss.detach().reshape(()), accuracy(outputs, labels).to(loss)])


def spread(alphas: tuple[torch.nn.Parameter, ...]) -> tuple[float, float]:
    """Entropy (as a share of the uniform distribution's) and margin of α's softmax, over decisions with options."""
    rows = [alpha.detach().softmax(dim=1) for alpha in alphas if alpha.shape[1] > 1]
    if not rows:
        return 0.0, 1.0
    entropies = [-(row * row.clamp_min(1e-30).log()).sum(1) / math.log(row.shape[1]) for row in rows]
    tops = [row.topk(2, dim=1).values for row in rows]
    margins = [top[:, 0] - top[:, 1] for top in tops]
    entropy, margin = torch.stack([torch.cat(entropies).mean(), torch.cat(margins).mean()]).tolist()
    return entropy, margin
