"""NAS-Bench-301: codes of cells, the trained values, the official files, and a surrogate fitted to made-up cells."""

import json
from pathlib import Path
from random import Random

import numpy as np
import pytest
from scipy.stats import spearmanr

from idarts import InputError
from idarts.arch import as_text, parse, sample
from idarts.cli import main
from idarts.spaces import darts
from idarts.tables import NoTableError, find, import_table, table
from idarts.tables.nas_bench_301.boosting import Boosting
from idarts.tables.nas_bench_301.codes import OPS, code_of, decode, digits, encode
from idarts.tables.nas_bench_301.features import features
from idarts.tables.nas_bench_301.surrogate import fit, load
from idarts.tables.nas_bench_301.table import SURROGATE, Table301
from idarts.tables.storage.columns import Columns, write_columns

REAL = "nasbench301_real.parquet"
# Row 0 of the public listing: inputs 01011303 and operations 64054262 of the normal cell.
ROW = ("dil_conv_5x5", 0), ("sep_conv_5x5", 1), ("max_pool_3x3", 0), ("dil_conv_3x3", 1)
ROW += ("sep_conv_5x5", 1), ("skip_connect", 3), ("dil_conv_5x5", 0), ("skip_connect", 3)


def made_up(number, seed=0):
    """Cells at random and accuracies that depend on their operations and their depth, with noise."""
    random, noise = Random(seed), np.random.default_rng(seed)
    cells = {encode(cell): cell for cell in (sample("darts", random) for _ in range(number))}
    worth = {"sep": 0.3, "dil": 0.15, "ski": 0.1, "max": -0.2, "avg": -0.3}
    values = [
        90 + sum(worth[edge.op[:3]] * (1 + edge.source / 4) for name in cell.cells for edge in cell.cells[name].edges)
        for cell in cells.values()
    ]
    return np.array(list(cells), np.uint64), np.array(values, np.float32) + noise.normal(0, 0.1, len(cells)).astype(
        "f4"
    )


@pytest.fixture(scope="module")
def fitted():
    codes, accuracies = made_up(1500)
    return fit(codes, accuracies, 7, Boosting(trees=150, depth=4, rate=0.15, questions=0.3))


def test_a_cell_and_its_code():
    for seed in range(200):
        cell = sample("darts", Random(seed))
        codes = encode(cell)
        assert encode(as_text(decode(*codes))) == codes
        for code, name in zip(codes, ("normal", "reduce"), strict=True):
            edges = sorted(cell.cells[name].edges, key=lambda edge: (edge.target, edge.source))
            assert digits(code) == [(edge.source, OPS.index(edge.op)) for edge in edges]
    assert len({encode(sample("darts", Random(seed))) for seed in range(2000)}) == 2000


def test_the_listings_numbers():
    inputs, ops = ([int(digit) for digit in text] for text in ("01011303", "64054262"))
    code = code_of(inputs, ops)
    edges = decode(code, code).cells["normal"].edges
    assert [(edge.op, edge.source) for edge in sorted(edges, key=lambda edge: (edge.target, edge.source))] == list(ROW)


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("NASNet-A", "cells of four nodes"),
        ("nas-bench-201:7", "of the space darts, not of nas-bench-201"),
        ("Random_NSAS", "no operation none"),
    ],
)
def test_cells_that_the_benchmark_does_not_have(cell, message):
    with pytest.raises(InputError, match=message):
        encode(cell)


def test_features_by_hand():
    cell = parse("DARTS_V2")
    (row,) = features(np.array([encode(cell)], np.uint64))
    kinds = len(OPS)
    for block, name in enumerate(("normal", "reduce")):
        start = block * (len(row) - kinds) // 2
        edges = cell.cells[name].edges
        on = {darts.EDGES.index((edge.source, edge.target)) * kinds + OPS.index(edge.op) for edge in edges}
        assert set(np.flatnonzero(row[start : start + 98])) == on
        counts = [sum(edge.op == op for edge in edges) for op in OPS]
        assert row[start + 98 : start + 98 + kinds].tolist() == counts
        met = [
            (min(a, b), max(a, b))
            for a, b in (  # operations that meet in a node
                [OPS.index(edge.op) for edge in edges if edge.target == node] for node in range(2, 6)
            )
        ]
        pairs = row[start + 98 + kinds + 3 * kinds + 6 :][: kinds**2].reshape(kinds, kinds)
        assert {(a, b): int(pairs[a, b]) for a, b in set(met)} == {pair: met.count(pair) for pair in met}
        assert pairs.sum() == 4
        paths = {0: 1, 1: 1}
        for node in range(2, 6):
            paths[node] = sum(paths[edge.source] for edge in edges if edge.target == node)
        end = (block + 1) * (len(row) - kinds) // 2
        assert row[end - 4 : end].tolist() == [paths[node] for node in range(2, 6)]
    assert row[-kinds:].sum() == 16


