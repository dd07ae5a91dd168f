"""What an evaluator is: it says how good an architecture is, and what it cost to know that."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from idarts.arch import Architecture
from idarts.searching.registries import EVALUATORS
from idarts.searching.round import Step

if TYPE_CHECKING:
    from idarts.searching.loop import Search
    from idarts.searching.settings import Config
    from idarts.searching.settings import Evaluator as Settings


@dataclass(frozen=True)
class Evaluation:
    """The reward of an architecture (the larger, the better) and its cost in gradient evaluations."""

    reward: float
    cost: float
    loss: float = math.nan
    accuracy: float = math.nan
    measures: dict[str, float | None] = field(default_factory=dict)

    @classmethod
    def of(cls, loss: float, accuracy: float, cost: float) -> "Evaluation":
        """The reward is the accuracy or, where the task is not classification, the negative loss.

        >>> Evaluation.of(0.5, 0.875, cost=1.0).reward
        0.875
        """
        return cls(Step(loss, accuracy).reward, cost, loss, accuracy)


class Evaluator(ABC):
    """A function of an architecture, made with the search that it belongs to. One a file in `evaluators/`."""

    needs: ClassVar[tuple[str, ...]] = ()  # parts of a space, or `table`
    shares_weights: ClassVar[bool] = False  # whether it needs a supernet, whose weights the rounds then train

    @staticmethod
    def batches(settings: "Settings") -> int:
        """Training batches that one evaluation takes."""
        del settings
        return 0

    @abstractmethod
    def __init__(self, search: "Search") -> None: ...

    @abstractmethod
    def __call__(self, architecture: Architecture) -> Evaluation: ...

    def state_dict(self) -> dict[str, Any]:
        """Tensors and plain values only."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a saved state."""
        del state  # an evaluator without a state has nothing to load


def needs_supernet(strategy: Any, settings: "Config") -> bool:
    """Whether a search has a supernet: as its strategy says or, where that leaves it open, as its evaluator does."""
    shares = getattr(strategy, "shares_weights", True)
    return bool(EVALUATORS[settings.evaluator.kind].shares_weights if shares is None else shares)
