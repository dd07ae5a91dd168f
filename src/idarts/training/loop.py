"""Training from scratch: SGD steps, a word about them every so often, a look at held-out images after epochs."""

import math
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from idarts.data import Batches
from idarts.engine import Tell
from idarts.engine.gradients import bounded
from idarts.engine.ranks import (
    all_sum,
    begin_alike,
    gathered,
    joint_statistics,
    mean_buffers,
    mean_gradients,
    rank,
    require_same,
    world,
)
from idarts.errors import InputError, NotFiniteError
from idarts.hypergrad import lean
from idarts.hypergrad.isolation import random_states, set_random_states
from idarts.training.schedules import average_share, drop_path, rate
from idarts.training.settings import TrainConfig

PATIENCE = 5  # steps in a row without finite numbers before the training gives up


@dataclass(frozen=True)
class Round:
    """What is known after some steps. Of held-out images something is known at the end of epochs only."""

    number: int
    epoch: float  # epochs so far
    train_loss: float | None  # mean over the round's steps; None if none was finite
    train_accuracy: float | None
    rate: float
    drop_path: float
    skipped: int = 0  # steps that took no gradient, because a number was not finite
    valid_loss: float | None = None
    valid_accuracy: float | None = None


class Training:
    """A training in progress. `rounds()` goes on from wherever it stands; its state can be saved between rounds.

    >>> from idarts.data import load
    >>> data = load("digits")
    >>> net = nn.Sequential(nn.Flatten(), nn.Linear(64, 10))
    >>> held = Batches(data.test, 100, shuffle=False, drop_last=False)
    >>> training = Training(net, Batches(data.train, 64), held, TrainConfig(epochs=2, log_steps=11))
    >>> [(round.epoch, round.valid_accuracy is not None) for round in training.rounds()]
    [(0.5, False), (1.0, True), (1.5, False), (2.0, True)]
    """

    def __init__(self, net: nn.Module, train: Batches, held: Batches | None, settings: TrainConfig) -> None:
        self.train, self.held, self.settings = train, held, settings
        self.net = net.to(train.device)
        if settings.channels_last:
            self.net.to(memory_format=torch.channels_last)  # type: ignore[call-overload] # it takes this one alone
        begin_alike(self.net)
        self.joint = settings.batch_norm == "synchronised"
        if self.joint and world() > 1:
            lean(self.net)  # torch's own BatchNorm knows its rank's share only
        self.averaged = deepcopy(self.net).requires_grad_(False) if settings.average else None
        both = [] if self.averaged is None else [self.averaged.state_dict().values(), self.net.state_dict().values()]
        self._pairs = list(zip(*both, strict=True))
        self.model: nn.Module = torch.compile(self.net) if settings.compile else self.net  # type: ignore[assignment]
        self.w = [parameter for parameter in self.net.parameters() if parameter.requires_grad]
        weights = settings.weights
        self.optimizer = torch.optim.SGD(
            self.w, weights.rate, weights.momentum, weight_decay=weights.decay, nesterov=weights.nesterov
        )
        self.scaler = torch.amp.GradScaler(train.device.type, enabled=settings.precision == "float16")
        self.per_epoch = len(train)
        self.steps = settings.epochs * self.per_epoch
        self.total = settings.epochs * math.ceil(self.per_epoch / settings.log_steps)  # rounds
        self.number, self.step = 0, 0
        self.tell: Tell = lambda _: None
        self.bad = torch.zeros((), dtype=torch.int64, device=train.device)  # steps in a row, now
        self.sound = True
        self._keep_buffers()

    @property
    def result(self) -> nn.Module:
        """The network as it is evaluated and kept: the moving average, where there is one."""
        return self.net if self.averaged is None else self.averaged

    @property
    def epoch(self) -> float:
        """Epochs so far."""
        return self.step / self.per_epoch

    def used(self) -> float:
        """The share of the training that is done."""
        return self.step / self.steps

    def rate(self) -> float:
        """The learning rate of the next step."""
        return rate(self.settings.weights, self.epoch, self.settings.epochs)

    def drop_path(self) -> float:
        """The probability of drop-path in the next step."""
        settings = self.settings
        return drop_path(settings.drop_path, settings.weights, self.epoch, settings.epochs)

    def rounds(self) -> Iterator[Round]:
        """The rounds that remain, one at a time; each epoch ends one."""
        while self.step < self.steps:
            yield self._round()

    def _round(self) -> Round:
        settings, now = self.settings, (self.rate(), self.drop_path())
        self.net.train()
        seen = [self._step()]
        while self.step % self.per_epoch and self.step % self.per_epoch % settings.log_steps:
            seen.append(self._step())
        self.number += 1
        self._meet()
        loss, accuracy, skipped = self._summary(torch.stack(seen))
        valid_loss, valid_accuracy = None, None
        epoch, rest = divmod(self.step, self.per_epoch)
        due = not rest and (epoch % settings.evaluate_epochs == 0 or epoch == settings.epochs)
        if due and self.held is not None:
            valid_loss, valid_accuracy = loss_and_accuracy(self.result, self.held)
        return Round(self.number, self.epoch, loss, accuracy, *now, skipped, valid_loss, valid_accuracy)

    def _meet(self) -> None:
        """Between rounds all ranks hold the same state, but for what they draw next."""
        mean_buffers([self.net] if self.averaged is None else [self.net, self.averaged])
        require_same({"w": self.w}, f"after step {self.step}")

    def _step(self) -> Tensor:
        """One step of SGD; loss and accuracy, NaN where the step was skipped. Nothing waits for the device."""
        settings = self.settings
        for group in self.optimizer.param_groups:
            group["lr"] = self.rate()
        if settings.drop_path:
            self.net.drop_path = self.drop_path()  # type: ignore[assignment] # a module takes any attribute
        images, labels = next(self.train)
        images = images if settings.channels_last else images.contiguous()
        seen = images.new_zeros(2)
        parts = zip(images.chunk(settings.accumulate), labels.chunk(settings.accumulate), strict=True)
        for part, classes in parts:
            share = len(classes) / len(labels)
            with self._autocast(), joint_statistics(self.joint):
                loss, right = self._loss(part, classes)
            self.scaler.scale(share * loss).backward()
            seen += share * torch.stack([loss.detach().float(), right])
        grads, seen = mean_gradients([parameter.grad for parameter in self.w], seen)
        for parameter, grad in zip(self.w, grads, strict=True):
            parameter.grad = grad
        finite = self._finite_gradients(seen[0])
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.zero_grad()
        self.bad = torch.where(finite, 0, self.bad + 1)
        if self.averaged is not None:
            self._average()
        self.step += 1
        return torch.where(finite, seen, math.nan)

    def _loss(self, images: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """The loss, with the auxiliary head's share, and the accuracy."""
        outputs, smoothing = self.model(images), self.settings.smoothing
        logits, *others = outputs if isinstance(outputs, tuple) else (outputs,)
        loss = cross_entropy(logits, labels, label_smoothing=smoothing)
        for other in others:
            loss = loss + self.settings.auxiliary * cross_entropy(other, labels, label_smoothing=smoothing)
        return loss, (logits.detach().argmax(dim=1) == labels).float().mean()

    def _autocast(self) -> AbstractContextManager[Any]:
        precision: str = self.settings.precision
        kind = getattr(torch, precision)
        return torch.autocast(self.train.device.type, kind if precision != "float32" else None, precision != "float32")

    def _finite_gradients(self, loss: Tensor) -> Tensor:
        """Clip the gradients, and make them zero if they or the loss are not finite; whether the step counts as good.

        In float16 the scaler sees to gradients that overflow: it lowers the scale, which is nothing to worry about.
        """
        self.scaler.unscale_(self.optimizer)
        finite = bounded(self.w, loss, self.settings.weights.clip)
        return loss.isfinite() if self.scaler.is_enabled() else finite

    @torch.no_grad()
    def _average(self) -> None:
        """Move the average towards the weights, and towards BatchNorm's statistics with them."""
        share = average_share(self.settings.average, self.step)
        for old, new in self._pairs:
            if old.is_floating_point():
                old.lerp_(new, 1 - share)
            else:
                old.copy_(new)

    def _summary(self, seen: Tensor) -> tuple[float | None, float | None, int]:
        """Means of the round's finite steps, in one transfer; too many others in a row end the training."""
        skipped = seen[:, 0].isnan().sum()
        means = torch.cat([seen.nanmean(dim=0).double(), torch.stack([skipped, self.bad]).double()])
        loss, accuracy, count, bad = means.tolist()
        self.sound = not bad
        if count:
            warnings.warn(
                f"in {count:.0f} of {len(seen)} steps the loss or its gradient was not finite, so they were skipped; "
                f"after {PATIENCE} such steps in a row the training ends",
                UserWarning,
                stacklevel=2,
            )
            self._restore_buffers()
        if bad >= PATIENCE:
            raise NotFiniteError(
                f"the loss or its gradient was not finite in {bad:.0f} steps in a row, the last one being step "
                f"{self.step}; lower weights.rate, or use precision float32"
            )
        self._keep_buffers()
        return None if math.isnan(loss) else loss, None if math.isnan(accuracy) else accuracy, int(count)

    def _keep_buffers(self) -> None:
        """BatchNorm's statistics take in a bad batch before its loss is known."""
        self._kept = [(buffer, buffer.clone()) for buffer in self._buffers()]

    def _restore_buffers(self) -> None:
        for buffer, kept in self._kept:
            if not buffer.isfinite().all():
                buffer.copy_(kept)

    def _buffers(self) -> Iterator[Tensor]:
        yield from self.net.buffers()
        if self.averaged is not None:
            yield from self.averaged.buffers()

    def state_dict(self) -> dict[str, Any]:
        """Tensors and plain values only, so that loading it never runs anything."""
        return {
            "net": self.net.state_dict(),
            "averaged": None if self.averaged is None else self.averaged.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "scaler": self.scaler.state_dict(),
            "train": self.train.state_dict(),
            "counts": [self.number, self.step, int(self.bad)],
            "random": [gathered(own) for own in random_states([self.train.device])],  # drop-path draws on the device
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a saved state, to the bit."""
        missing = self.state_dict().keys() - state.keys()
        if missing:
            raise InputError(f"this is no state of a training: it lacks {', '.join(sorted(missing))}")
        self.net.load_state_dict(state["net"])
        if self.averaged is not None:
            self.averaged.load_state_dict(state["averaged"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.scaler.load_state_dict(state["scaler"])
        self.train.load_state_dict(state["train"])
        self.number, self.step, bad = state["counts"]
        self.bad.fill_(bad)
        self._keep_buffers()
        if len(state["random"][0]) == world():  # with more ranks than then, or fewer, all go on as they began
            set_random_states([self.train.device], [states[rank()] for states in state["random"]])


@torch.no_grad()
def loss_and_accuracy(net: nn.Module, batches: Batches) -> tuple[float, float]:
    """Loss and accuracy of one pass, in evaluation mode and full precision; on several ranks, of all their passes.

    >>> from idarts.data import load
    >>> test = Batches(load("digits").test, 100, shuffle=False, drop_last=False)
    >>> net = nn.Sequential(nn.Flatten(), nn.Linear(64, 10))
    >>> nn.utils.vector_to_parameters(torch.zeros(650), net.parameters())
    >>> round(loss_and_accuracy(net, test)[0], 4)  # log 10: it knows nothing
    2.3026
    """
    net.eval()
    sums = []
    for images, labels in batches.one_epoch():
        logits = net(images)
        right = (logits.argmax(dim=1) == labels).sum()
        count = torch.full_like(right, len(labels))
        sums.append(torch.stack([cross_entropy(logits, labels, reduction="sum").double(), right.double(), count]))
    loss, right, count = all_sum(torch.stack(sums).sum(dim=0)).tolist()
    return loss / count, right / count
