"""Comparisons of made-up runs whose numbers are known, and the tests' p-values against their definitions."""

import csv
import json
import sys
from contextlib import nullcontext
from dataclasses import asdict
from itertools import product

import numpy as np
import pytest
from scipy import stats

from idarts.arch import parse, to_data
from idarts.cli import main
from idarts.errors import InputError
from idarts.experiments import Request, plan
from idarts.experiments.comparison import at_equal_cost, compare, pairs
from idarts.experiments.facts import facts
from idarts.experiments.record import write_record
from idarts.experiments.statistics import holm, paired, permutation, t_test
from idarts.pages.comparison import sections

CELL = to_data(parse("nas-bench-201:0"))


def make_run(folder, method="idarts", seed=1, test=93.0, per_round=2.0, table=True, finished=True, **changes):
    folder.mkdir(parents=True)
    config = {"space": "nas-bench-201", "method": method, "seed": seed, "data": "digits", "rounds": 20} | changes
    rounds = [
        {"number": number, "gradient_evaluations": per_round * number, "valid_accuracy": number / 40}
        | ({"table_accuracy": test - (20 - number)} if table else {})
        for number in range(1, 21)
    ]
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in rounds))
    if finished:
        result = {
            "space": "nas-bench-201",
            "method": method,
            "seed": seed,
            "architecture": CELL,
            "table": {"index": 0, "cifar10": {"valid": test - 2, "test": test}} if table else None,
            "metrics": rounds[-1],
            "gradient_evaluations": per_round * 20,
            "seconds": 60.0,
            "config": config,
        }
        (folder / "result.json").write_text(json.dumps(result))
    return folder


def change_result(folder, **changes):
    file = folder / "result.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))


@pytest.fixture
def runs(tmp_path):
    """iDARTS costs twice as much a round, and is better by 1, 2 and 3 points."""
    for seed in (1, 2, 3):
        make_run(tmp_path / f"a{seed}", "darts", seed, 90.0, per_round=1.0)
        make_run(tmp_path / f"b{seed}", "idarts", seed, 90.0 + seed)
    return tmp_path


