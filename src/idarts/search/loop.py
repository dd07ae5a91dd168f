"""Algorithm 1: train the weights for T steps, step α by the stochastic implicit hypergradient, repeat."""

import math
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from idarts.errors import InputError, NotFiniteError
from idarts.hypergrad import Spectrum, hypergradient, lift
from idarts.search.config import Config
from idarts.spaces import Supernet

Loss = Callable[[Any, Any], Tensor]

PATIENCE = 5  # rounds in a row without finite numbers before the search gives up


class Stream(Protocol):
    """Batches without end, whose place can be saved: `idarts.data.Batches`, or anything alike."""

    def __next__(self) -> tuple[Any, Any]: ...

    def __len__(self) -> int: ...  # batches in an epoch

    def state_dict(self) -> dict[str, Any]: ...

    def load_state_dict(self, state: dict[str, Any]) -> None: ...


@dataclass(frozen=True)
class Round:
    """What is known after one round: T weight steps and an α step.

    Without a `norm` the round was skipped: a number was not finite, and α did not move.
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


class Search:
    """A search in progress. `rounds()` goes on from wherever it stands; its state can be saved between rounds.

    >>> from idarts.data import Batches, load, split
    >>> from idarts.search import Search, config
    >>> from idarts.spaces import space
    >>> data, found = load("digits"), space("nas-bench-201")
    >>> train, valid = split(data.train, 0.5, seed=0)
    >>> net = found.supernet(found.macro.changed(depth=1, channels=4), in_channels=1)
    >>> search = Search(net, Batches(train, 16), Batches(valid, 16), config(rounds=2))
    >>> [round.number for round in search.rounds()]
    [1, 2]
    """

    def __init__(
        self, net: Supernet, train: Stream, valid: Stream, settings: Config, loss: Loss = cross_entropy
    ) -> None:
        self.net, self.train, self.valid, self.settings, self.loss = net, train, valid, settings, loss
        self.total = settings.rounds
        if settings.epochs is not None:
            self.total = max(1, round(settings.epochs * len(train) / (settings.inner_steps + 1)))
        self.w, self.a = net.weight_parameters(), net.architecture_parameters()
        weights, alpha = settings.weights, settings.alpha
        self.weight_optimizer = torch.optim.SGD(
            self.w, weights.rate, weights.momentum, weight_decay=weights.decay, nesterov=weights.nesterov
        )
        self.alpha_optimizer = torch.optim.Adam(self.a, alpha.rate, alpha.betas, weight_decay=alpha.decay)
        self.spectrum: Spectrum | None = None
        self.number, self.weight_steps, self.bad_rounds = 0, 0, 0
        self.gradient_evaluations, self.seconds = 0.0, 0.0

    def rounds(self) -> Iterator[Round]:
        """The rounds that remain, one at a time."""
        self.net.train()
        while self.weight_steps < self.settings.weights.warmup:
            self._weight_step()
        while self.number < self.total and self.used() < 1:
            started = time.monotonic()
            seen = torch.stack([self._weight_step() for _ in range(self.settings.inner_steps)]).mean(dim=0)
            self.number += 1
            found = self._alpha_step(seen)
            self.seconds += time.monotonic() - started
            yield found

    def state_dict(self) -> dict[str, Any]:
        """Tensors and plain values only, so that loading it never runs anything."""
        spectrum = self.spectrum
        return {
            "net": self.net.state_dict(),
            "weight_optimizer": self.weight_optimizer.state_dict(),
            "alpha_optimizer": self.alpha_optimizer.state_dict(),
            "train": self.train.state_dict(),
            "valid": self.valid.state_dict(),
            "spectrum": None if spectrum is None else [spectrum.vector, spectrum.eigenvalue, spectrum.age],
            "counts": [self.number, self.weight_steps, self.bad_rounds, self.gradient_evaluations],
            "seconds": self.seconds,
            "random": torch.get_rng_state(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a saved state, to the bit."""
        missing = self.state_dict().keys() - state.keys()
        if missing:
            raise InputError(f"this is no state of a search: it lacks {', '.join(sorted(missing))}")
        self.net.load_state_dict(state["net"])
        self.weight_optimizer.load_state_dict(state["weight_optimizer"])
        self.alpha_optimizer.load_state_dict(state["alpha_optimizer"])
        self.train.load_state_dict(state["train"])
        self.valid.load_state_dict(state["valid"])
        self.spectrum = None if state["spectrum"] is None else Spectrum(*state["spectrum"])
        self.number, self.weight_steps, self.bad_rounds, self.gradient_evaluations = state["counts"]
        self.seconds = state["seconds"]
        torch.set_rng_state(state["random"].cpu())

    def used(self) -> float:
        """The share of the budget that is used up, in whichever of its measures is the furthest."""
        settings = self.settings
        shares = [self.weight_steps / (self.total * settings.inner_steps + settings.weights.warmup)]
        if settings.minutes is not None:
            shares.append(self.seconds / (60 * settings.minutes))
        if settings.gradient_evaluations is not None:
            shares.append(self.gradient_evaluations / settings.gradient_evaluations)
        return min(max(shares), 1.0)

    def rate(self) -> float:
        """The weights' learning rate now: a cosine from the first to the last value over the budget."""
        weights = self.settings.weights
        return weights.last_rate + (weights.rate - weights.last_rate) * 0.5 * (1 + math.cos(math.pi * self.used()))

    def _weight_step(self) -> Tensor:
        """One SGD step on one training batch; only w's gradients are taken, so nothing gathers in α's."""
        images, labels = next(self.train)
        logits = self.net(images)
        loss = self.loss(logits, labels)
        grads = torch.autograd.grad(loss, self.w, allow_unused=True)
        finite = loss.detach().isfinite()  # stays on the device: a bad batch moves nothing, and nobody waits for it
        for parameter, grad in zip(self.w, grads, strict=True):
            parameter.grad = None if grad is None else torch.where(finite, grad, 0.0)
        if self.settings.weights.clip:
            torch.nn.utils.clip_grad_norm_(self.w, self.settings.weights.clip)
        for group in self.weight_optimizer.param_groups:
            group["lr"] = self.rate()
        self.weight_optimizer.step()
        self.weight_optimizer.zero_grad()
        self.weight_steps += 1
        self.gradient_evaluations += 1
        return torch.stack([loss.detach(), _accuracy(logits, labels)])

    def _alpha_step(self, train: Tensor) -> Round:
        """One Adam step by the hypergradient on one training and one validation batch; `train`: loss and accuracy."""
        inner = lift(self.net, self.loss, next(self.train), self.w, self.a)
        accuracies: list[Tensor] = []

        def watched(logits: Tensor, labels: Tensor) -> Tensor:
            accuracies.append(_accuracy(logits, labels))
            return self.loss(logits, labels)

        outer = lift(self.net, watched, next(self.valid), self.w, self.a)
        method = self.settings.hypergradient.method(self.rate())
        entropy, margin = _spread(self.a)
        try:
            estimate = hypergradient(inner, outer, self.w, self.a, method, spectrum=self.spectrum)
        except NotFiniteError:
            return self._skip(train, entropy, margin)
        estimate.write_grad(self.a)
        self.alpha_optimizer.step()
        self.alpha_optimizer.zero_grad()
        self.spectrum, self.bad_rounds = estimate.spectrum, 0
        facts = estimate.diagnostics
        self.gradient_evaluations += facts.gradient_evaluations
        norm = torch.cat([grad.reshape(-1) for grad in estimate.grads]).norm()
        valid = torch.stack([estimate.outer_loss, accuracies[-1]])
        train_loss, train_accuracy, valid_loss, valid_accuracy, length = torch.cat([train, valid, norm[None]]).tolist()
        return Round(
            number=self.number,
            train_loss=train_loss,
            valid_loss=valid_loss,
            rate=self.rate(),
            entropy=entropy,
            margin=margin,
            gradient_evaluations=self.gradient_evaluations,
            train_accuracy=None if math.isnan(train_accuracy) else train_accuracy,
            valid_accuracy=None if math.isnan(valid_accuracy) else valid_accuracy,
            norm=length,
            implicit_share=facts.implicit_share,
            contraction=facts.contraction,
            step=facts.step,
        )

    def _skip(self, train: Tensor, entropy: float, margin: float) -> Round:
        """α stays where it is; too many such rounds in a row end the search."""
        self.bad_rounds += 1
        warnings.warn(
            "a loss or the hypergradient was not finite, so α did not move in that round; "
            f"after {PATIENCE} such rounds in a row the search ends",
            UserWarning,
            stacklevel=2,
        )
        if self.bad_rounds >= PATIENCE:
            raise NotFiniteError(
                f"the losses or the hypergradient were not finite in {PATIENCE} rounds in a row, the last one being "
                f"round {self.number}; lower weights.rate, or give hypergradient.damping"
            )
        return Round(
            number=self.number,
            train_loss=train[0].item(),
            valid_loss=math.nan,
            rate=self.rate(),
            entropy=entropy,
            margin=margin,
            gradient_evaluations=self.gradient_evaluations,
        )


def _accuracy(outputs: Tensor, labels: Tensor) -> Tensor:
    """The share of right classes; NaN where the task is no classification."""
    if outputs.dim() < 2 or labels.is_floating_point() or labels.shape != outputs.argmax(dim=1).shape:
        return outputs.new_full((), math.nan)
    return (outputs.detach().argmax(dim=1) == labels).to(outputs.dtype).mean()


def _spread(alphas: tuple[torch.nn.Parameter, ...]) -> tuple[float, float]:
    """Entropy (as a share of the uniform distribution's) and margin of α's softmax, over decisions with options."""
    rows = [alpha.detach().softmax(dim=1) for alpha in alphas if alpha.shape[1] > 1]
    entropies = [-(row * row.clamp_min(1e-30).log()).sum(1) / math.log(row.shape[1]) for row in rows]
    tops = [row.topk(2, dim=1).values for row in rows]
    margins = [top[:, 0] - top[:, 1] for top in tops]
    entropy, margin = torch.stack([torch.cat(entropies).mean(), torch.cat(margins).mean()]).tolist()
    return entropy, margin
