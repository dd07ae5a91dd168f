"""Pages of experiments and comparisons, and the gallery: one style, one policy, and they fit a phone."""

import re
import sys

import numpy as np
import pytest
from browser import measure, needs_chromium
from html_tree import Tree, runs_only_our_script
from report_runs import write_run

from idarts.errors import InputError
from idarts.pages import gallery, template, write_report
from idarts.pages.chart import Curve, chart
from idarts.pages.comparison import sections, write_comparison
from idarts.pages.experiment import Section, write_page

EVIL = "<script>alert(1)</script>\"'&|"


def write_experiment(out, name="figure-1"):
    out.mkdir()
    curves = [Curve(f"T = {T}", np.arange(40.0), np.linspace(90, 94 - T, 40)) for T in range(4)]
    drawn = chart("along", EVIL, ("share of the search in percent", "test error in percent"), curves, EVIL)
    rows = [[name, "93.50±0.10", "1,000", "O(P+H)"], [f"  {EVIL}", "–", "", "12"]]
    section = Section(EVIL, [EVIL], ["", *"abc"], rows, [drawn], [EVIL])
    return write_page(out, name, EVIL, "now", [section])


def test_everything_is_escaped_and_numbers_are_right_aligned(tmp_path):
    html = write_experiment(tmp_path / "out", EVIL).read_text()
    page = Tree(html)
    assert runs_only_our_script(page)
    assert page.text.count(EVIL) >= 8
    cells = [attributes.get("class") for tag, attributes in page.tags if tag == "td"]
    assert cells[:6] == ["number", "number", None, "number", "number", None]
    assert [path.name for path in sorted((tmp_path / "out").iterdir())] == ["along.svg", "index.html", "results.md"]
    assert "<script" not in (tmp_path / "out" / "along.svg").read_text()
    lines = (tmp_path / "out" / "results.md").read_text().splitlines()
    assert "| --- | --- | --- | --- |" in lines
    assert sum(line.startswith("| ") for line in lines) == 4


def facts(seeds=3, pairs=True):
    summary = {"mean": 93.0, "std": 1.0, "values": [92.0, 93.0, 94.0][:seeds]}
    group = {"seeds": list(range(seeds)), "cifar10_test": summary, "valid_accuracy": summary, "at_equal_cost": summary}
    group |= {"gradient_evaluations": summary, "seconds": {"mean": None, "std": None, "values": []}}
    pair = {"first": "a", "second": "b", "seeds": seeds, "difference": -0.5, "deviation": None}
    pair |= {"permutation_p": 0.25, "permutation_p_holm": 0.25, "t_test_p": 0.0001}
    curve = {"name": "a", "cost": [1.0, 2.0], "values": [[90.0, 93.0]] * seeds}
    return {
        "by": ["method"],
        "data": ["digits"],
        "measure": "cifar10_test",
        "measures": ["cifar10_test", "valid_accuracy"],
        "groups": [group | {"name": name} for name in "ab"],
        "equal_cost": {"gradient_evaluations": 1234.0, "measure": "table"},
        "pairs": [pair] if pairs else [],
        "curves": {"table": [curve], "valid_accuracy": []},
        "notes": [],
    }


def test_a_comparison_comes_from_plain_data(tmp_path):
    means, tests, dots, curves = sections(facts())
    assert means.header == [
        "",
        "runs",
        "cifar10 test",
        "valid, last rounds",
        "at 1,234 evaluations",
        *means.header[-2:],
    ]
    assert means.rows[0] == ["a", "3", "93.00±1.00", "9300.00±100.00", "93.00±1.00", "93", "–"]
    assert tests.rows == [["a − b", "3", "-0.50", "–", "0.250", "0.250", "1.0e-04"]]
    assert tests.notes[-1] == "With 3 seeds, the smallest possible p is 0.25."
    assert [drawn.name for drawn in dots.charts] == ["seeds-cifar10-test", "seeds-valid-accuracy"]
    assert [drawn.name for drawn in curves.charts] == ["equal-cost-table"]
    assert sections(facts(), brief=True)[0].header[2] == "cifar10 test"
    assert sections(facts(pairs=False))[1].text == ["There is only one group, so there is nothing to test."]
    assert sections(facts(seeds=1))[1].notes == ["No two groups share two seeds, so there is nothing to test."]
    page = write_comparison(facts(), tmp_path / "out").read_text()
    assert page.count("<figure") == 3
    assert page.count('class="dot seed') == 2 * 2 * 3  # groups, measures, seeds
    assert "<h1>Comparison on digits" in page
    assert (tmp_path / "out" / "comparison.csv").read_text().startswith("group,runs,cifar10_test_mean,")


def test_without_jinja_an_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    template._environment.cache_clear()
    with pytest.raises(InputError, match=r"pages need jinja2: pip install 'idarts\[report\]'"):
        template.require_jinja()


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    pytest.importorskip("pygraphviz", reason="needs pygraphviz (idarts[draw])")
    folder = tmp_path_factory.mktemp("pages")
    return {
        "run": write_report(write_run(folder / "run", rounds=20)).read_text(),
        "experiment": write_experiment(folder / "out").read_text(),
        "comparison": write_comparison(facts(), folder / "comparison").read_text(),
        "gallery": gallery.page(),
    }


def test_all_pages_share_one_style_and_one_policy(pages):
    assert len({re.search(r"<style>.*?</style>", page, re.DOTALL)[0] for page in pages.values()}) == 1
    for page in pages.values():
        assert ("meta", {"http-equiv": "Content-Security-Policy", "content": template.policy()}) in Tree(page).tags
        assert not re.search(r"(?:src|href)=\"(?!data:)", page)


@needs_chromium
@pytest.mark.parametrize("kind", ["experiment", "comparison", "gallery"])
def test_pages_fit_a_phone(pages, browser, tmp_path, kind):
    (tmp_path / "page.html").write_text(pages[kind], encoding="utf-8")
    seen = measure(browser.open(tmp_path / "page.html", 390), 'drawn: all("svg").every((one) => box(one).width > 20)')
    assert seen["scroll"] <= seen["width"] == 390
    assert seen["drawn"]
