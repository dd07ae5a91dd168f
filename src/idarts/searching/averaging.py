"""The mean of α over the last rounds (Polyak and Ruppert): a single α follows its last batches, the mean does not."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor


class AlphaMean:
    """A running mean of α; without any rounds, it leaves α alone.

    >>> alpha, mean = torch.tensor([1.0]), AlphaMean()
    >>> mean.add([alpha])
    >>> mean.add([alpha + 2])
    >>> with mean.in_place_of([alpha]):
    ...     print(alpha)
    tensor([2.])
    >>> alpha
    tensor([1.])
    """

    def __init__(self) -> None:
        self.count = 0
        self.values: list[Tensor] = []

    @torch.no_grad()
    def add(self, alphas: Sequence[Tensor]) -> None:
        """Include the α of one more round."""
        self.count += 1
        if not self.values:
            self.values = [alpha.detach().clone() for alpha in alphas]
            return
        for value, alpha in zip(self.values, alphas, strict=True):
            value.lerp_(alpha.detach(), 1 / self.count)

    @contextmanager
    def in_place_of(self, alphas: Sequence[Tensor]) -> Iterator[None]:
        """Within the block, the mean stands where α does."""
        before = [alpha.detach().clone() for alpha in alphas]
        try:
            self._write(alphas, self.values)
            yield
        finally:
            self._write(alphas, before)

    @staticmethod
    @torch.no_grad()
    def _write(alphas: Sequence[Tensor], values: Sequence[Tensor]) -> None:
        for alpha, value in zip(alphas, values, strict=False):
            alpha.copy_(value)

    def state_dict(self) -> dict[str, Any]:
        return {"count": self.count, "values": self.values}

    def load_state_dict(self, state: dict[str, Any], device: torch.device) -> None:
        self.count, self.values = state["count"], [value.to(device) for value in state["values"]]
