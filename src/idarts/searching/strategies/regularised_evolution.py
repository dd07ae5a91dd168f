"""Regularised evolution (Real et al. 2019, Regularized Evolution for Image Classifier Architecture Search, Alg. 1).

A queue of P members. Each cycle draws S of them with replacement; the best of these is the parent of a child with one
mutation; the child joins the queue, and the oldest member leaves it, however good it is. The result is the best of all
history. The paper: P = 100, S = 25, 20,000 models; in NAS-Bench-201 P = 10 and S = 3 are usual.
"""

from collections.abc import Callable, Sequence
from typing import ClassVar, Protocol, TypeVar

from idarts.arch import Architecture
from idarts.searching.proposing import Proposing
from idarts.searching.registries import STRATEGIES


class Rated(Protocol):
    """An architecture with a reward."""

    @property
    def architecture(self) -> Architecture: ...

    @property
    def reward(self) -> float: ...


Someone = TypeVar("Someone", bound=Rated)


def offspring(
    history: Sequence[Someone],
    size: int,
    contestants: Callable[[Sequence[Someone]], Sequence[Someone]],
    sample: Callable[[], Architecture],
    mutate: Callable[[Architecture], Architecture],
) -> Architecture:
    """The next architecture: random until the population is full, then a child of the best of some contestants.

    The living are the last `size` of the history, in order of birth: that is all there is to the ageing.
    """
    if len(history) < size:
        return sample()
    return mutate(max(contestants(history[-size:]), key=lambda member: member.reward).architecture)


@STRATEGIES.register("regularised-evolution")
class RegularisedEvolution(Proposing):
    """The best of some random living members has a child with one decision changed; the oldest dies."""

    needs: ClassVar[tuple[str, ...]] = ("sample", "mutate")

    def propose(self) -> Architecture:
        settings = self.search.settings.population
        return offspring(
            self.history,
            settings.size,
            lambda living: self.random.choices(living, k=settings.tournament),
            self.draw,
            self.mutate,
        )
