"""Charts in a real browser: values under the pointer, zoom, keys, tables, and names that would like to be code."""

import json
import re
from xml.etree import ElementTree

import numpy as np
import pytest
from browser import needs_chromium
from report_runs import config, metrics, write_run

from idarts.pages import read_run, write_report
from idarts.pages.chart import KEPT, Curve, chart
from idarts.pages.experiment import Section, write_page
from idarts.pages.measures import SEARCH, charts

pytestmark = needs_chromium
EVIL = "</script><script>evil = 1</script>\"'`&\x1b[31m{{ 7 * 7 }}{% raw %}${evil = 1}<img src=x onerror='evil = 1'>"
FIGURE = "document.querySelectorAll('figure[data-chart]')[{}]"
SVG = "{http://www.w3.org/2000/svg}"


class Hand:
    """One chart of the open page."""

    def __init__(self, browser, place=0):
        self.browser, self.figure = browser, FIGURE.format(place)
        browser.run(f"{self.figure}.scrollIntoView()")

    def run(self, script):
        return self.browser.run(f"(() => {{ const figure = {self.figure}; return {script} }})()")

    @property
    def box(self):
        corners = "['left', 'top', 'width', 'height']"
        return self.run(f"{corners}.map((side) => figure.querySelector('.plot svg').getBoundingClientRect()[side])")

    def point(self, share):
        left, top, width, height = self.box
        self.browser.mouse("moved", left + share * width, top + height / 2)
        return self.said()

    def said(self):
        return self.run("figure.querySelector('.readout').hidden ? '' : figure.querySelector('.readout').innerText")

    def ticks(self):
        texts = self.run("[...figure.querySelectorAll('.plot text[text-anchor=middle]')].map((one) => one.textContent)")
        return [float(text.replace(",", "")) for text in texts[:-1]]  # the last is the axis' name

    def slider(self):
        return self.run("figure.querySelector('.plot svg').getAttribute('aria-valuetext')")


@pytest.fixture
def run(tmp_path):
    return write_run(tmp_path / "run")


@pytest.fixture
def hand(browser, run):
    browser.open(write_report(run))
    yield Hand(browser)
    assert browser.problems() == []
    assert browser.requests() == []


def test_the_pointer_shows_what_the_log_has(hand, run):
    lines = {line["number"]: line for line in map(json.loads, (run / "metrics.jsonl").read_text().splitlines())}
    seen = set()
    for share in (0.2, 0.41, 0.6, 0.9):
        words = hand.point(share)
        number = int(re.search(r"rounds (\d+)", words)[1])
        assert f"training {lines[number]['train_loss']:.4g}" in words
        assert f"validation {lines[number]['valid_loss']:.4g}" in words
        seen.add(number)
    assert len(seen) == 4
    hand.browser.mouse("moved", 2, 2)
    assert hand.said() == ""


def test_dragging_zooms_and_a_double_click_shows_all(hand):
    before, (left, top, width, height) = hand.ticks(), hand.box
    hand.browser.drag(left + 0.4 * width, left + 0.6 * width, top + height / 2)
    after = hand.ticks()
    assert before[0] < after[0]
    assert after[-1] < before[-1]
    assert all(after[0] - 20 < int(x) < after[-1] + 20 for x in re.findall(r"rounds (\d+)", hand.point(0.5)))
    x, y = left + 0.5 * width, top + height / 2
    for clicks in (1, 2):
        hand.browser.mouse("pressed", x, y, 1, clicks)
        hand.browser.mouse("released", x, y, 0, clicks)
    assert hand.ticks() == before


def test_buttons_zoom(hand):
    before = hand.ticks()
    states = "[...figure.querySelectorAll('.zoom button')].map((one) => one.disabled)"
    assert hand.run(states) == [True, False, True]
    hand.run("figure.querySelectorAll('.zoom button')[1].click()")
    assert hand.ticks() != before
    assert hand.run(states) == [False, False, False]
    hand.run("figure.querySelectorAll('.zoom button')[2].click()")
    assert hand.ticks() == before


def test_everything_is_reached_and_done_by_keyboard(hand, run):
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    browser = hand.browser
    browser.run("document.querySelector('.copy').focus()")
    for _ in range(30):
        browser.press("Tab")
        if browser.run(f"{hand.figure}.querySelector('.plot svg') === document.activeElement"):
            break
    assert browser.run("document.activeElement.getAttribute('role')") == "slider"
    assert hand.slider().startswith("rounds 1: training")
    browser.press("ArrowRight")
    assert hand.slider().startswith(f"rounds 2: training {lines[1]['train_loss']:.4g}, validation")
    browser.press("End")
    assert hand.slider().startswith("rounds 100: ")
    assert "rounds 100" in hand.said()
    before = hand.ticks()
    browser.press("+")
    assert hand.ticks()[0] > before[0]
    assert hand.slider().startswith("rounds 100: ")  # the focus and the place stay
    browser.press("Home")
    assert hand.slider().startswith("rounds 51: ")
    browser.press("0")
    assert hand.ticks() == before
    browser.press("Tab")
    assert browser.run("document.activeElement.tagName") == "SUMMARY"


