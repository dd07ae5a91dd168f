"""Baselines that only query the table: random search and regularised evolution (Real et al. 2019) on NAS-Bench-201.

They follow the benchmark's authors: a query costs the time that training for 12 epochs takes, the validation accuracy
after these epochs decides, and the search ends after 12,000 such seconds.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from idarts.arch import SPACES, Architecture, mutate
from idarts.searching.evaluators.table import SHORT as EPOCHS
from idarts.searching.evaluators.table import Look, looking
from idarts.searching.strategies.regularised_evolution import offspring

__all__ = ["EPOCHS", "SECONDS", "best", "looking", "random_search", "regularised_evolution"]

SECONDS = 12_000.0
POPULATION, TOURNAMENT = 10, 3


@dataclass(frozen=True)
class Trial:
    """One query to the table."""

    architecture: Architecture
    valid: float
    cost: float

    @property
    def reward(self) -> float:
        """What evolution selects by."""
        return self.valid


def random_search(space: str, look: Look, random: Random, budget: float) -> list[Trial]:
    """Cells drawn uniformly until the budget is spent.

    >>> len(random_search("nas-bench-201", lambda _: (90.0, 100.0), Random(0), 1000.0))
    10
    """
    return _within(budget, _draw(space, look, random))


def regularised_evolution(space: str, look: Look, random: Random, budget: float) -> list[Trial]:
    """The best of a few random parents has a child with one other operation, which replaces the oldest cell.

    >>> look = lambda cell: (cell.cell.edges[0].op == "none", 1.0)
    >>> trials = regularised_evolution("nas-bench-201", look, Random(0), 60.0)
    >>> len(trials), best(trials).architecture.cell.edges[0].op
    (60, 'none')
    """
    return _within(budget, _evolve(space, look, random))


def best(trials: list[Trial]) -> Trial:
    """The result of the search."""
    return max(trials, key=lambda trial: trial.valid)


def _within(budget: float, trials: Iterator[Trial]) -> list[Trial]:
    """The trials that end in time: a training that is cut short gives no accuracy. The first trial always counts."""
    kept = [next(trials)]
    spent = kept[0].cost
    for trial in trials:
        spent += trial.cost
        if spent > budget:
            break
        kept.append(trial)
    return kept


def _trial(look: Look, architecture: Architecture) -> Trial:
    return Trial(architecture, *look(architecture))


def _draw(space: str, look: Look, random: Random) -> Iterator[Trial]:
    while True:
        yield _trial(look, SPACES[space].sample(random))


def _evolve(space: str, look: Look, random: Random) -> Iterator[Trial]:
    history: list[Trial] = []
    while True:
        architecture = offspring(
            history,
            POPULATION,
            lambda living: random.sample(living, TOURNAMENT),
            lambda: SPACES[space].sample(random),
            lambda parent: mutate(parent, random),
        )
        history.append(_trial(look, architecture))
        yield history[-1]
