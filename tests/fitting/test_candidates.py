"""The candidates of a fit: between the cheapest and the dearest architecture, with the fixed one among them."""

import pytest
import torch

from idarts.arch import as_text
from idarts.data import Batches, load, split
from idarts.fitting.candidates import by_price, candidates, spaced
from idarts.fitting.sizes import parameters
from idarts.searching import Task, config
from idarts.spaces import space

NONE, SKIP, ONE, THREE, POOL = range(5)


@pytest.fixture
def search():
    """A search of NAS-Bench-201 without `none`, in which every edge likes the pool most and 1×1 least."""
    chosen = space("nas-bench-201")
    net = chosen.supernet(chosen.skeleton.changed(depth=1, channels=4, image=8), in_channels=1)
    train, valid = split(load("digits").train, 0.5, seed=0)
    settings = config(rounds=1, none=False, selection={"rule": "trials", "none": False, "samples": 12})
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
    passed = by_price(search)
    assert ops(passed[0]) == ["nor_conv_3x3"] * 6
    assert ops(passed[-1]) == ["avg_pool_3x3"] * 6  # a skip is free, too, but liked less
    sizes = [size(one) for one in passed]
    assert sizes == sorted(set(sizes), reverse=True)
    assert len(passed) == 7  # each edge changes once, at its own pressure: it likes 1×1 less than the free pool


def test_alpha_and_the_fixed_cell_come_first_then_prices_then_neighbours(search):
    fixed = space("nas-bench-201").fixed()
    proposed = candidates(search, fixed)
    assert len(proposed) == 12
    assert len({as_text(one) for one in proposed}) == 12
    assert proposed[0] == search.current()
    assert proposed[1] == fixed
    assert by_price(search)[0] in proposed
    assert all("none" not in ops(one) for one in proposed if one != fixed)
    changed = [sum(a != b for a, b in zip(ops(one), ops(proposed[0]), strict=True)) for one in proposed[8:]]
    assert set(changed) == {1}


def test_few_are_spread_over_the_whole_range():
    assert spaced([*range(9)], 3) == [8, 4, 0]
    assert spaced([*range(2)], 5) == [1, 0]
