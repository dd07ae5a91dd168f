"""Regularised evolution, random search and trials alone: closed forms, and resume inside a population."""

from collections import Counter
from functools import partial
from random import Random

import numpy as np
import pytest
import torch
from proposing import Convolutions, saved, start

from idarts.errors import InputError
from idarts.experiments.paper import on_table
from idarts.searching.proposing import Member
from idarts.searching.selections.trials import halve
from idarts.searching.strategies.random_trials import halving_cost
from idarts.searching.strategies.regularised_evolution import offspring
from idarts.spaces import nas_bench_201
from idarts.spaces.darts import cells as darts_cells
from idarts.tables import table


def members(*rewards):
    return [Member(nas_bench_201.from_index(place), float(reward)) for place, reward in enumerate(rewards)]


def test_the_oldest_leave_whatever_their_reward():
    """After P cycles none of the first is alive, and the living are in order of birth."""
    size, seen = 4, []
    history = members(100, 100, 100, 100)
    for cycle in range(8):
        offspring(history, size, lambda living: seen.append(list(living)) or living, None, lambda parent: parent)
        assert seen[-1] == history[-size:]
        assert sum(member.reward == 100 for member in seen[-1]) == max(0, size - cycle)
        history += [Member(nas_bench_201.from_index(100 + cycle), 0.0)]


def test_parents_are_uniform_for_one_contestant_and_the_best_for_many():
    history, random = members(1, 5, 2, 4, 3), Random(0)

    def parents(tournament, draws):
        pick = lambda living: random.choices(living, k=tournament)  # noqa: E731
        return Counter(offspring(history, 5, pick, None, lambda parent: parent) for _ in range(draws))

    counts = parents(1, 2000)
    assert all(abs(counts[member.architecture] - 400) < 80 for member in history)  # 4.5 standard deviations
    assert set(parents(100, 20)) == {history[1].architecture}


def test_a_child_differs_from_a_living_member_in_exactly_one_decision():
    search = start("regularised-evolution", rounds=40, none=True, population={"size": 6, "tournament": 2})
    pairs = []
    mutate = search.task.mutate
    object.__setattr__(search.task, "mutate", lambda parent, random: pairs.append(parent) or mutate(parent, random))
    list(search.rounds())
    history = [member.architecture for member in search.strategy.history]
    assert len(pairs) == 34
    for place, parent in enumerate(pairs, start=6):
        assert parent in history[place - 6 : place]
        ops = zip(*map(nas_bench_201.to_ops, (parent, history[place])), strict=True)
        assert sum(one != other for one, other in ops) == 1
    assert search.select() == max(search.strategy.history, key=lambda member: member.reward).architecture


def test_a_darts_mutation_changes_one_input_or_one_operation():
    random, kinds = Random(0), Counter()
    for _ in range(100):
        parent = darts_cells.sample(random)
        child = darts_cells.mutate(parent, random)
        old, new = ({(name, e) for name, cell in one.cells.items() for e in cell.edges} for one in (parent, child))
        ((_, before),), ((_, after),) = old - new, new - old
        assert before.target == after.target
        kinds[before.source != after.source, before.op != after.op] += 1
    assert set(kinds) == {(True, False), (False, True)}


def test_none_takes_no_part_unless_the_settings_say_so():
    for method in ("regularised-evolution", "random-search", "nasnet"):
        search = start(method, rounds=25, population={"size": 5}, selection={"rule": "argmax"})
        list(search.rounds())
        assert not any("none" in nas_bench_201.to_ops(member.architecture) for member in search.strategy.history)


def test_evolution_climbs_higher_than_random_search():
    ends = {
        method: np.mean([_best(method, seed) for seed in range(4)])
        for method in ("regularised-evolution", "random-search")
    }
    assert ends["regularised-evolution"] > ends["random-search"] + 0.05


def _best(method, seed):
    search = start(method, rounds=80, none=True, seed=seed)
    list(search.rounds())
    return search.strategy.best.reward


def test_on_the_table_evolution_ends_where_the_benchmarks_authors_say(real_table):
    """93.92 ± 0.30 over 500 runs."""
    look = on_table.looking(real_table)
    search = partial(on_table.regularised_evolution, "nas-bench-201", look, budget=12_000.0)
    ends = [on_table.best(search(Random(seed))) for seed in range(60)]
    tests = [real_table.accuracy(end.architecture) for end in ends]
    assert np.mean(tests) == pytest.approx(93.9, abs=0.15)
    assert 0.15 < np.std(tests) < 0.45


@pytest.fixture
def real_table():
    try:
        known = table("nas-bench-201")
        known.details(nas_bench_201.from_index(0))
    except InputError:
        pytest.skip("IDARTS_TABLES names no folder with the NAS-Bench-201 table")
    return known


TRIALS = {"steps": 2, "batches": 1}
CASES = {
    "random-search": {},
    "regularised-evolution": {"population": {"size": 3, "tournament": 2}},
    "nasnet": {"controller": {"samples": 3}, "selection": {"rule": "argmax"}},
    "pnas": {"population": {"size": 2}},
    "random-trials": {},
}


@pytest.mark.parametrize("method", CASES)
def test_a_search_resumes_inside_a_population_to_the_bit(method):
    rounds, cut = (10, 5) if method != "pnas" else (8, 5)  # inside a batch of children, a level, a rung
    changes = {"rounds": rounds, **CASES[method]}
    whole, first, rest = (start(method, evaluator=None, evaluator_settings=TRIALS, **changes) for _ in range(3))
    torch.manual_seed(7)
    ends = [one.entry() for one in whole.rounds()]
    torch.manual_seed(7)
    half = [one.entry() for _, one in zip(range(cut), first.rounds(), strict=False)]
    state = saved(first)
    torch.manual_seed(99)
    rest.load_state_dict(state)
    assert half + [one.entry() for one in rest.rounds()] == ends
    assert str(saved(rest)["strategy"]) == str(saved(whole)["strategy"])
    assert rest.select() == whole.select()
    assert rest.gradient_evaluations == whole.gradient_evaluations


def test_trials_alone_halve_as_the_selection_does():
    budget = 60.0
    search = start(
        "random-trials", rounds=1000, gradient_evaluations=budget, evaluator_settings={"steps": 3, "batches": 1}
    )
    strategy = search.strategy
    candidates, cost = list(strategy.candidates), strategy.trial.cost
    assert halving_cost(cost, len(candidates), 3) <= budget < halving_cost(cost, len(candidates) + 1, 3)
    list(search.rounds())
    expected = halve(candidates, strategy.trial, 3)
    assert search.select() == expected.architecture
    assert search.gradient_evaluations == pytest.approx(expected.gradient_evaluations)
    assert search.number == len(expected.tried)


def test_trials_alone_fit_into_the_rounds():
    search = start("random-trials", rounds=15, evaluator_settings={"steps": 1, "batches": 1})
    assert len(search.strategy.candidates) == 9  # 9 + 4 + 2
    list(search.rounds())
    assert search.number == 15


def test_the_best_few_train_again_where_the_selection_says_so():
    search = start("random-search", rounds=6, selection={"rule": "trials", "samples": 3, "steps": 1, "batches": 1})
    list(search.rounds())
    chosen = search.select()
    best_first = sorted({member.reward for member in search.strategy.history}, reverse=True)
    assert len(search.tried) == 3
    assert all(
        Convolutions(search)(one.architecture).reward >= best_first[min(2, len(best_first) - 1)] for one in search.tried
    )
    assert chosen in [one.architecture for one in search.tried]
