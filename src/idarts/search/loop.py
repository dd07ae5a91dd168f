"""Algorithm 1: train the weights for T steps, step α by the stochastic implicit hypergradient, repeat."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from idarts.errors import InputError, NotFiniteError
from idarts.hypergrad import Spectrum, hypergradient, lift
from idarts.search.config import Config
from idarts.spaces import Supernet

PATIENCE = 5  # rounds in a row without finite numbers before the search gives up


class Stream(Protocol):
    """Batches without end, whose place can be saved: `idarts.data.Batches`, or anything alike."""

    def __next__(self) -> tuple[Tensor, Tensor]: ...

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

    def __init__(self, net: Supernet, train: Stream, valid: Stream, settings: Config) -> None:
        self.net, self.train, self.valid, self.settings = net, train, valid, settings
        self.w, self.a = net.weight_parameters(), net.architecture_parameters()
        weights, alpha = settings.weights, settings.alpha
        self.weight_optimizer = torch.optim.SGD(
            self.w, weights.rate, weights.momentum, weight_decay=weights.decay, nesterov=weights.nesterov
        )
        self.alpha_optimizer = torch.optim.Adam(self.a, alpha.rate, alpha.betas, weight_decay=alpha.decay)
        self.spectrum: Spectrum | None = None
        self.number, self.weight_steps, self.bad_rounds = 0, 0, 0
        self.gradient_evaluations = 0.0

    def rounds(self) -> Iterator[Round]:
        """The rounds that remain, one at a time."""
        self.net.train()
        while self.weight_steps < self.settings.weights.warmup:
            self._weight_step()
        while self.number < self.settings.rounds:
            seen = torch.stack([self._weight_step() for _ in range(self.settings.inner_steps)]).mean(dim=0)
            self.number += 1
            yield self._alpha_step(seen)

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
        torch.set_rng_state(state["random"].cpu())

    def rate(self) -> float:
        """The weights' learning rate now: a cosine from the first to the last value over all weight steps."""
        weights = self.settings.weights
        total = self.settings.rounds * self.settings.inner_steps + weights.warmup
        turned = 0.5 * (1 + math.cos(math.pi * min(self.weight_steps / total, 1.0)))
        return weights.last_rate + (weights.rate - weights.last_rate) * turned

    def _weight_step(self) -> Tensor:
        """One SGD step on one training batch; only w's gradients are taken, so nothing gathers in α's."""
        images, labels = next(self.train)
        logits = self.net(images)
        loss = cross_entropy(logits, labels)
        grads = torch.autograd.grad(loss, self.w, allow_unused=True)
        for parameter, grad in zip(self.w, grads, strict=True):
            parameter.grad = grad
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
        inner = lift(self.net, cross_entropy, next(self.train), self.w, self.a)
        accuracies: list[Tensor] = []

        def watched(logits: Tensor, labels: Tensor) -> Tensor:
            accuracies.append(_accuracy(logits, labels))
            return cross_entropy(logits, labels)

        outer = lift(self.net, watched, next(self.valid), self.w, self.a)
        method = self.settings.hypergradient.method(self.rate())
        entropy = _entropy(self.a)
        try:
            estimate = hypergradient(inner, outer, self.w, self.a, method, spectrum=self.spectrum)
        except NotFiniteError:
            return self._skip(train, entropy)
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
            gradient_evaluations=self.gradient_evaluations,
            train_accuracy=train_accuracy,
            valid_accuracy=valid_accuracy,
            norm=length,
            implicit_share=facts.implicit_share,
            contraction=facts.contraction,
            step=facts.step,
        )

    def _skip(self, train: Tensor, entropy: float) -> Round:
        """α stays where it is; too many such rounds in a row end the search."""
        self.bad_rounds += 1
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
            gradient_evaluations=self.gradient_evaluations,
        )


def _accuracy(logits: Tensor, labels: Tensor) -> Tensor:
    return (logits.detach().argmax(dim=1) == labels).float().mean()


def _entropy(alphas: tuple[torch.nn.Parameter, ...]) -> float:
    """Of the softmax, as a share of the uniform distribution's, mean over all decisions with more than one option."""
    shares = [
        -(alpha.detach().softmax(1) * alpha.detach().log_softmax(1)).sum(1) / math.log(alpha.shape[1])
        for alpha in alphas
        if alpha.shape[1] > 1
    ]
    return torch.cat(shares).mean().item()
