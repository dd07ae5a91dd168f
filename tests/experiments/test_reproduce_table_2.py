"""Table 2: its plan, its equal cost, and the published rows beside the measured ones."""

import csv

import pytest

from idarts import InputError
from idarts.experiments import EXPERIMENTS, Request, run_experiment
from idarts.experiments.paper import table_2
from idarts.experiments.paper.published import TABLE_1
from idarts.experiments.searches import settings
from idarts.searching import METHODS
from idarts.spaces import count
from idarts.tables import table

# Two rounds on digits prove nothing of a search's quality, and may well warn of it.
pytestmark = [
    pytest.mark.filterwarnings("ignore::idarts.errors.CollapseWarning"),
    pytest.mark.filterwarnings("ignore::idarts.errors.DivergenceWarning"),
]


def test_every_method_searches_both_spaces_at_the_cost_of_idarts(tmp_path):
    planned = list(EXPERIMENTS["table-2"].plan(Request(tmp_path, "smoke", (1, 2))))
    assert len(planned) == 2 * 2 * len(table_2.METHODS)
    assert {job.facts["method"] for job in planned} == set(table_2.METHODS) <= set(METHODS)
    for job in planned:
        first = job.facts["method"] == "idarts"
        assert job.stage == (0 if first else 1)
        assert job.like == (None if first else f"runs/{job.facts['space']}-idarts-{job.facts['seed']}")
        assert job.config.space == job.facts["space"]
        # a search that ends without a selection may spend what that of iDARTS costs
        assert job.whole == (not first and job.config.selection.rule == "argmax")
    controls = [job for job in planned if job.facts["method"] in (*table_2.CONTROLS, "regularised-evolution")]
    assert all(job.whole for job in controls)


def test_in_nas_bench_201_methods_select_by_their_own_rules(tmp_path):
    request, base = Request(tmp_path, "cpu"), table_2.BASES["nas-bench-201", "cpu"]
    methods = ("idarts", "gdas", "p-darts")
    rules = {name: settings(request, "nas-bench-201", name, 1, {}, base).selection.rule for name in methods}
    assert rules == {"idarts": "argmax", "gdas": "argmax", "p-darts": "few-skips"}


def test_in_the_darts_space_it_is_a_third_of_the_preset(tmp_path):
    request, base = Request(tmp_path, "cpu"), table_2.BASES["darts", "cpu"]
    whole, part = (settings(request, "darts", "idarts", 1, {}, changed) for changed in (None, base))
    assert part.rounds == whole.rounds // 3
    assert part.selection == whole.selection
    assert settings(request, "darts", "enas", 1, {}, base).selection.options == {}  # it has another selection


def test_the_page_has_equal_cost_and_published_rows(tables, tmp_path):
    request = Request(tmp_path / "out", "smoke", (1,), tables, ("random-trials",))
    page = run_experiment(EXPERIMENTS["table-2"], request, tell=lambda _: None)
    with (page.parent / "results.csv").open() as file:
        rows = {(row["space"], row["method"]): row for row in csv.DictReader(file)}
    assert len(rows) == 2 * 2
    known = table("nas-bench-201", tables)
    for (space, _), row in rows.items():
        assert float(row["gradient_evaluations"]) <= float(rows[space, "idarts"]["gradient_evaluations"])
        assert int(float(row["parameters"])) == count(row["cell"]).params
    row = rows["nas-bench-201", "random-trials"]
    assert float(row["cifar10_test"]) == pytest.approx(known.query(row["cell"])["cifar10"]["test"], abs=1e-3)
    text = (page.parent / "results.md").read_text()
    assert all(part in text for part in ("published (iDARTS)", "error 2.37 %", TABLE_1["idarts"][1], "mean nothing"))


def test_an_unknown_row_is_refused(tmp_path):
    with pytest.raises(InputError, match="unknown row 'gdass'"):
        list(EXPERIMENTS["table-2"].plan(Request(tmp_path, "smoke", methods=("gdass",))))
