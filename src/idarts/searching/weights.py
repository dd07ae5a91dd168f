"""The inner problem: SGD steps on the supernet's weights w."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from idarts.engine.sgd import SGD
from idarts.hypergrad.lift import call_module
from idarts.hypergrad.products import scalar
from idarts.layers.mixture import Mixture
from idarts.searching.registries import OBJECTIVES, require_options
from idarts.searching.round import judged
from idarts.searching.settings import Config
from idarts.spaces import Supernet

if TYPE_CHECKING:
    from idarts.searching.task import Task


class WeightTraining:
    """SGD on w, one training batch a step, by the settings' objective.

    Nothing gathers in a `.grad`. A strategy with one level puts α into `also`: its gradient in the last step is in
    `also_grads`, for no further evaluation.
    """

    evaluations: int  # of gradients in the last step

    def __init__(self, net: Supernet, task: "Task", settings: Config) -> None:
        self.net, self.task = net, task
        weights = settings.weights
        require_options(OBJECTIVES, weights.objective, weights.objective_options)
        self.objective = OBJECTIVES[weights.objective](settings, **weights.objective_options)
        self.also: tuple[nn.Parameter, ...] = ()
        self.also_grads: list[Tensor] = []
        self.sgd = SGD(
            net.weight_parameters(),
            momentum=weights.momentum,
            nesterov=weights.nesterov,
            decay=weights.decay,
            clip=weights.clip,
            precision=settings.precision,
        )

    def step(self, draw: Callable[[], Mapping[str, Mixture]], rate: float) -> Tensor:
        """One step on what is drawn; loss and accuracy of its batch, the mean of all mixtures that it looked at."""
        batches = (next(self.task.train) for _ in range(1))  # drawn when it is needed, after the first mixtures
        batch: list[Any] = []
        seen: list[Tensor] = []

        def evaluate(mixtures: Mapping[str, Mixture]) -> Tensor:
            batch.extend(batches)
            ((inputs, targets),) = batch  # one for all mixtures
            with self.sgd.autocast():
                outputs = call_module(self.net, inputs, mixtures=mixtures)
                loss = scalar(self.task.loss(outputs, targets), "training")
            seen.append(judged(loss, outputs, targets))
            return loss

        grads = self.sgd.gradients(self.objective(draw, evaluate), self.also)
        self.evaluations, count = len(seen), len(self.sgd.w)
        scale = self.sgd.scaler.get_scale()
        self.also_grads = [
            torch.zeros_like(a) if grad is None else grad / scale
            for a, grad in zip(self.also, grads[count:], strict=True)
        ]
        mean, _ = self.sgd.step(grads[:count], seen[0] if len(seen) == 1 else torch.stack(seen).mean(dim=0), rate)
        return mean

    def state_dict(self) -> dict[str, Any]:
        state = {"weight_optimizer": self.sgd.optimizer.state_dict(), "scaler": self.sgd.scaler.state_dict()}
        own = self.objective.state_dict() if hasattr(self.objective, "state_dict") else None
        return state if own is None else {**state, "objective": own}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        if "objective" in state:
            self.objective.load_state_dict(state["objective"])
        self.sgd.optimizer.load_state_dict(state["weight_optimizer"])
        self.sgd.scaler.load_state_dict(state["scaler"])
