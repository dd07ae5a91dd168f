"""The candidates of a fit: along the price and towards the fixed architecture, with that one among them."""

import pytest
import torch

from idarts.arch import as_text
from idarts.data import Batches, load, split
from idarts.fitting.candidates import along, candidates, cheapness, spaced, uniform
from idarts.fitting.sizes import parameters
from idarts.searching import Task, config
from idarts.spaces import space

SKIP, ONE, THREE, POOL = "skip_connect", "nor_conv_1x1", "nor_conv_3x3", "avg_pool_3x3"


@pytest.fixture
def search():
    """A search of NAS-Bench-201 without `none`, in which every edge likes the pool most and 1×1 least."""
    chosen = space("nas-bench-201")
    net = chosen.supernet(chosen.skeleton.changed(depth=1, channels=4, image=8), in_channels=1)
    train, valid = split(load("digits").train, 0.5, seed=0)
    settings = config(rounds=1, none=False, selection={"rule": "trials", "none": False, "samples": 16})
    made = Task(net, Batches(train, 16), Batches(valid, 16), settings, network=lambda _: torch.nn.Identity()).search()
    with torch.no_grad():
        for row, alpha in enumerate(net.alpha["cell"]):
            alpha[:] = torch.tensor([9.0, 1.0, 0.0, 1.5, 2.0]) * (1 + row / 10)
    return made


def ops(architecture):
    return [edge.op for edge in architecture.cells["cell"].edges]


def size(architecture):
    return parameters(architecture, space("nas-bench-201").skeleton, 3)


def test_the_price_leads_from_all_3x3_to_all_of_the_liked_free_operation(search):
    passed = along(search, cheapness(search))
    assert ops(passed[0]) == [THREE] * 6
    assert ops(passed[-1]) == [POOL] * 6  # a skip is free, too, but liked less
    sizes = [size(one) for one in passed]
    assert sizes == sorted(set(sizes), reverse=True)
    assert len(passed) == 7  # each edge changes once, at its own pressure: it likes 1×1 less than the free pool


def test_a_preference_for_an_architecture_leads_from_alpha_to_it(search):
    fixed = space("nas-bench-201").fixed()
    preference = {name: mixture.weights for name, mixture in search.net.path(fixed).items()}
    passed = along(search, preference, start=0.0)
    assert passed[0] == search.current()
    # The two edges that the fixed cell leaves out take what α likes: `none` takes no part.
    assert ops(passed[-1]) == [op if op != "none" else POOL for op in ops(fixed)]
    distances = [sum(a != b for a, b in zip(ops(one), ops(passed[-1]), strict=True)) for one in passed]
    assert distances == [4, 3, 2, 1, 0]


def test_one_option_in_all_decisions_but_never_one_that_takes_no_part(search):
    assert [ops(one) for one in uniform(search)] == [[op] * 6 for op in (POOL, SKIP, ONE, THREE, POOL)]


def test_alpha_and_the_fixed_cell_come_first_and_neighbours_last(search):
    fixed = space("nas-bench-201").fixed()
    proposed = candidates(search, fixed)
    assert len({as_text(one) for one in proposed}) == len(proposed) == 16
    assert proposed[0] == search.current()
    assert proposed[1] == fixed
    assert [ops(one) for one in proposed[2:5]] == [[op] * 6 for op in (SKIP, ONE, THREE)]  # α's own has the pool
    assert ops(proposed[5]) == [op if op != "none" else POOL for op in ops(fixed)]
    assert along(search, cheapness(search))[0] in proposed
    assert all("none" not in ops(one) for one in proposed if one != fixed)
    changed = [sum(a != b for a, b in zip(ops(one), ops(proposed[0]), strict=True)) for one in proposed[10:]]
    assert set(changed) == {1}


def test_few_are_spread_over_the_whole_range():
    assert spaced([*range(9)], 3) == [8, 4, 0]
    assert spaced([*range(2)], 5) == [1, 0]
