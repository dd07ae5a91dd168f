"""Reports of searches that are not gradient searches: no α, or measures that only the user's own method knows."""

import json

import pytest
from html_tree import Tree, read, runs_only_our_script
from hypothesis import given, settings
from hypothesis import strategies as st
from report_runs import NAS_BENCH_201, metrics, write_run

from idarts.arch import parse, to_data
from idarts.pages import Run, page
from idarts.pages.measures import MOST_OTHERS

SECTIONS = ("α over time", "Can the hypergradient be trusted?", "Other measures", "Trials</h2>")


def write_population(folder, finished=True, **more):
    """A search that tries architectures one by one: no α, no losses, no gradients."""
    folder.mkdir()
    lines = [
        {"number": number, "seconds": 2.0 * number, "valid_accuracy": 0.5 + number / 100, "architecture": NAS_BENCH_201}
        | {name: value(number) for name, value in more.items()}
        for number in range(1, 21)
    ]
    (folder / "config.json").write_text(json.dumps({"space": "nas-bench-201", "method": "mine:evolve", "rounds": 20}))
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    if finished:
        result = {"architecture": to_data(parse(NAS_BENCH_201)), "seconds": 40.0, "metrics": lines[-1]}
        (folder / "result.json").write_text(json.dumps(result))
    return folder


@pytest.mark.parametrize("finished", [True, False])
def test_a_search_without_alpha(tmp_path, finished):
    seen = read(write_population(tmp_path / "run", finished))
    assert "nas-bench-201 searched by mine:evolve" in seen.text
    assert "20 of 20" in seen.text
    assert "validation accuracy, mean of the last 10 rounds65.5 %" in seen.text.replace("\n", "")
    assert NAS_BENCH_201 in seen.text
    assert "rounds per second" in seen.text
    assert not [section for section in SECTIONS if section in seen.text]
    assert "α" not in seen.text
    assert "not finite" not in seen.text
    charts = [attributes["aria-label"] for tag, attributes in seen.tags if tag == "svg" and "aria-label" in attributes]
    assert [chart for chart in charts if "rounds" in chart] == [
        "Accuracy on own data over rounds 1 to 20: validation 70.0 % at the end"
    ]


def test_measures_that_are_null_throughout_have_no_place(tmp_path):
    """As a strategy leaves them that logs the fields of a gradient search without having them."""
    nothing = dict.fromkeys(("valid_loss", "train_loss", "norm", "entropy", "contraction", "alpha"), lambda _: None)
    seen = read(write_population(tmp_path / "run", **nothing))
    assert not [section for section in SECTIONS if section in seen.text]
    assert "not finite" not in seen.text


def test_unknown_measures_get_a_chart_each(tmp_path):
    run = write_population(
        tmp_path / "run",
        temperature=lambda number: 5.0 / number,
        population_size=lambda number: 16 if number % 5 == 0 else None,
        lucky=lambda number: number == 7,
        parents=lambda number: [number],
    )
    seen = read(run)
    assert seen.text.count("Other measures") == 1
    labels = [attributes.get("aria-label", "") for _, attributes in seen.tags]
    assert "Temperature over rounds 1 to 20: temperature 0.25 at the end" in labels
    assert "Population size over rounds 5 to 20: population_size 16 at the end" in labels
    assert not any("ucky" in label or "arents" in label for label in labels)
    other = page(Run(run, {}, [{"number": 1, "temperature": 1.0}])).partition("Other measures")[2]
    assert other.count("<figure") == 1


def test_names_of_unknown_measures_are_escaped(tmp_path):
    evil = "<script>alert(1)</script>\"'&"
    seen = read(write_population(tmp_path / "run", **{evil: lambda number: number}))
    assert runs_only_our_script(seen)
    assert evil in seen.text
    assert any(evil in attributes.get("aria-label", "") for _, attributes in seen.tags)


def test_very_many_measures_are_counted_instead_of_drawn(tmp_path):
    many = {f"weight_{place}": float for place in range(MOST_OTHERS + 76)}
    run = write_population(tmp_path / "run", **many)
    seen = read(run)
    assert "76 more are in metrics.jsonl" in seen.text
    assert (run / "report.html").stat().st_size < 300_000


def test_every_field_of_a_gradient_search_has_its_own_place(tmp_path):
    lines = [line | {"margin": 0.1, "cost": 5.0, "expected_cost": 6.0, "table_accuracy": 91.0} for line in metrics()]
    run = write_run(tmp_path / "run")
    (run / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    seen = read(run)
    for title in ("Margin of α", "Cost of the network", "Accuracy by the table"):
        assert title in seen.text
    assert "Other measures" not in seen.text


def test_a_method_without_an_implicit_part_has_no_share(tmp_path):
    """0.2.0 logged 0 in every round of first order."""
    run = write_run(tmp_path / "run")
    for share, shown in ((0.0, False), (0.1, True)):
        lines = [line | {"implicit_share": 0.0} for line in metrics()]
        lines[5]["implicit_share"] = share
        (run / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        assert ("Implicit share" in read(run).text) == shown


VALUES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.just([1.0])
FIELDS = st.sampled_from(
    ["seconds", "valid_accuracy", "valid_loss", "norm", "entropy", "contraction", "gradient_evaluations", "epoch"]
)


@settings(deadline=None, max_examples=30)
@given(st.lists(st.dictionaries(FIELDS | st.text(max_size=6), VALUES), min_size=1, max_size=4), st.booleans())
def test_no_log_breaks_the_page(tmp_path_factory, rounds, trains):
    lines = [line | {"number": number} for number, line in enumerate(rounds, start=1)]
    for line in lines:
        line.pop("alpha", None)
    config = {"architecture": "DARTS_V2"} if trains else {}
    Tree(page(Run(tmp_path_factory.getbasetemp(), config, lines)))
