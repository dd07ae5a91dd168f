"""PNAS: counts of levels, enumeration, a surrogate that is above chance one level further."""

from itertools import islice
from random import Random

import pytest
import torch
from proposing import Convolutions, start

from idarts import InputError
from idarts.arch import SPACES
from idarts.searching.log import Log
from idarts.searching.surrogate import Surrogate, features
from idarts.spaces import nas_bench_201, network

GROWTH = SPACES["nas-bench-201"].growth()


def test_the_numbers_of_expansions_are_those_of_the_spaces():
    assert [len(GROWTH.blocks(node)) for node in range(3)] == [5, 25, 125]
    assert [len(SPACES["darts"].growth().blocks(node)) for node in range(4)] == [49, 147, 294, 490]


def test_a_cell_of_fewer_nodes_is_that_cell():
    """The cell of node 1 alone computes what the cell with skips behind it computes: its output is node 1."""
    ops = nas_bench_201.to_ops(GROWTH.same([((0, "nor_conv_3x3"),), ((0, "none"), (1, "avg_pool_3x3"))]))
    assert ops == ("nor_conv_3x3", "none", "avg_pool_3x3", "none", "none", "skip_connect")
    small = SPACES["darts"].growth().same([((0, "skip_connect"), (1, "sep_conv_3x3"))])
    assert small.cells["normal"] == small.cells["reduce"]
    assert (small.cells["normal"].nodes, small.cells["normal"].output) == (3, (2,))
    assert network(small, depth=3, channels=4)(torch.zeros(2, 3, 8, 8)).shape == (2, 10)


def test_the_number_of_evaluations_is_the_first_level_and_k_for_each_other():
    search = start("pnas", rounds=50, population={"size": 7})
    list(search.rounds())
    assert search.number == 4 + 7 + 7  # `none` takes no part
    cells = [member.architecture for member in search.strategy.history]
    assert len(set(cells)) == len(cells)
    last = search.strategy.history[-7:]
    assert search.select() == max(last, key=lambda member: member.reward).architecture
    assert nas_bench_201.to_ops(search.select()).count("nor_conv_3x3") >= 4  # chance: 1.5


def test_with_room_for_all_cells_it_enumerates_the_space_and_finds_the_best():
    """The reward is a hash, so that no cell but the best itself could lead to it."""

    class Hashed(Convolutions):
        def __call__(self, architecture):
            index = nas_bench_201.to_index(architecture)
            return type(super().__call__(architecture))(float(index * 7919 % 15625), cost=1.0)

    search = start("pnas", evaluator=Hashed, rounds=4164, population={"size": 10**6})
    for _ in search.rounds():
        pass
    assert search.number == 4 + 4 * 16 + 4 * 16 * 64
    whole = {m.architecture for m in search.strategy.history if "none" not in nas_bench_201.to_ops(m.architecture)}
    assert len(whole) == 4**6
    reward = Hashed(search)
    assert reward(search.select()).reward == max(reward(cell).reward for cell in whole)


def test_a_cell_that_was_evaluated_as_a_smaller_one_is_not_evaluated_again():
    """With `none`, a node may hand on the one before it: that is the smaller cell."""
    search = start("pnas", rounds=255, none=True, population={"size": 125})
    strategy = search.strategy
    while len(strategy.level[0]) < 3:
        next(search.rounds())
    assert search.number == 5 + 125 - 5
    assert len([cell for cell in strategy.rewards if len(cell) == 2]) == 125


def test_too_few_rounds_for_all_levels_are_refused_with_the_number():
    with pytest.raises(InputError, match=r"4 \+ 10 \+ 10 cells.*--rounds 24"):
        start("pnas", rounds=23)


@pytest.mark.parametrize("evaluations", [1, 4, 14, 40, 400])
def test_a_limited_budget_shortens_all_levels_and_the_cell_is_whole(evaluations):
    """Levels of 49, 10, 10 and 10 cells; an evaluation costs one."""
    search = start("pnas", name="darts", rounds=401, gradient_evaluations=float(evaluations))
    list(search.rounds())
    assert search.number == min(evaluations, 79)
    cells = search.strategy.rewards
    levels = [sum(len(cell) == nodes for cell in cells) for nodes in (1, 2, 3, 4)]
    if evaluations >= 14:
        assert levels == pytest.approx([search.number * share / 79 for share in (49, 10, 10, 10)], abs=1)
    assert search.select().cells["normal"].nodes == 6
    assert search.select().cells["normal"].output == (2, 3, 4, 5)


def test_a_table_need_not_describe_the_small_cells():
    class Whole:
        def accuracy(self, architecture):
            if architecture.cells["normal"].nodes < 6:
                raise InputError("cells of four nodes only")
            return 90.0

    search = start("pnas", name="darts", rounds=58, population={"size": 3}, table=Whole())
    log = Log(search)
    known = [log.entry(one).get("table_accuracy") for one in search.rounds()]
    assert known == [None] * 54 + [90.0] * 4  # the last level is known before its first cell is evaluated


def test_a_search_that_is_killed_in_a_shortened_level_resumes_with_the_same_cells():
    whole, cut, rest = (start("pnas", name="darts", rounds=401, gradient_evaluations=30.0) for _ in range(3))
    list(whole.rounds())
    list(islice(cut.rounds(), 20))
    rest.load_state_dict(cut.state_dict())
    list(rest.rounds())
    assert list(rest.strategy.rewards.items()) == list(whole.strategy.rewards.items())
    assert rest.select() == whole.select()


def test_the_surrogate_does_not_see_the_order_of_branches():
    one = [((0, "none"),), ((0, "nor_conv_1x1"), (1, "nor_conv_3x3"))]
    other = [one[0], one[1][::-1]]
    assert torch.equal(*features(GROWTH, [one, other]))
    swapped = [one[0], ((0, "nor_conv_3x3"), (1, "nor_conv_1x1"))]
    assert not torch.equal(*features(GROWTH, [one, swapped]))


def test_the_surrogate_is_above_chance_one_level_further():
    """Fitted to cells of one and two nodes, it ranks cells of three by a reward with noise."""
    random = Random(0)
    merit = {op: value for value, op in enumerate(GROWTH.ops)}

    def reward(cell):
        return sum(merit[op] for block in cell for _, op in block) / len(cell) + random.gauss(0, 0.5)

    small = [(block,) for block in GROWTH.blocks(0)]
    small += [(first, second) for first in GROWTH.blocks(0) for second in GROWTH.blocks(1)]
    larger = [(*random.choice(small[5:]), random.choice(GROWTH.blocks(2))) for _ in range(300)]
    seen = torch.tensor([reward(cell) for cell in small])
    predicted = Surrogate(features(GROWTH, small), seen, seed=0)(features(GROWTH, larger))
    actual = torch.tensor([reward(cell) for cell in larger])
    ranks = torch.stack([values.argsort().argsort().float() for values in (predicted, actual)])
    assert torch.corrcoef(ranks)[0, 1] > 0.5
    again = Surrogate(features(GROWTH, small), seen, seed=0)(features(GROWTH, larger))
    assert torch.equal(predicted, again)


def test_in_darts_space_normal_and_reduction_cells_grow_alike():
    search = start("pnas", name="darts", rounds=58, population={"size": 3})
    list(search.rounds())
    assert search.number == 49 + 3 * 3
    assert search.select().cells["normal"] == search.select().cells["reduce"]
    assert search.select().cells["normal"].nodes == 6
