"""The loop of a training from scratch: steps of SGD, grouped into rounds, with an evaluation after epochs."""

import math
import warnings
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from idarts.data import Batches
from idarts.engine.ranks import average_buffers, copy_from_first, gather, joint_statistics, rank, require_same, world
from idarts.engine.run import OnMessage
from idarts.engine.schedules import learning_rate
from idarts.engine.sgd import SGD
from idarts.errors import InputError, NotFiniteError
from idarts.hypergrad.isolation import random_states, set_random_states
from idarts.layers import lean, lean_depthwise
from idarts.training.evaluation import loss_and_accuracy
from idarts.training.settings import TrainConfig

PATIENCE = 5  # steps in a row with numbers that are not finite, after which the training ends


@dataclass(frozen=True)
class Round:
    """The record of some steps. Held-out images are evaluated at the end of epochs only."""

    number: int
    epoch: float  # epochs so far
    train_loss: float | None  # mean over the round's steps; None if none was finite
    train_accuracy: float | None
    rate: float
    drop_path: float
    skipped: int = 0  # steps without a gradient, because a number was not finite
    valid_loss: float | None = None
    valid_accuracy: float | None = None
    valid_images: int | None = None  # that both were measured on


class Training:
    """A training in progress. `rounds()` continues from the current step; the state can be saved between rounds.

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
        copy_from_first(self.net)
        self.joint = settings.batch_norm == "synchronised"
        if self.joint and world() > 1:
            lean(self.net)  # torch's own BatchNorm sees only the share of its rank
        else:
            lean_depthwise(self.net)
        self.averaged = deepcopy(self.net).requires_grad_(False) if settings.average else None
        both = [] if self.averaged is None else [self.averaged.state_dict().values(), self.net.state_dict().values()]
        self._averages = list(zip(*both, strict=True))
        self.model: nn.Module = torch.compile(self.net) if settings.compile else self.net  # type: ignore[assignment]
        self.w = [parameter for parameter in self.net.parameters() if parameter.requires_grad]
        self.sgd = SGD(
            self.w,
            momentum=settings.weights.momentum,
            nesterov=settings.weights.nesterov,
            decay=settings.weights.decay,
            clip=settings.weights.clip,
            precision=settings.precision,
        )
        self.per_epoch = len(train)
        self.steps = settings.epochs * self.per_epoch
        self.total = settings.epochs * math.ceil(self.per_epoch / settings.log_steps)  # rounds
        self.number, self.step = 0, 0
        self.share = 0.0  # of the time that is used, where a caller keeps the time: schedules follow it if it leads
        self.on_message: OnMessage = lambda _: None
        self.bad = torch.zeros((), dtype=torch.int64, device=train.device)  # steps in a row that were skipped
        self.healthy = True
        self._keep_buffers()

    @property
    def result(self) -> nn.Module:
        """The network that is evaluated and saved: the moving average, if there is one."""
        return self.net if self.averaged is None else self.averaged

    @property
    def epoch(self) -> float:
        """Epochs so far."""
        return self.step / self.per_epoch

    def used(self) -> float:
        """The share of the training that is done, by steps or by the caller's clock, whichever is further."""
        return max(self.step / self.steps, self.share)

    def rate(self) -> float:
        """The learning rate of the next step."""
        weights = self.settings.weights
        return learning_rate(weights.rate, weights.last_rate, self._now(), self.settings.epochs, weights.schedule)

    def drop_path(self) -> float:
        """The probability of drop-path in the next step, which rises in a straight line."""
        return self.settings.drop_path * self._now() / self.settings.epochs

    def _now(self) -> float:
        """The epoch of the schedules, which change with every step, or with every epoch."""
        epoch = max(self.epoch, self.share * self.settings.epochs)
        return math.floor(epoch) if self.settings.weights.by == "epoch" else epoch

    def rounds(self) -> Iterator[Round]:
        """The rounds that remain, one at a time. The end of an epoch also ends a round."""
        while self.used() < 1:
            yield self._round()

    def _round(self) -> Round:
        settings, now = self.settings, (self.rate(), self.drop_path())
        self.net.train()
        seen = [self._step()]
        while self.step % self.per_epoch and self.step % self.per_epoch % settings.log_steps:
            seen.append(self._step())
        self.number += 1
        self._synchronise()
        loss, accuracy, skipped = self._summary(torch.stack(seen))
        held: tuple[float, float, int] | tuple[()] = ()
        epoch, rest = divmod(self.step, self.per_epoch)
        due = not rest and (epoch % settings.evaluate_epochs == 0 or epoch == settings.epochs)
        if due and self.held is not None:
            held = (*loss_and_accuracy(self.result, self.held), len(self.held.part))
        return Round(self.number, self.epoch, loss, accuracy, *now, skipped, *held)

    def _step(self) -> Tensor:
        """One step of SGD. Returns loss and accuracy, NaN if the step was skipped; nothing waits for the device."""
        settings = self.settings
        if settings.drop_path:
            self.net.drop_path = self.drop_path()  # type: ignore[assignment] # a module takes any attribute
        images, labels = next(self.train)
        images = images if settings.channels_last else images.contiguous()
        seen = images.new_zeros(2)
        parts = zip(images.chunk(settings.accumulate), labels.chunk(settings.accumulate), strict=True)
        for part, classes in parts:
            share = len(classes) / len(labels)
            with self.sgd.autocast(), joint_statistics(self.joint):
                loss, right = self._loss(part, classes)
            self.sgd.scaler.scale(share * loss).backward()
            seen += share * torch.stack([loss.detach().float(), right])
        seen, finite = self.sgd.step([parameter.grad for parameter in self.w], seen, self.rate())
        self.bad = torch.where(finite, 0, self.bad + 1)
        self._average()
        self.step += 1
        return torch.where(finite, seen, math.nan)

    def _loss(self, images: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """The loss, with that of the auxiliary head, and the accuracy."""
        outputs, smoothing = self.model(images), self.settings.smoothing
        logits, *others = outputs if isinstance(outputs, tuple) else (outputs,)
        loss = cross_entropy(logits, labels, label_smoothing=smoothing)
        for other in others:
            loss = loss + self.settings.auxiliary * cross_entropy(other, labels, label_smoothing=smoothing)
        return loss, (logits.detach().argmax(dim=1) == labels).float().mean()

    @torch.no_grad()
    def _average(self) -> None:
        """Move the average towards the weights and BatchNorm's statistics, faster in the first steps."""
        keep = min(self.settings.average, (1 + self.step) / (10 + self.step))
        for old, new in self._averages:
            if old.is_floating_point():
                old.lerp_(new, 1 - keep)
            else:
                old.copy_(new)

    def _synchronise(self) -> None:
        """Between rounds all ranks have the same state, except for their random generators."""
        average_buffers([self.net] if self.averaged is None else [self.net, self.averaged])
        require_same({"w": self.w}, f"after step {self.step}")

    def _summary(self, seen: Tensor) -> tuple[float | None, float | None, int]:
        """Mean loss and accuracy of the round's finite steps, and the number of the others, in one transfer."""
        skipped = seen[:, 0].isnan().sum()
        means = torch.cat([seen.nanmean(dim=0).double(), torch.stack([skipped, self.bad]).double()])
        loss, accuracy, count, bad = means.tolist()
        self.healthy = not bad
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
        """BatchNorm's statistics include a bad batch before its loss is known."""
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
        """The state, as tensors and plain values only, so that loading it runs no code."""
        return {
            "net": self.net.state_dict(),
            "averaged": None if self.averaged is None else self.averaged.state_dict(),
            "optimizer": self.sgd.optimizer.state_dict(),
            "scaler": self.sgd.scaler.state_dict(),
            "train": self.train.state_dict(),
            "counts": [self.number, self.step, int(self.bad)],
            "random": [gather(own) for own in random_states([self.train.device])],  # drop-path draws on the device
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a saved state, bit for bit."""
        missing = self.state_dict().keys() - state.keys()
        if missing:
            raise InputError(f"this is not the state of a training: it lacks {', '.join(sorted(missing))}")
        self.net.load_state_dict(state["net"])
        if self.averaged is not None:
            self.averaged.load_state_dict(state["averaged"])
        self.sgd.optimizer.load_state_dict(state["optimizer"])
        self.sgd.scaler.load_state_dict(state["scaler"])
        self.train.load_state_dict(state["train"])
        self.number, self.step, bad = state["counts"]
        self.bad.fill_(bad)
        self._keep_buffers()
        if len(state["random"][0]) == world():  # on another number of ranks, the generators start anew
            set_random_states([self.train.device], [states[rank()] for states in state["random"]])
