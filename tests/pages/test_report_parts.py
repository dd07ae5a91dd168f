"""The parts of a report: names of decisions against the supernets, heat maps against numbers."""

import base64
import io

import numpy as np
import pytest
from PIL import Image
from report_runs import NAS_BENCH_201, SHAPES, config, write_run

from idarts.arch import parse, to_json
from idarts.engine.folder import Run
from idarts.layers.graph import complete_edges
from idarts.pages import labels, page, read_run, write_report
from idarts.pages.heat import COLUMNS, heat
from idarts.spaces import darts, nas_bench_201, space


def test_decisions_and_options_are_in_the_order_of_the_supernets():
    assert complete_edges(darts.INPUTS, darts.NODES) == darts.EDGES
    assert complete_edges(1, 4) == nas_bench_201.EDGES


@pytest.mark.parametrize(
    "name", ["nas-bench-201", "darts", "nas-bench-1shot1-s1", "nas-bench-1shot1-s2", "nas-bench-1shot1-s3"]
)
def test_every_alpha_of_a_space_has_its_own_names(name):
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
    assert (found.rounds[0], found.rounds[-1]) == (5, 3000)
    assert (len(found.some), found.some[0], found.some[-1]) == (5, 5, 3000)
    assert pixels(found.groups[0].decisions[0]).shape[1] == COLUMNS


def test_a_heat_map_has_its_values_for_the_table_and_for_the_pointer(tmp_path):
    run = read_run(write_run(tmp_path / "run", rounds=50))
    drawn = heat(run)
    alphas = [alpha["cell"][2] for _, alpha in run.alphas()]
    weights = np.array([np.exp(row) / np.exp(row).sum() for row in alphas])
    options = drawn.groups[0].decisions[2].options
    assert drawn.rounds == list(range(1, 51))
    assert drawn.some == [1, 13, 25, 38, 50]
    for place, option in enumerate(options):
        assert option.some == [f"{100 * weights[number - 1, place]:.1f}" for number in drawn.some]
        pairs = [option.packed[start : start + 2] for start in range(0, 100, 2)]
        np.testing.assert_allclose([int(pair, 36) / 1000 for pair in pairs], weights[:, place], atol=5.1e-4)


def test_the_final_alpha_counts_where_the_last_round_has_none(tmp_path):
    run = read_run(write_run(tmp_path / "run", rounds=10, every=4))
    del run.rounds[-1]["alpha"]
    assert [number for number, _ in run.alphas()] == [4, 8, 10]


def test_an_alpha_that_has_hardly_moved_looks_like_nothing(tmp_path):
    """20.1 % against 20.0 % is no colour, whatever else the run holds; four times the share is full colour."""
    run = read_run(write_run(tmp_path / "run", rounds=2))
    last = np.full((6, 5), 0.0)
    last[0, 0] = np.log(0.201 / 0.799 * 4)
    last[1, 0] = np.log(0.8 / 0.2 * 4)
    run.rounds[-1]["alpha"]["cell"][:] = last
    weak, strong, *_ = heat(run).groups[0].decisions
    assert (weak.options[0].share, strong.options[0].share) == ("20.1 %", "80.0 %")
    assert pixels(weak)[:, -1, 3].max() == 0
    assert pixels(strong)[0, -1, 3] == 255


def test_a_dropped_option_is_grey_and_has_no_share(tmp_path):
    run = read_run(write_run(tmp_path / "run", rounds=4))
    for line in run.rounds[2:]:
        line["alpha"]["cell"][0, 1:4] = np.nan
    run.rounds[1]["alpha"]["cell"][1, 2] = np.nan  # only once: not a number
    drawn = heat(run)
    first, second, *_ = drawn.groups[0].decisions
    assert [option.share for option in first.options[1:4]] == ["dropped"] * 3
    assert sum(float(first.options[place].share.removesuffix(" %")) for place in (0, 4)) == pytest.approx(100, abs=0.2)
    assert first.options[1].packed[4:] == "----"
    assert first.options[1].packed[:4].isalnum()
    assert [option.packed[2:4] for option in second.options] == ["--"] * 5
    assert (drawn.dropped, drawn.unknown) == (True, True)
    assert "grey: dropped; grey: not a number" in page(run)


def test_weights_that_are_not_the_softmax_are_not_called_so(tmp_path):
    fair = page(read_run(write_run(tmp_path / "run", settings=config() | {"relaxation": "sigmoid"})))
    assert "The number is the softmax of α at the end" in fair
    assert "they come from the relaxation sigmoid" in fair
    usual = page(read_run(write_run(tmp_path / "usual", settings=config() | {"relaxation": "softmax"})))
    assert "the option’s weight (softmax of α)" in usual
    assert "they come from the relaxation" not in usual


def test_trials_are_drawn_and_their_texts_remain(tmp_path):
    pytest.importorskip("pygraphviz", reason="needs pygraphviz (idarts[draw])")
    trials = [{"architecture": NAS_BENCH_201, "steps": steps, "loss": 2.0 / steps} for steps in (8, 16)]
    trials += [{"architecture": f"mine <{place}>", "steps": 8, "loss": 3.0} for place in range(3)]
    run = write_run(tmp_path / "run", trials=trials, argmax=NAS_BENCH_201)
    tried = write_report(run).read_text().partition("Trials</h2>")[2].partition("Next steps")[0]
    assert tried.count("<li") == 4
    assert tried.count("<svg") == 2  # the cell that was trained twice, and that of the largest α
    assert tried.count(NAS_BENCH_201) == 4  # each as text, and as the name of the drawing
    assert "Loss 0.250 after 8 steps, 0.125 after 16 steps" in tried
    assert "mine &lt;2&gt;" in tried
    assert "These architectures were trained from scratch" in tried
    assert "neighbours" not in tried  # a fit, or selection.candidates, may propose others


def test_an_architecture_in_a_run_is_never_the_name_of_a_file(tmp_path):
    cell = tmp_path / "cell.json"
    cell.write_text(to_json(parse("DARTS_V2")))
    assert parse(str(cell)) == parse("DARTS_V2")
    assert Run(tmp_path, {}, [{"number": 1, "architecture": str(cell)}]).architecture() == str(cell)
    assert Run(tmp_path, {"architecture": str(cell)}, [{"number": 1}]).architecture() is None