def test_boosting_against_a_closed_form():
    """All questions on every tree, no ridge: with rate 1 one full tree is the mean of each combination of answers."""
    answers = np.array(list(np.ndindex(2, 2, 2)) * 3, bool)
    targets = np.random.default_rng(0).normal(size=len(answers)).astype(np.float32)
    trees = Boosting(trees=1, depth=3, rate=1, ridge=1e-6, rows=2, questions=1).fit(answers, targets, 0)
    means = [targets[(answers == row).all(axis=1)].mean() for row in answers]
    used = set(trees.questions[0].tolist())
    if len(used) == 3:  # a greedy tree may ask one question twice, and then sees less
        np.testing.assert_allclose(trees(answers), means, atol=1e-4)
    shrunk = Boosting(trees=1, depth=1, rate=0.5, ridge=3.0, rows=2, questions=1).fit(answers, targets, 0)
    side = answers[:, shrunk.questions[0, 0]]
    left = targets - targets.mean()
    for yes in (False, True):
        expected = targets.mean() + 0.5 * left[side == yes].sum() / ((side == yes).sum() + 3.0)
        np.testing.assert_allclose(shrunk(answers)[side == yes], expected, atol=1e-5)


def test_held_out_cells_are_predicted(fitted):
    figures = fitted.figures()
    assert figures["spearman"] == pytest.approx(spearmanr(fitted.held_out, fitted.targets)[0], abs=1e-3)
    assert figures["spearman"] > 0.9
    codes, accuracies = made_up(400, seed=9)
    means, deviations = fitted.surrogate(codes)
    assert spearmanr(means, accuracies)[0] > 0.9
    assert 0.9 < np.mean(np.abs(means - accuracies) < 2 * deviations) < 1
    assert (deviations >= fitted.surrogate.held_out_error - 1e-6).all()


def test_the_surrogate_survives_its_file_and_damage_is_seen(fitted, tmp_path):
    file = tmp_path / SURROGATE
    fitted.surrogate.save(file)
    codes, _ = made_up(50, seed=3)
    for one, other in zip(load(file)(codes), fitted.surrogate(codes), strict=True):
        np.testing.assert_array_equal(one, other)
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 4
    file.write_bytes(content)
    with pytest.raises(InputError, match=r"is damaged .*idarts table fit nas-bench-301"):
        load(file)


@pytest.fixture
def small(tmp_path, own_cache):
    """A table of 300 made-up cells, of which the first ten have no value."""
    codes, accuracies = made_up(300)
    accuracies[:10] = np.nan
    order = np.lexsort((codes[:, 1], codes[:, 0]))
    columns = {"normal": codes[order, 0], "reduce": codes[order, 1], "valid": accuracies[order]}
    write_columns(tmp_path / "nas-bench-301.npz", columns)
    return tmp_path, codes, accuracies


