"""The live pages in Chromium: they change while a real search works, and keep what a reader does."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from browser import measure, needs_chromium
from report_runs import metrics, write_run
from watching import QUICK, until, watching

pytestmark = needs_chromium
ROUNDS = 20
SMALL = ["--preset", "smoke", "--rounds", str(ROUNDS), "--inner-steps", "1", "--batch", "16"]
LAST = "(document.querySelector('[data-name=train_loss]')?.chart.places ?? []).at(-1) ?? 0"
TEXT = "document.querySelector('{}')?.innerText ?? ''"


def append(run, lines):
    with (run / "metrics.jsonl").open("a") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)


def shows(browser, script, wanted):
    """The value of a script, as soon as it is a wanted one."""
    return until(lambda: [value for value in [browser.run(script)] if wanted(value)], 2 * QUICK)[0]


def test_the_pages_change_while_a_search_works(browser, tmp_path):
    run = tmp_path / "runs" / "real"
    run.parent.mkdir()
    with watching(run.parent) as watch:
        browser.open(watch.url)
        assert "No runs yet" in browser.run(TEXT.format("main"))
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        command = [sys.executable, "-m", "idarts", "search", *SMALL, "--out", str(run)]
        search = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            shows(browser, TEXT.format("article"), lambda text: "real" in text and f"of {ROUNDS}" in text)
            search.send_signal(signal.SIGSTOP)  # so that it cannot end before the report was seen
            assert browser.problems() == []
            browser.open(f"{watch.url}1/")
            stopped = shows(browser, LAST, lambda last: last >= 1)
            assert stopped < ROUNDS
            search.send_signal(signal.SIGCONT)
            shows(browser, LAST, lambda last: last > stopped)
            shows(browser, TEXT.format(".state"), lambda text: text == "Search finished")
            assert search.wait(timeout=QUICK) == 0
        finally:
            search.kill()
        assert browser.run(LAST) == ROUNDS
        assert f"{ROUNDS} of {ROUNDS}" in browser.run(TEXT.format(".tiles"))
        assert browser.problems() == []
        assert {one.partition("?")[0] for one in browser.requests()} == {f"{watch.url}1/", f"{watch.url}1/news"}


@pytest.fixture
def live(browser, tmp_path):
    """A report in the browser, of a run whose rounds the test appends."""
    lines = metrics(rounds=60)
    run = write_run(tmp_path / "run", finished=False)
    (run / "metrics.jsonl").write_text("")
    (run / ".lock").write_text(str(os.getpid()))
    append(run, lines[:40])
    with watching(run) as watch:
        browser.open(watch.url)
        yield run, lines, watch


def test_a_zoom_a_focus_and_a_selected_text_stay(browser, live):
    run, lines, _ = live
    browser.run("figure = document.querySelector('[data-name=train_loss]'); figure.chart.show([10, 20])")
    browser.run("figure.querySelector('.plot svg').focus()")
    browser.run("text = document.querySelector('.commands pre'); getSelection().selectAllChildren(text)")
    append(run, lines[40:45])
    shows(browser, LAST, lambda last: last == 45)
    assert browser.run("figure.isConnected && figure.chart.range") == [10, 20]
    assert browser.run("document.activeElement === figure.querySelector('.plot svg')")
    assert browser.run("text.isConnected && getSelection().toString() === text.innerText")
    assert browser.run("figure.querySelector('.legend b').textContent") == f"{lines[44]['train_loss']:.3g}"
    assert "45 of 100" in browser.run(TEXT.format(".tiles"))
    assert browser.problems() == []


def test_a_heat_map_waits_while_it_is_read_and_then_shows_the_new_rounds(browser, live):
    run, lines, _ = live
    browser.run("plot = document.querySelector('.heat .plot'); plot.focus()")
    append(run, lines[40:45])
    shows(browser, LAST, lambda last: last == 45)
    assert browser.run("plot.isConnected && plot.getAttribute('aria-valuemax')") == "40"
    browser.run("plot.blur()")
    append(run, lines[45:46])
    shows(browser, "document.querySelector('.heat .plot').getAttribute('aria-valuemax')", lambda last: last == "46")
    assert browser.problems() == []


def test_a_server_that_has_ended_is_named(browser, live):
    _, _, watch = live
    watch.stop()
    shows(browser, TEXT.format(".lost[role=status]"), lambda text: "No answer" in text)
    assert "40 of 100" in browser.run(TEXT.format(".tiles"))  # what was read last stays


@pytest.mark.parametrize("width", [390, 1280])
def test_the_list_fits_narrow_and_wide_windows(browser, tmp_path, width):
    for name in ("one", "two" * 60):
        write_run(tmp_path / name, rounds=30, finished=name == "one")
    (tmp_path / "one" / "result.json").write_text("damaged " * 50)
    with watching(tmp_path) as watch:
        browser.open(watch.url, width, dark=width < 500)
        time.sleep(1)
        seen = measure(browser, "cards: all('.runs article[aria-labelledby]').length")
    assert (seen["cards"], seen["scroll"]) == (2, width)
    assert browser.problems() == []
