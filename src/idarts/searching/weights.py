"""The inner problem: SGD steps on the supernet's weights w."""

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from idarts.engine.gradients import bounded
from idarts.engine.ranks import mean_gradients
from idarts.hypergrad.lift import call_module
from idarts.hypergrad.products import scalar
from idarts.layers.mixture import Mixture
from idarts.searching.round import judged
from idarts.searching.settings import Config
from idarts.spaces import Supernet

if TYPE_CHECKING:
    from idarts.searching.task import Task


class WeightTraining:
    """SGD on w, one training batch a step. Only the gradients of w are taken, so none gathers in α's `.grad`."""

    def __init__(self, net: Supernet, task: "Task", settings: Config) -> None:
        self.net, self.task, self.settings = net, task, settings
        self.parameters = net.weight_parameters()
        weights = settings.weights
        self.optimizer = torch.optim.SGD(
            self.parameters, weights.rate, weights.momentum, weight_decay=weights.decay, nesterov=weights.nesterov
        )
        self.device = net.architecture_parameters()[0].device
        self.scaler = torch.amp.GradScaler(self.device.type, enabled=settings.precision == "float16")

    def step(self, mixtures: Mapping[str, Mixture], rate: float) -> Tensor:
        """One step; loss and accuracy of its batch."""
        inputs, targets = next(self.task.train)
        with self._autocast():
            outputs = call_module(self.net, inputs, mixtures=mixtures)
            loss = scalar(self.task.loss(outputs, targets), "training")
        own = torch.autograd.grad(self.scaler.scale(loss), self.parameters, allow_unused=True)
        grads, seen = mean_gradients(own, judged(loss, outputs, targets))
        for parameter, grad in zip(self.parameters, grads, strict=True):
            parameter.grad = grad
        self.scaler.unscale_(self.optimizer)
        bounded(self.parameters, seen[0], self.settings.weights.clip)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.zero_grad()
        return seen

    def _autocast(self) -> AbstractContextManager[Any]:
        """Half precision for weight steps alone: second derivatives in half precision are noise."""
        precision: str = self.settings.precision
        if precision == "float32":
            return nullcontext()
        return torch.autocast(self.device.type, getattr(torch, precision))

    def state_dict(self) -> dict[str, Any]:
        return {"weight_optimizer": self.optimizer.state_dict(), "scaler": self.scaler.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.optimizer.load_state_dict(state["weight_optimizer"])
        self.scaler.load_state_dict(state["scaler"])