def test_the_table_has_every_point_and_follows_the_zoom(hand, run):
    rows = "[...figure.querySelectorAll('tbody tr')].map((row) => [...row.children].map((cell) => cell.textContent))"
    assert len(hand.run(rows)) == 12
    hand.run("figure.querySelector('details').open = true")
    hand.browser.run("new Promise((done) => setTimeout(done, 50))")  # the event comes later
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    shown = [[float(cell) for cell in row] for row in hand.run(rows)]
    logged = [[line[key] for key in ("number", "train_loss", "valid_loss")] for line in lines]
    assert np.allclose(shown, logged, rtol=6e-4)  # four digits
    hand.run("figure.querySelectorAll('.zoom button')[1].click()")
    assert len(hand.run(rows)) == 50


def test_new_data_are_drawn_and_a_zoom_stays(hand, run, tmp_path):
    longer = write_run(tmp_path / "longer", rounds=140)
    (loss,) = charts(read_run(longer), SEARCH[:1])
    hand.run("figure.querySelectorAll('.zoom button')[1].click()")
    zoomed = hand.ticks()
    hand.run(f"figure.chart.update({loss.json})")
    assert hand.ticks() == zoomed
    assert hand.run("figure.querySelector('.legend b').textContent") == f"{loss.curves[0].last():.4g}"
    hand.run("figure.querySelectorAll('.zoom button')[2].click()")
    assert hand.ticks()[-1] == 140


def test_a_screen_reader_gets_names_and_roles(browser, run):
    browser.open(write_report(run))
    nodes = browser.send("Accessibility.getFullAXTree")["nodes"]
    named = [(node["role"]["value"], node.get("name", {}).get("value", "")) for node in nodes if not node["ignored"]]
    sliders = [name for role, name in named if role == "slider"]
    assert len(sliders) == browser.run("document.querySelectorAll('figure, .heat').length")
    assert any(name.startswith("Loss over rounds 1 to 100: training") for name in sliders)
    assert any(name.startswith("in → 1, rounds 1 to 100; at the end none ") for name in sliders)
    assert all(name for role, name in named if role in ("slider", "button", "image", "table", "DisclosureTriangle"))


def test_without_scripts_the_drawing_and_a_table_remain(browser, run):
    browser.open(write_report(run), scripts=False)
    nodes = browser.send("DOM.getDocument", depth=-1, pierce=True)["root"]
    html = browser.send("DOM.getOuterHTML", nodeId=nodes["nodeId"])["outerHTML"]
    assert 'role="slider"' not in html
    assert html.count('class="line s1"') > 8
    assert "12 of 100 points." in html


