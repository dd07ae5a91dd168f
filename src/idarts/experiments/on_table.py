"""Baselines that only ask the table: random search and regularised evolution (Real et al. 2019).

As the authors of NAS-Bench-201 do it: every question costs the time that training for 12 epochs would, the validation
accuracy after these decides, and the search ends when 12,000 such seconds are over.
"""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random

from idarts.arch import Architecture, mutate, sample
from idarts.tables import RowTable

SECONDS = 12_000.0
EPOCHS, ALL_EPOCHS = 12, 200
POPULATION, TOURNAMENT = 10, 3

Look = Callable[[Architecture], tuple[float, float]]  # validation accuracy, and what it cost


@dataclass(frozen=True)
class Trial:
    """One question to the table."""

    architecture: Architecture
    valid: float
    cost: float


def looking(table: RowTable, dataset: str = "cifar10") -> Look:
    """Short trainings where the table has them, else full ones."""

    def look(architecture: Architecture) -> tuple[float, float]:
        found = table.details(architecture)[dataset]
        valid, seconds = found["valid_12"], found["train_time"]
        if valid is None:
            return found["valid"], seconds
        return valid, seconds * EPOCHS / ALL_EPOCHS

    return look


def random_search(space: str, look: Look, random: Random, budget: float) -> list[Trial]:
    """Cells drawn uniformly until the budget is spent.

    >>> len(random_search("nas-bench-201", lambda _: (90.0, 100.0), Random(0), 1000.0))
    10
    """
    return _within(budget, _draw(space, look, random))


def regularised_evolution(space: str, look: Look, random: Random, budget: float) -> list[Trial]:
    """The best of a few parents drawn from the population has a child with one decision changed; the oldest dies.

    >>> look = lambda cell: (cell.cell.edges[0].op == "none", 1.0)
    >>> trials = regularised_evolution("nas-bench-201", look, Random(0), 60.0)
    >>> len(trials), best(trials).architecture.cell.edges[0].op
    (60, 'none')
    """
    return _within(budget, _evolve(space, look, random))


def best(trials: list[Trial]) -> Trial:
    """What the search would name at its end."""
    return max(trials, key=lambda trial: trial.valid)


def _within(budget: float, trials: Iterator[Trial]) -> list[Trial]:
    """Those that end in time: a training that the end cuts short tells nothing. The first is always there."""
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
        yield _trial(look, sample(space, random))


def _evolve(space: str, look: Look, random: Random) -> Iterator[Trial]:
    population: deque[Trial] = deque(maxlen=POPULATION)  # full, it drops its oldest
    while True:
        if len(population) < POPULATION:
            child = _trial(look, sample(space, random))
        else:
            parent = max(random.sample(population, TOURNAMENT), key=lambda trial: trial.valid)
            child = _trial(look, mutate(parent.architecture, random))
        population.append(child)
        yield child
