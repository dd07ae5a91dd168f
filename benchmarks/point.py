"""The point that every hypergradient of the benchmark is taken at."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.func import functional_call
from torch.nn.functional import cross_entropy

from idarts.hypergrad import Estimate, Method, hypergradient, lift
from idarts.layers.lean import lean
from nets import BATCH, CLASSES, SIZE, Plain
from peers import Task

K, STEP = 2, 0.01  # the paper's


@dataclass(frozen=True)
class Point:
    """A net with its two minibatches: everything that a hypergradient is taken at."""

    net: Plain
    train: tuple[Tensor, Tensor]
    valid: tuple[Tensor, Tensor]

    @classmethod
    def of(cls, kind: type[Plain], *, layers: bool = False, dtype: torch.dtype = torch.float32) -> "Point":
        """Weights and batches are the same for every kind; `layers` makes the plain net's own layers lean."""
        torch.manual_seed(0)
        net = kind().to(dtype)
        images = torch.randn(2, BATCH, 3, SIZE, SIZE).to(dtype)
        labels = torch.randint(CLASSES, (2, BATCH))
        if layers:
            net = lean(net).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        layout = torch.channels_last if layers else torch.contiguous_format
        train, valid = ((x.contiguous(memory_format=layout), y) for x, y in zip(images, labels, strict=True))
        return cls(net, train, valid)

    @property
    def batches(self) -> tuple[tuple[Tensor, Tensor], ...]:
        return self.train, self.valid

    @property
    def w(self) -> tuple[Tensor, ...]:
        return tuple(p for p in self.net.parameters() if p is not self.net.alpha)

    def gradient(self) -> tuple[Tensor, ...]:
        """∇_w L1: the unit."""
        images, labels = self.train
        return torch.autograd.grad(cross_entropy(self.net(images), labels), self.w)

    def hypergradient(self, method: Method, state: Any = None) -> Estimate:
        a = (self.net.alpha,)
        inner, outer = (lift(self.net, cross_entropy, batch, self.w, a) for batch in self.batches)
        return hypergradient(inner, outer, self.w, a, method, state=state)

    def task(self) -> Task:
        inner, outer = (lift(self.net, cross_entropy, batch, self.w, (self.net.alpha,)) for batch in self.batches)
        losses = self._loss(self.train), self._loss(self.valid)
        return Task(self.net, self.w, self.net.alpha, *losses, inner, outer, K, STEP)

    def _loss(self, batch: tuple[Tensor, Tensor]) -> Callable[[Tensor], Tensor]:
        """The module as it is, buffers and all; another α than its own is put in its place."""
        images, labels = batch

        def loss(alpha: Tensor) -> Tensor:
            own = alpha is self.net.alpha
            logits = self.net(images) if own else functional_call(self.net, {"alpha": alpha}, (images,))
            return cross_entropy(logits, labels)

        return loss
