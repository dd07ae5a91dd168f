"""The inner problem: SGD steps on the supernet's weights w."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from torch import Tensor

from idarts.engine.sgd import SGD
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
        self.net, self.task = net, task
        weights = settings.weights
        self.sgd = SGD(
            net.weight_parameters(),
            momentum=weights.momentum,
            nesterov=weights.nesterov,
            decay=weights.decay,
            clip=weights.clip,
            precision=settings.precision,
        )

    def step(self, mixtures: Mapping[str, Mixture], rate: float) -> Tensor:
        """One step; loss and accuracy of its batch."""
        inputs, targets = next(self.task.train)
        with self.sgd.autocast():
            outputs = call_module(self.net, inputs, mixtures=mixtures)
            loss = scalar(self.task.loss(outputs, targets), "training")
        seen, _ = self.sgd.step(self.sgd.gradients(loss), judged(loss, outputs, targets), rate)
        return seen

    def state_dict(self) -> dict[str, Any]:
        return {"weight_optimizer": self.sgd.optimizer.state_dict(), "scaler": self.sgd.scaler.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.sgd.optimizer.load_state_dict(state["weight_optimizer"])
        self.sgd.scaler.load_state_dict(state["scaler"])
