"""What strategies that propose architectures one by one share: evaluate it, remember it, learn from it."""

from abc import abstractmethod
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any, ClassVar

from idarts.arch import Architecture, Growth, from_json, to_json
from idarts.errors import InputError
from idarts.layers.mixture import Mixture
from idarts.searching.evaluator import Evaluator
from idarts.searching.registries import EVALUATORS
from idarts.searching.round import Step
from idarts.searching.strategy import Strategy

if TYPE_CHECKING:
    from idarts.searching.loop import Search
    from idarts.searching.settings import Config

NONE = "none"


@dataclass(frozen=True)
class Member:
    """An architecture that was evaluated."""

    architecture: Architecture
    reward: float


class Drawing(Strategy):
    """What strategies that draw architectures of a space share."""

    needs: ClassVar[tuple[str, ...]] = ("sample",)

    def __init__(self, search: "Search") -> None:
        super().__init__(search)
        settings = search.settings
        if search.task.sample is None:
            raise InputError(
                f"strategy {settings.strategy} samples architectures of a space, and your own model has none; "
                "search a space by name, or use another method"
            )
        if settings.cost.kind != NONE:
            raise InputError(f"cost needs α, which strategy {settings.strategy} does not have; use another method")
        self.random = Random(settings.seed)

    def draw(self) -> Architecture:
        """A random architecture, without `none` where the settings leave that out."""
        assert self.search.task.sample is not None
        while True:
            architecture = self.search.task.sample(self.random)
            if self.allows(architecture):
                return architecture

    def mutate(self, architecture: Architecture) -> Architecture:
        """The architecture with one decision changed."""
        assert self.search.task.mutate is not None
        while True:
            child = self.search.task.mutate(architecture, self.random)
            if self.allows(child):
                return child

    def allows(self, architecture: Architecture) -> bool:
        """Whether the settings let an architecture take part."""
        if self.search.selection.none:
            return True
        return all(edge.op != NONE for cell in architecture.cells.values() for edge in cell.edges)


class Proposing(Drawing):
    """A round is one evaluation: `propose` names an architecture, `learn` gets its reward.

    The result is the best of all history. With shared weights, these are trained on random architectures meanwhile.
    """

    shares_weights: ClassVar[bool | None] = None
    evaluates: ClassVar[bool] = True

    @classmethod
    def batches_per_round(cls, settings: "Config") -> int:
        """Those of an evaluation, and T with shared weights; one at least."""
        evaluator = EVALUATORS[settings.evaluator.kind]
        trained = settings.inner_steps if evaluator.shares_weights else 0
        return max(1, trained + int(evaluator.batches(settings.evaluator)))

    def __init__(self, search: "Search") -> None:
        super().__init__(search)
        self.history: list[Member] = []
        self.best: Member | None = None  # of all history; the first of equals
        self.evaluator: Evaluator = EVALUATORS[search.settings.evaluator.kind](search)

    @abstractmethod
    def propose(self) -> Architecture:
        """The next architecture to be evaluated."""

    def learn(self, member: Member) -> None:
        """Take note of its reward."""
        del member  # a strategy may learn from its history alone

    def mixtures(self) -> dict[str, Mixture]:
        return self.search.net.path(self.draw())

    def step(self) -> Step:
        architecture = self.propose()
        evaluation = self.evaluator(architecture)
        self.search.spent.gradient_evaluations += evaluation.cost
        member = Member(architecture, evaluation.reward)
        best = self._remember(member)
        self.learn(member)
        measures = {"reward": evaluation.reward, "best_reward": best.reward, **evaluation.measures}
        return Step(evaluation.loss, evaluation.accuracy, measures)

    def _remember(self, member: Member) -> Member:
        """Add a member to the history, and return the best of it."""
        self.history.append(member)
        if self.best is None or member.reward > self.best.reward:
            self.best = member
        return self.best

    def current(self) -> Architecture:
        if self.best is None:
            raise InputError("no architecture was evaluated yet; give a larger budget")
        return self.best.architecture

    def sample(self) -> Architecture:
        """One of those that were evaluated."""
        return self.random.choice(self.history).architecture

    def finalists(self, number: int) -> list[Architecture]:
        best_first = sorted(self.history, key=lambda member: -member.reward)
        return list(dict.fromkeys(member.architecture for member in best_first))[:number]

    def state_dict(self) -> dict[str, Any]:
        history = [[to_json(member.architecture), member.reward] for member in self.history]
        return {"history": history, "random": self.random.getstate(), "evaluator": self.evaluator.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.history, self.best = [], None
        for text, reward in state["history"]:
            self._remember(Member(from_json(text), reward))
        version, internal, gauss = state["random"]
        self.random.setstate((version, tuple(internal), gauss))
        self.evaluator.load_state_dict(state["evaluator"])


def growth_of(search: "Search") -> Growth:
    """How the cells of the searched space grow; without `none` where the settings leave that out."""
    if search.task.growth is None:
        raise InputError(
            f"strategy {search.settings.strategy} grows cells of a space, and your own model has none; "
            "search a space by name, or use another method"
        )
    growth = search.task.growth()
    return growth if search.selection.none else growth.without(NONE)
