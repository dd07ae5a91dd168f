"""Adam on α, as DARTS and iDARTS have it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from idarts.errors import InputError
from idarts.searching.registries import RULES

if TYPE_CHECKING:
    from idarts.searching.settings import Alpha


@RULES.register("adam")
class Adam:
    """Adam with the rate, betas and weight decay of the settings.

    >>> from idarts.searching.settings import Alpha
    >>> alpha = nn.Parameter(torch.zeros(1, 2))
    >>> Adam([alpha], Alpha(rate=0.5, decay=0.0)).step([torch.tensor([[1.0, -1.0]])])
    >>> [round(value, 3) for value in alpha[0].tolist()]
    [-0.5, 0.5]
    """

    def __init__(self, alphas: Sequence[nn.Parameter], settings: "Alpha") -> None:
        if settings.options:
            raise InputError(
                f"alpha.options is {settings.options}, but the rule adam has none; it reads alpha.rate, betas and decay"
            )
        self.alphas = alphas
        assert settings.rate != "auto"  # the search has replaced it by a number
        self.optimizer = torch.optim.Adam(alphas, settings.rate, settings.betas, weight_decay=settings.decay)

    @property
    def rate(self) -> float:
        """The learning rate, which a search may set before a step."""
        return float(self.optimizer.param_groups[0]["lr"])

    @rate.setter
    def rate(self, rate: float) -> None:
        self.optimizer.param_groups[0]["lr"] = rate

    def step(self, grads: Sequence[Tensor]) -> None:
        """One step along these gradients."""
        for alpha, grad in zip(self.alphas, grads, strict=True):
            alpha.grad = grad
        self.optimizer.step()
        self.optimizer.zero_grad()

    def state_dict(self) -> dict[str, Any]:
        return self.optimizer.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.optimizer.load_state_dict(state)
