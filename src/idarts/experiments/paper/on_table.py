"""Baselines that only query the table: random search and regularised evolution (Real et al. 2019) on NAS-Bench-201.

They follow the benchmark's authors: a query costs the time that training for 12 epochs takes, the validation accuracy
after these epochs decides, and the search ends after 12,000 such seconds.
"""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random

from idarts.arch import SPACES, Architecture, mutate
from idarts.tables import RowTable

SECONDS = 12_000.0
EPOCHS, ALL_EPOCHS = 12, 200
POPULATION, TOURNAMENT = 10, 3

Look = Callable[[Architecture], tuple[float, float]]  # validation accuracy, and its cost


@dataclass(frozen=True)
class Trial:
    """One query to the table."""

    architecture: Architecture
    valid: float
    cost: float


def looking(table: RowTable, dataset: str = "cifar10") -> Look:
    """Short trainings where the table has them, else whole ones."""

    def look(architecture: Architecture) -> tuple[float, float]:
        facts = table.details(architecture)[dataset]
        valid, seconds = facts["valid_12"], facts["train_time"]
        if valid is None:
            return facts["valid"], seconds
        return valid, seconds * EPOCHS / ALL_EPOCHS

    return look


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
    population: deque[Trial] = deque(maxlen=POPULATION)  # full, it drops its oldest
    while True:
        if len(population) < POPULATION:
            child = _trial(look, SPACES[space].sample(random))
        else:
            parent = max(random.sample(population, TOURNAMENT), key=lambda trial: trial.valid)
            child = _trial(look, mutate(parent.architecture, random))
        population.append(child)
        yield child