def test_trained_cells_and_the_others(small, capsys, monkeypatch):
    folder, codes, accuracies = small
    opened = table("nas-bench-301", folder)
    cell = decode(*map(int, codes[20]))
    assert opened.query(cell)["source"] == "trained"
    assert opened.accuracy(cell) == pytest.approx(accuracies[20], abs=1e-4)
    assert opened.query(cell)["cifar10"] == {"valid": opened.accuracy(cell)}
    known = accuracies[10:]
    assert opened.rank(cell) == (1 + (known > accuracies[20]).sum(), 290)
    assert opened.best()["cifar10"]["valid"] == pytest.approx(known.max(), abs=1e-4)
    with pytest.raises(NoTableError, match="fit it once with: idarts table fit nas-bench-301"):
        opened.query("DARTS_V2")
    with pytest.raises(NoTableError):  # a search must not fail in its first round
        find("darts", folder)
    monkeypatch.setenv("IDARTS_TABLES", str(folder))
    assert find("darts") is None
    monkeypatch.setattr(Boosting.__init__, "__defaults__", (60, 4, 0.15, 5.0, 0.8, 0.3))
    assert main(["table", "fit", "nas-bench-301", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["cells"] == 290
    answer = find("darts").query("DARTS_V2")
    assert (answer["source"], set(answer["cifar10"])) == ("surrogate", {"valid"})
    assert answer["deviation"] > 0
    assert find("darts").query(decode(*map(int, codes[3])))["source"] == "surrogate"  # it has a row, but no value
    write_columns(
        folder / "nas-bench-301.npz", {n: find("darts").columns[n][:290] for n in ("normal", "reduce", "valid")}
    )
    assert find("darts") is None  # another table: the surrogate is not its own


def results_file(folder, number, cell, valid, test, layers=8, channels=32):
    config = {
        "NetworkSelectorDatasetInfo:darts:layers": layers,
        "NetworkSelectorDatasetInfo:darts:init_channels": channels,
    }
    for name in ("normal", "reduce"):
        for edge in cell.cells[name].edges:
            place = darts.EDGES.index((edge.source, edge.target))
            config[f"NetworkSelectorDatasetInfo:darts:edge_{name}_{place}"] = edge.op
        for node in range(3, 6):
            sources = sorted(edge.source for edge in cell.cells[name].edges if edge.target == node)
            config[f"NetworkSelectorDatasetInfo:darts:inputs_node_{name}_{node}"] = "_".join(map(str, sources))
    content = {"optimized_hyperparamater_config": config, "info": [{"val_accuracy": valid}], "test_accuracy": test}
    folder.mkdir(exist_ok=True, parents=True)
    (folder / f"results_{number}.json").write_text(json.dumps(content))


def test_the_official_files(tmp_path):
    cells = [sample("darts", Random(seed)) for seed in range(3)]
    data = tmp_path / "data"
    results_file(data / "rs", 0, cells[0], 93.0, 92.5)
    results_file(data / "rs", 1, cells[1], 94.0, 93.5)
    results_file(data / "de", 0, cells[0], 94.0, 93.0)  # trained twice
    results_file(data / "de", 1, cells[2], 80.0, 79.0, layers=5)  # a smaller network
    written = import_table(data, tmp_path / "tables")
    opened = table("nas-bench-301", tmp_path / "tables")
    assert opened.columns.file == written
    assert opened.query(cells[0]) == {
        "architecture": as_text(decode(*encode(cells[0]))),
        "cifar10": {"valid": 93.5, "test": 92.75},
        "source": "trained",
    }
    assert opened.accuracy(cells[1], split="test") == 93.5
    with pytest.raises(NoTableError):
        opened.query(cells[2])
    (data / "de" / "results_1.json").write_text("[1]")
    with pytest.raises(InputError, match=r"results_1\.json is not a result of NAS-Bench-301"):
        import_table(data, tmp_path / "tables")


def test_the_real_table(own_cache):
    pytest.importorskip("pyarrow.parquet", reason="needs pyarrow (idarts[tables])")
    if not own_cache.real or not Path(own_cache.real, REAL).is_file():
        pytest.skip("IDARTS_TABLES names no folder with the real NAS-Bench-301 table")
    opened = table("nas-bench-301", own_cache.real)
    assert isinstance(opened, Table301)
    assert isinstance(opened.columns, Columns)
    values = np.array(opened.columns["valid"])
    known = values[~np.isnan(values)]
    assert (len(values), len(known)) == (11221, 10307)
    assert (round(float(known.mean()), 3), round(float(known.max()), 2)) == (92.955, 94.69)
    assert opened.best()["cifar10"]["valid"] == 94.69
    normal = code_of([int(c) for c in "01011303"], [int(c) for c in "64054262"])
    rows = [row for row, code in enumerate(opened.columns["normal"]) if code == normal]
    assert 93.46 in [round(opened.columns["valid"][row], 2) for row in rows]
