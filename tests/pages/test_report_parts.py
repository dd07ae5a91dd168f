"""The parts of a report: names of decisions against the supernets, heat maps against numbers."""

import base64
import io

import numpy as np
import pytest
from PIL import Image
from report_runs import SHAPES, write_run

from idarts.layers.graph import complete_edges
from idarts.pages import labels, read_run
from idarts.pages.heat import COLUMNS, heat
from idarts.spaces import darts, nas_bench_201, space


def test_decisions_and_options_are_in_the_order_of_the_supernets():
    assert complete_edges(darts.INPUTS, darts.NODES) == darts.EDGES
    assert complete_edges(1, 4) == nas_bench_201.EDGES


@pytest.mark.parametrize(
    "name", ["nas-bench-201", "darts", "nas-bench-1shot1-s1", "nas-bench-1shot1-s2", "nas-bench-1shot1-s3"]
)
def test_every_alpha_of_a_space_has_names_of_its_own(name):
    found = space(name)
    net = found.supernet(found.skeleton.changed(depth=3 if name == "darts" else 1, channels=8))
    for group, alpha in net.alpha.items():
        rows, columns = labels.names({"space": name}, group, tuple(alpha.shape))
        assert (len(set(rows)), len(set(columns))) == tuple(alpha.shape)
        assert not any(column.startswith("option") for column in columns)
    if name in SHAPES:
        assert {group: tuple(alpha.shape) for group, alpha in net.alpha.items()} == SHAPES[name]


def pixels(decision):
    data = base64.b64decode(decision.picture.partition(",")[2])
    return np.array(Image.open(io.BytesIO(data)))


def test_a_heat_map_has_a_row_for_each_option_and_shows_who_won(tmp_path):
    run = read_run(write_run(tmp_path / "run", rounds=50))
    (group,) = heat(run).groups
    last = run.rounds[-1]["alpha"]["cell"]
    for decision, row in zip(group.decisions, last, strict=True):
        picture = pixels(decision)
        assert picture.shape == (5, 50, 4)
        bluest = (picture[:, -1, 2] > picture[:, -1, 0]) * picture[:, -1, 3].astype(int)
        assert bluest.argmax() == row.argmax()
        assert [option.largest for option in decision.options] == [value == row.max() for value in row]
        assert picture[:, 0, 3].max() < 30  # all start at the equal share


def test_many_rounds_are_thinned_with_the_first_and_the_last(tmp_path):
    found = heat(read_run(write_run(tmp_path / "run", rounds=3000, every=5)))
    assert (found.first, found.last) == (5, 3000)
    assert pixels(found.groups[0].decisions[0]).shape[1] == COLUMNS


def test_the_final_alpha_counts_where_the_last_round_has_none(tmp_path):
    run = read_run(write_run(tmp_path / "run", rounds=10, every=4))
    del run.rounds[-1]["alpha"]
    assert [number for number, _ in run.alphas()] == [4, 8, 10]
