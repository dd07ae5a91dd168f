"""Baselines that only ask the table: random search and regularised evolution (Real et al. 2019) on NAS-Bench-201.

As the benchmark's authors do it: every question costs the time that training for 12 epochs would, the validation
accuracy after these decides, and the search ends when 12,000 such seconds are over.
"""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random

from idarts.arch import Architecture, nas_bench_201
from idarts.arch.rules import NAS_BENCH_201_OPS
from idarts.arch.sampling import sample
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


def random_search(look: Look, random: Random, budget: float) -> list[Trial]:
    """Cells drawn uniformly until the budget is spent.

    >>> len(random_search(lambda _: (90.0, 100.0), Random(0), 1000.0))
    10
    """
    return _within(budget, _draw(look, random))


def regularised_evolution(look: Look, random: Random, budget: float) -> list[Trial]:
    """The best of a few parents drawn from the population has a child with one other operation; the oldest dies.

    >>> trials = regularised_evolution(lambda cell: (cell.cell.edges[0].op == "none", 1.0), Random(0), 60.0)
    >>> len(trials), best(trials).architecture.cell.edges[0].op
    (60, 'none')
    """
    return _within(budget, _evolve(look, random))


def best(trials: list[Trial]) -> Trial:
    """What the search would name at its end."""
    return max(trials, key=lambda trial: trial.valid)


def mutated(architecture: Architecture, random: Random) -> Architecture:
    """Another operation on one edge.

    >>> cell = nas_bench_201.from_index(0)
    >>> changed = mutated(cell, Random(0))
    >>> sum(a != b for a, b in zip(nas_bench_201.to_ops(cell), nas_bench_201.to_ops(changed)))
    1
    """
    ops = list(nas_bench_201.to_ops(architecture))
    edge = random.randrange(len(ops))
    ops[edge] = random.choice([op for op in NAS_BENCH_201_OPS if op != ops[edge]])
    return nas_bench_201.from_ops(ops)


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


def _draw(look: Look, random: Random) -> Iterator[Trial]:
    while True:
        yield _trial(look, sample(nas_bench_201.SPACE, random))


def _evolve(look: Look, random: Random) -> Iterator[Trial]:
    population: deque[Trial] = deque(maxlen=POPULATION)  # full, it drops its oldest
    while True:
        if len(population) < POPULATION:
            child = _trial(look, sample(nas_bench_201.SPACE, random))
        else:
            parent = max(random.sample(population, TOURNAMENT), key=lambda trial: trial.valid)
            child = _trial(look, mutated(parent.architecture, random))
        population.append(child)
        yield child
