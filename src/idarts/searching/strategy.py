"""What a strategy is: it says what the weights train on, steps the architecture, and names the current one."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from idarts.arch import Architecture
from idarts.layers.mixture import Mixture
from idarts.searching.round import Step

if TYPE_CHECKING:
    from idarts.searching.loop import Search
    from idarts.searching.settings import Config


class Tried(NamedTuple):
    """A candidate of a selection: how long it was trained, and its loss on validation batches then."""

    architecture: Architecture
    steps: int
    loss: float


@dataclass(frozen=True)
class Selected:
    """What a selection returns: the architecture, what it cost to select it, and the candidates that it trained."""

    architecture: Architecture
    gradient_evaluations: float = 0.0
    tried: list[Tried] = field(default_factory=list)


class Strategy(ABC):
    """How architectures are searched: by gradients, by a controller, by a population.

    A strategy is made with the search that it belongs to, anew for each stage. One with `shares_weights = False` has no
    supernet: a round is then its `step` alone; with None it has one if its evaluator needs one. What it spends beyond
    weight steps it adds to `search.spent.gradient_evaluations`.
    """

    shares_weights: ClassVar[bool | None] = True
    evaluates: ClassVar[bool] = False  # by the evaluator of the settings
    needs: ClassVar[tuple[str, ...]] = ("supernet",)  # parts of a space, beside those of the evaluator
    steps_alpha: ClassVar[bool] = False  # by gradients, which must then reach every decision

    def __init__(self, search: "Search") -> None:
        self.search = search

    @classmethod
    def batches_per_round(cls, settings: "Config") -> int:
        """Training batches that a round takes."""
        return settings.inner_steps

    def mixtures(self) -> dict[str, Mixture]:
        """What the supernet mixes in the next weight step."""
        raise NotImplementedError

    @abstractmethod
    def step(self) -> Step:
        """One step on the architecture, and what is known after it."""

    @abstractmethod
    def current(self) -> Architecture:
        """The architecture that the search would give now."""

    def sample(self) -> Architecture:
        """An architecture at random, as the strategy prefers them: a candidate for selections."""
        return self.current()

    def finalists(self, number: int) -> list[Architecture]:
        """The best architectures for trials, at most so many; none if these are α and its neighbours."""
        del number
        return [] if self.search.shares_weights else [self.current()]

    @property
    def finished(self) -> bool:
        """Whether there is nothing left to do, although the budget is not spent."""
        return False

    def state_dict(self) -> dict[str, Any]:
        """Tensors and plain values only."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a saved state."""
        del state  # a strategy without a state has nothing to load