def test_means_deviations_and_paired_tests(runs, capsys):
    assert main(["compare", str(runs), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["by"] == ["method"]
    groups = {group["name"]: group for group in found["groups"]}
    assert groups["idarts"]["cifar10_test"]["mean"] == pytest.approx(92)
    assert groups["idarts"]["cifar10_test"]["std"] == pytest.approx(1)
    assert groups["darts"]["cifar10_test"]["std"] == 0
    (pair,) = found["pairs"]
    assert (pair["first"], pair["seeds"], pair["difference"]) == ("darts", 3, -2.0)
    assert pair["permutation_p"] == 0.25
    assert pair["t_test_p"] == pytest.approx(stats.ttest_rel([90, 90, 90], [91, 92, 93]).pvalue)
    # At 20 evaluations, all that DARTS had, iDARTS stood at its tenth round of twenty: ten points below its end.
    assert found["equal_cost"]["gradient_evaluations"] == 20
    assert groups["idarts"]["at_equal_cost"]["values"] == [81, 82, 83]
    assert groups["darts"]["at_equal_cost"]["values"] == [90, 90, 90]


def test_text_page_and_table(runs, tmp_path, capsys):
    out = tmp_path / "page"
    assert main(["compare", str(runs), "--by", "method", "--out", str(out)]) == 0
    shown = capsys.readouterr().out
    assert "92.00±1.00" in shown
    assert "darts − idarts" in shown
    page = (out / "index.html").read_text()
    assert page.count("<figure") == 4  # the dots of three measures, and the curve
    assert "Comparison on digits" in page
    assert "92.00±1.00" in page
    assert (out / "equal-cost-table.svg").read_text().count('class="line') >= 4  # two curves, two keys
    rows = {row["group"]: row for row in csv.DictReader((out / "comparison.csv").read_text().splitlines())}
    assert float(rows["idarts"]["cifar10_test_mean"]) == 92
    assert "92.00±1.00" in (out / "results.md").read_text()


def test_a_curve_is_as_long_as_the_table_says(tmp_path):
    """One seed ends early and keeps its value; the curve of both ends at their mean cost, with their last values."""
    make_run(tmp_path / "a", seed=1, per_round=1.0)
    change_result(make_run(tmp_path / "b", seed=2, per_round=3.0), gradient_evaluations=80.0)
    made = facts(compare([tmp_path]))
    (group,), (curve,) = made["groups"], made["curves"]["table"]
    assert curve["cost"][-1] == group["gradient_evaluations"]["mean"] == 50
    assert [values[-2:] for values in curve["values"]] == [[93.0, 93.0], [89.0, 93.0]]  # 89 in its 16th round


def test_a_curve_ends_with_the_architecture_that_was_selected(tmp_path):
    """α's cell has 93 % after 40 evaluations; trials cost 100 more, and returned one of 95 %."""
    for seed in (1, 2):
        run = make_run(tmp_path / str(seed), seed=seed)
        change_result(run, gradient_evaluations=140.0 + seed, table_accuracy=95.0)
    found = compare([tmp_path])
    assert at_equal_cost(found) == ("table", 141.0, {"idarts": [95.0, 93.0]})  # the second one's trials had not ended
    (curve,) = facts(found)["curves"]["table"]
    assert curve["cost"][-1] == 141.5
    assert [values[-1] for values in curve["values"]] == [95.0, 95.0]
    assert all(values[-3] == 93.0 for values in curve["values"])


def test_a_folder_of_other_things_is_left_alone(runs, tmp_path, capsys):
    site, out = tmp_path / "site", tmp_path / "page"
    site.mkdir()
    (site / "index.html").write_text("mine")
    assert main(["compare", str(runs), "--out", str(site)]) == 2
    said = capsys.readouterr().err
    assert "site exists and holds no comparison; name a new folder with --out" in said
    assert said.count("\n") == 1
    assert [(path.name, path.read_text()) for path in site.iterdir()] == [("index.html", "mine")]
    out.mkdir()  # an empty folder is as good as a new one, and a comparison may be made anew
    for _ in range(2):
        assert main(["compare", str(runs), "--out", str(out)]) == 0


def test_settings_that_differ_make_groups_and_budgets_by_seed_do_not(tmp_path):
    for seed in (1, 2):
        for terms in (0, 2):
            folder = tmp_path / f"{terms}-{seed}"
            make_run(folder, seed=seed, hypergradient={"terms": terms}, gradient_evaluations=100.0 * seed)
    found = compare([tmp_path])
    assert found.by == ("hypergradient.terms",)
    assert [group.name for group in found.groups] == ["hypergradient.terms=0", "hypergradient.terms=2"]
    by_method = compare([tmp_path, tmp_path], by=["method"])  # twice the same folder are the same runs
    assert [len(group.runs) for group in by_method.groups] == [4]
    assert any("several runs with one seed" in note for note in by_method.notes)
    table = next(section for section in sections(facts(by_method)) if section.header)
    assert dict(zip(table.header, table.rows[0], strict=True))["runs"] == "4"  # of two seeds
    assert "seeds" not in table.header


def make_sweep(folder, **described):
    """Finished runs of a plan, and what a sweep puts on record of it."""
    planned = plan({"preset": "smoke", **described})
    for name, job in planned.jobs.items():
        make_run(folder / name, **json.loads(json.dumps(asdict(job.config))))
    write_record(planned.experiment, Request(folder), list(planned.jobs.values()))
    return folder


def names(*folders, by=()):
    return [group.name for group in compare(folders, by).groups]


def test_a_sweeps_groups_have_the_names_of_its_file(tmp_path):
    sets = {"slow-start": {"weights.warmup": 200, "weights.rate": 0.01}, "few-terms": {"hypergradient.terms": 0}}
    starts = make_sweep(tmp_path / "starts", seeds=2, grid={"start": sets})
    assert names(starts) == ["few-terms", "slow-start"]
    assert names(starts, by=["weights.warmup"]) == ["weights.warmup=0", "weights.warmup=200"]
    rates = make_sweep(tmp_path / "rates", grid={"alpha.rate": [1e-05, 1e-06]})
    assert names(rates) == ["alpha.rate=1e-05", "alpha.rate=1e-06"]
    methods = make_sweep(tmp_path / "methods", methods=["darts", "darts-first-order"], grid={"batch": [8, 9]})
    both = ["darts batch=8", "darts batch=9", "darts-first-order batch=8", "darts-first-order batch=9"]
    assert sorted(names(methods)) == both
    assert sorted(names(rates, methods)) == sorted([*both, "idarts alpha.rate=1e-05", "idarts alpha.rate=1e-06"])


def test_a_sweeps_groups_are_called_by_settings_where_its_record_has_no_parts(tmp_path):
    rates = make_sweep(tmp_path / "rates", grid={"rate": {"low": {"alpha.rate": 1e-06}, "high": {"alpha.rate": 0.1}}})
    for record in ({"jobs": list(json.loads((rates / "sweep.json").read_text())["jobs"])}, {"jobs": 3}, []):
        (rates / "sweep.json").write_text(json.dumps(record))
        damaged = not isinstance(record, dict) or record["jobs"] == 3
        with pytest.warns(UserWarning, match="sweep.json is damaged") if damaged else nullcontext():
            assert names(rates) == ["alpha.rate=0.1", "alpha.rate=1e-06"]


def test_what_cannot_be_compared_is_said(runs, tmp_path, capsys):
    make_run(runs / "c", finished=False, seed=9)
    make_run(runs / "d", table=False, seed=9, data="cifar10")
    found = compare([runs])
    assert any("left out: c" in note for note in found.notes)
    assert any("different data (cifar10, digits)" in note for note in found.notes)
    assert found.measure == "cifar10_test"  # one has no table, which does not change what is tested
    assert any("Without a finite cifar10_test" in note and "1 of 7 runs, d." in note for note in found.notes)
    assert at_equal_cost(found) == "the table has the cells of only some runs"
    for arguments, said in (
        (["no-such"], "does not exist"),
        ([str(runs / "a1")], "nothing to compare"),
        ([str(runs), "--by", "metod"], "no run has a setting 'metod'"),
        ([str(runs), "--measure", "cifar10_test"], "not all runs have"),
    ):
        assert main(["compare", *arguments]) == 2
        shown = capsys.readouterr().err
        assert said in shown
        assert shown.count("\n") == 1


def test_no_accuracy_is_called_the_supernets_where_there_may_be_none(runs, capsys):
    make_run(runs / "r", "random-trials", 1)
    assert main(["compare", str(runs)]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "supernet valid" not in shown
    assert "that of the supernet or, for a method without one, of the networks that it tries" in shown


def test_damaged_runs_are_listed_and_the_others_compared(runs, capsys):
    (runs / "a1" / "result.json").write_text("{")
    lines = (runs / "b1" / "metrics.jsonl").read_text().splitlines()
    (runs / "b1" / "metrics.jsonl").write_text("\n".join([*lines[:3], "xx", *lines[4:]]) + "\n")
    assert main(["compare", str(runs), "--json"]) == 0
    notes = " ".join(json.loads(capsys.readouterr().out)["notes"])
    assert "Damaged, and left out: a1 (" in notes
    assert "b1: metrics.jsonl has damaged lines, which are left out: 4. b1: metrics.jsonl lacks rounds: 4." in notes


def test_a_table_for_few_runs_is_not_tested_and_said(runs):
    for seed in range(4, 12):
        make_run(runs / f"c{seed}", "gdas", seed, table=False)
    found = compare([runs])
    assert found.measure == "valid_accuracy"
    assert "Only 6 of 14 runs have accuracies by a table, so valid_accuracy is tested." in found.notes


def test_a_value_that_is_not_finite_is_left_out_and_said(runs, tmp_path, capsys):
    file = runs / "b3" / "metrics.jsonl"
    lines = [json.loads(line) | {"valid_accuracy": None} for line in file.read_text().splitlines()]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert main(["compare", str(runs), "--measure", "valid_accuracy", "--json"]) == 0

    def refuse(word):
        raise AssertionError(f"{word} is no JSON")

    found = json.loads(capsys.readouterr().out, parse_constant=refuse)
    (pair,) = found["pairs"]
    assert (pair["seeds"], pair["permutation_p"], pair["permutation_p_holm"]) == (2, 1.0, 1.0)
    assert found["groups"][1]["valid_accuracy"]["values"][2] is None
    left_out = "Without a finite valid_accuracy, and left out of its means and tests: 1 of 6 runs, b3."
    assert left_out in found["notes"]
    assert main(["compare", str(runs), "--measure", "valid_accuracy", "--out", str(tmp_path / "page")]) == 0
    assert left_out in " ".join(capsys.readouterr().out.split())
    assert left_out not in compare([runs]).notes  # by the table all runs have a value
    make_run(runs / "b4", "idarts", 3)
    assert [found.pairs for *_, found in pairs(compare([runs], measure="valid_accuracy"))] == [3]


def test_pairs_that_are_not_finite_are_none():
    nan = float("nan")
    assert paired([nan, 3.0, 4.0, nan], [1.0, 2.0, 2.0, nan]) == paired([3.0, 4.0], [2.0, 2.0])
    alone = paired([nan, 3.0], [1.0, 2.0])
    assert (alone.pairs, alone.mean, alone.permutation) == (1, 1.0, None)


def test_without_a_common_cost_it_is_said_why(tmp_path, capsys):
    for seed in (1, 2):
        make_run(tmp_path / f"a{seed}", "darts", seed, per_round=1.0)
        make_run(tmp_path / f"b{seed}", "idarts", seed, per_round=30.0)
    assert main(["compare", str(tmp_path)]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    why = "one run ended after 20 gradient evaluations, but the first round of another took 30"
    assert f"There is no column at equal cost: {why}." in shown
    assert main(["compare", str(tmp_path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["equal_cost"] is None


@pytest.mark.parametrize("columns", ["80", "160", None])
def test_names_are_never_cut(tmp_path, monkeypatch, capsys, columns):
    sets = {"data.augment-with-a-long-name": {"batch": 8}, "data.augment-with-a-long-game": {"batch": 9}}
    swept = make_sweep(tmp_path / "sets", seeds=2, methods=["darts", "darts-first-order"], grid={"start": sets})
    if columns:
        monkeypatch.setenv("COLUMNS", columns)
    else:
        monkeypatch.delenv("COLUMNS", raising=False)
    assert main(["compare", str(swept)]) == 0
    shown = capsys.readouterr().out
    assert "…" not in shown
    for group in compare([swept]).groups:
        assert f"\n {group.name} " in shown
    wide = "rounds" in shown.split("Paired by seed")[0].split("“")[0]  # the header has all measures
    assert wide == (columns != "80")
    assert ("2 more measures are not shown; use a wider terminal" in shown) == (not wide)
    assert ("darts-first-order data.augment-with-a-long-game −" in shown) == wide


def test_p_values_against_their_definitions():
    draw = np.random.default_rng(1)
    for number in (2, 5, 9, 14):
        first, second = draw.normal(size=(2, number)) + np.array([[0.5], [0.0]])
        differences = first - second
        found = paired(first, second)
        t = differences.mean() / differences.std(ddof=1) * number**0.5
        assert found.t_test == pytest.approx(2 * stats.t.sf(abs(t), number - 1))
        signs = np.array(list(product((-1, 1), repeat=number)))
        means = abs(signs @ differences)
        assert found.permutation == (means >= abs(differences.sum()) * (1 - 1e-9)).mean()  # all 2ⁿ changes of signs
    assert permutation(np.array([1.0, -1.0, 1.0])) == 1.0  # most changes come to the same mean, or a larger one
    many = draw.normal(0.4, 1, 30)
    assert permutation(many) == permutation(many) == pytest.approx(t_test(many), abs=0.02)  # drawn, not counted
    assert permutation(np.zeros(4)) == 1
    assert holm([0.5, 0.9]) == [1.0, 1.0]


def test_without_scipy_the_command_that_installs_it_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy", None)
    with pytest.raises(InputError, match=r"pip install 'idarts\[experiments\]'"):
        t_test(np.array([1.0, 2.5]))
