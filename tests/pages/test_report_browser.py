"""The report in a real browser: it opens without a network, and fits a phone."""

import json
import math
import re

import pytest
from browser import measure, needs_chromium
from report_runs import SHAPES, config, write_run

from idarts.pages import write_report

pytestmark = needs_chromium
FACTS = """
  wide: all("body *").filter((one) => box(one).right > innerWidth + 1 && !hidden(one))
    .map((one) => one.tagName + "." + one.getAttribute("class")),
  drawn: all("svg:not(.key), img").every((one) => box(one).width > 40 && box(one).height > 10),
  loaded: [...document.images].every((one) => one.complete && one.naturalWidth > 0),
  lines: all("path.line").filter((one) => one.getTotalLength() > 100).length,
  keys: all(".key path").filter((one) => getComputedStyle(one).stroke.startsWith("rgb")).length,
  clipped: all(".plot > svg").flatMap((svg) => [...svg.querySelectorAll("text")].filter((text) => {
    const inner = text.getBBox(), outer = svg.viewBox.baseVal;
    return inner.x < 0 || inner.y < 0 || inner.x + inner.width > outer.width || inner.y + inner.height > outer.height
  }).map((text) => text.textContent)),
  heights: all(".heat").map((one) => Math.round(box(one.children[1]).height - box(one.children[0]).height)),
  ink: getComputedStyle(document.body).color, page: getComputedStyle(document.body).backgroundColor,
"""
# The ground and the colour of every operation's text, and of the title of a cell on the drawing itself.
CELL = """[...document.querySelectorAll(".drawing [class*=op-]")].map((one) => [
    getComputedStyle(one.querySelector("polygon")).fill, getComputedStyle(one.querySelector("text")).fill])
  .concat([[getComputedStyle(document.querySelector(".drawing")).backgroundColor,
    getComputedStyle(document.querySelector(".drawing .cluster text")).fill]])"""
HIDDEN = """hidden = (one) => { for (let up = one.parentElement; up; up = up.parentElement)
  if (["hidden", "auto"].includes(getComputedStyle(up).overflowX)) return true; return false };"""


def facts(browser, page, width, **options):
    browser.open(page, width, **options).run(HIDDEN)
    seen = measure(browser, FACTS)
    assert browser.problems() == []
    assert browser.requests() == []
    return seen


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("space", SHAPES)
def test_it_is_drawn_and_does_not_scroll_sideways(browser, tmp_path, space, width):
    run = write_run(tmp_path / "run", space, settings=config(space, note="a" * 300, data="folder:" + "long/" * 40))
    seen = facts(browser, write_report(run), width)
    assert seen["width"] == width
    assert seen["scroll"] <= width
    assert seen["wide"] == []
    assert seen["drawn"]
    assert seen["loaded"]
    assert seen["lines"] == seen["keys"] == 10
    assert seen["clipped"] == []


PLOT = "document.querySelectorAll('.heat .plot')[{}]"


def test_a_heat_map_shows_its_weights_under_the_pointer_and_by_keys(browser, tmp_path):
    run = write_run(tmp_path / "run", rounds=50)
    last = [row["alpha"]["cell"][1] for row in map(json.loads, (run / "metrics.jsonl").read_text().splitlines())]
    shares = [[f"{100 * math.exp(value) / sum(map(math.exp, row)):.1f} %" for value in row] for row in last]
    browser.open(write_report(run))
    plot = PLOT.format(1)
    browser.run(f"{plot}.scrollIntoView({{block: 'center'}})")
    left, top, width = browser.run(
        f"(() => {{ const box = {plot}.getBoundingClientRect(); return [box.left, box.top, box.width] }})()"
    )
    browser.mouse("moved", left + 0.21 * width, top + 5)
    said = browser.run(f"{plot}.querySelector('.readout').innerText").split("\n")
    assert said[0] == "round 11"
    assert [" ".join(line.split(" ")[-2:]) for line in said[1:]] == shares[10]
    browser.mouse("moved", 2, 2)
    assert browser.run(f"{plot}.querySelector('.readout').hidden")
    browser.run(f"{plot}.focus()")
    for key, number in (("ArrowLeft", 49), ("Home", 1), ("ArrowRight", 2), ("PageUp", 7), ("End", 50)):
        browser.press(key)
        assert browser.run(f"{plot}.getAttribute('aria-valuenow')") == str(number)
    text = browser.run(f"{plot}.getAttribute('aria-valuetext')")
    assert text.startswith("round 50: none ")
    assert all(share in text for share in shares[-1])
    assert browser.problems() == []


def test_a_heat_map_is_as_high_as_its_rows_even_if_it_has_few_columns(browser, tmp_path):
    seen = facts(browser, write_report(write_run(tmp_path / "run", rounds=2)), 1280)
    assert seen["heights"] == [0] * 6


def test_light_and_dark_both_have_contrast(browser, tmp_path):
    page = write_report(write_run(tmp_path / "run"))
    light, dark = (facts(browser, page, 390, dark=dark) for dark in (False, True))
    assert luminance(light["page"]) > luminance(dark["page"])
    for seen in (light, dark):
        low, high = sorted((luminance(seen["ink"]), luminance(seen["page"])))
        assert (high + 0.05) / (low + 0.05) > 7


def test_a_cell_is_dark_on_a_dark_page_and_its_words_are_readable(browser, tmp_path):
    pytest.importorskip("pygraphviz", reason="needs pygraphviz (idarts[draw])")
    page = write_report(write_run(tmp_path / "run", "darts"))
    for dark in (False, True):
        browser.open(page, dark=dark)
        for ground, words in browser.run(CELL):
            low, high = sorted((luminance(ground), luminance(words)))
            assert (high + 0.05) / (low + 0.05) > 3.4, (ground, words)
        card, *_ = browser.run(CELL)[-1]
        assert (luminance(card) < 0.1) == dark


def luminance(colour):
    """WCAG's relative luminance of a colour as a browser writes it: rgb(1, 2, 3)."""
    parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