def test_names_are_never_code(browser, tmp_path):
    settings = config(EVIL, method=EVIL, data=EVIL) | {EVIL: EVIL}
    run = write_run(tmp_path / "run", settings=settings)
    lines = [line | {EVIL: line["number"] / 2, "alpha": {EVIL: [[0.0, 1.0]]}} for line in metrics(rounds=30)]
    (run / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    curves = [Curve(EVIL, np.arange(9.0), np.arange(9.0))]
    drawn = chart("evil", EVIL, (EVIL, EVIL), curves, EVIL, ends=True)
    (tmp_path / "out").mkdir()
    pages = [write_report(run), write_page(tmp_path / "out", EVIL, EVIL, EVIL, [Section(EVIL, charts=[drawn])], EVIL)]
    for page in pages:
        browser.open(page)
        count = browser.run("document.querySelectorAll('figure[data-chart]').length")
        shown = Hand(browser, count - 1)
        words = shown.point(0.5)
        shown.run("figure.querySelector('details').open = true")
        browser.run("new Promise((done) => setTimeout(done, 50))")
        assert "{{ 7 * 7 }}{% raw %}${evil = 1}<img src=x" in words
        assert shown.run("figure.querySelector('thead').textContent").count(EVIL) >= 1
        assert browser.run("typeof evil") == "undefined"
        assert browser.run("document.querySelectorAll('script').length") == 1
        assert browser.run("document.querySelectorAll('[onerror]').length") == 0
        assert browser.problems() == []
        assert browser.requests() == []


def test_evil_names_of_options_stay_text_in_heat_maps(browser, tmp_path):
    settings = config("choice", choices={"block1": [EVIL, "wide", "none"], "block2": ["relu", "gelu"]})
    browser.open(write_report(write_run(tmp_path / "run", "choice", settings=settings)))
    browser.run("plot = document.querySelector('.heat .plot'); plot.focus()")
    assert "{{ 7 * 7 }}{% raw %}${evil = 1}<img src=x" in browser.run("plot.querySelector('.readout').textContent")
    assert "${evil = 1}<img src=x" in browser.run("plot.getAttribute('aria-valuetext')")
    assert browser.run("typeof evil") == "undefined"
    assert browser.run("document.querySelectorAll('[onerror]').length") == 0
    assert browser.problems() == []


def test_a_script_that_is_not_ours_does_not_run(browser, run):
    page = write_report(run)
    text = page.read_text().replace("</main>", "</main><script>evil = 1</script><img src=x onerror='evil = 1'>")
    page.write_text(text)
    browser.open(page)
    assert browser.run("typeof evil") == "undefined"
    assert browser.run("document.querySelectorAll('[role=slider]').length") > 5  # ours did
    assert any("Content Security Policy" in str(problem) for problem in browser.problems())


def many_charts():
    """Charts of all kinds, the same every time."""
    draw = np.random.default_rng(0)
    for number in range(40):
        size = int(draw.choice([1, 2, 5, 30, 190, 260, 900, 3000]))
        x = np.cumsum(draw.integers(1, 5, size)).astype(float) * draw.choice([1, 0.25, 1e4])
        curves = []
        for name in range(int(draw.integers(1, 8))):
            y = draw.choice([1e-7, 0.01, 1, 3e5]) * (
                draw.lognormal(0, draw.choice([0.1, 4]), size) - draw.choice([0, 1])
            )
            y[draw.random(size) < draw.choice([0, 0.2])] = np.nan
            band = (None, None) if draw.random() < 0.6 else (y - abs(y) / 9, y + abs(y) / 7)
            curves.append(Curve(f"curve {name}", x, y, *band).thinned(KEPT))
        options = {"log_x": bool(draw.random() < 0.3), "log_y": [False, True, None][number % 3]}
        options |= {"limit": 1.0 if draw.random() < 0.3 else None, "percent": bool(draw.random() < 0.3)}
        yield chart(
            f"c{number}", f"Chart {number}", ("x" * int(draw.integers(0, 60)), ["", "y"][number % 2]), curves, **options
        )


def numbers(text):
    return np.array([float(one) for one in re.findall(r"-?\d+\.?\d*", text)])


def test_the_browser_draws_what_python_draws(browser, tmp_path):
    charts = [one for one in many_charts() if one.curves]
    assert len(charts) > 30
    browser.open(write_page(tmp_path, "many", "", "", [Section("Many", charts=charts)]))
    assert browser.problems() == []
    read = """[...document.querySelectorAll('[data-chart] .plot > svg')].map((svg) => [svg.getAttribute('viewBox'),
      [...svg.children].filter((one) => one.tagName !== 'g').map((one) => [one.tagName, one.textContent,
        Object.fromEntries([...one.attributes].map((item) => [item.name, item.value]))])])"""
    for made, (box, theirs) in zip(charts, browser.run(read), strict=True):
        root = ElementTree.fromstring(made.svg)
        assert root.get("viewBox") == box
        ours = [(one.tag.removeprefix(SVG), one.text or "", one.attrib) for one in root]
        assert [one[:2] for one in ours] == [tuple(one[:2]) for one in theirs], made.title
        for (_, _, mine), (_, _, yours) in zip(ours, theirs, strict=True):
            assert mine.keys() == yours.keys()
            for name, value in mine.items():
                left, right = numbers(value), numbers(yours[name])
                assert re.sub(r"-?\d+\.?\d*", "", value) == re.sub(r"-?\d+\.?\d*", "", yours[name])
                assert np.allclose(left, right, atol=0.15), (made.title, name, value, yours[name])


def test_50_000_rounds_open_fast_and_keep_their_extremes(browser, tmp_path):
    keys = [key for key, value in metrics(rounds=1)[0].items() if isinstance(value, float)]
    lines = [{"number": number, **dict.fromkeys(keys, 1 / number + 0.5)} for number in range(1, 50_001)]
    lines[31_234]["train_loss"] = 7.0
    run = write_run(tmp_path / "run", rounds=1)
    (run / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    page = write_report(run)
    assert page.stat().st_size < 400_000
    browser.open(page)
    assert browser.run("performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd") < 3000
    hand = Hand(browser)
    browser.run(f"{hand.figure}.querySelector('.plot svg').focus()")
    for key, times in (("PageUp", 6), ("ArrowRight", 4)):
        for _ in range(times):
            browser.press(key)
    assert re.match(r"rounds near 31,29\d, mean of 128: training 0\.5508 \(0\.5 to 7\)", hand.slider())
