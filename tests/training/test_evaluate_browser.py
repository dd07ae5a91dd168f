"""The evaluation's page in a real browser: it fits a phone and a laptop, and all of it is drawn."""

import json
import re
import shutil
import subprocess
from html import escape

import pytest

from idarts.pages.evaluation import page

CHROMIUM = shutil.which("chromium")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not on PATH (Debian: apt install chromium)")
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--window-size=1400,2400"]
# A window is never narrower than 500 pixels, but a frame in it may be.
FRAME = '<!doctype html><body><iframe width="{}" height="2000" srcdoc="{}">'
PROBE = """<script>addEventListener("load", () => {
parent.document.body.dataset.facts = JSON.stringify({
  width: innerWidth, scroll: document.documentElement.scrollWidth,
  bars: [...document.querySelectorAll("rect.bar")].filter((bar) => bar.getBoundingClientRect().width > 1).length,
  drawn: [...document.querySelectorAll("svg, img")].every((found) => found.getBoundingClientRect().width > 100),
  coloured: [...document.querySelectorAll("td.right")].filter(
    (cell) => !getComputedStyle(cell).backgroundColor.endsWith(", 0)")).length,
}) })</script></body>"""


@pytest.mark.parametrize(("width", "classes"), [(390, 15), (390, 40), (1280, 15)])
def test_it_is_drawn_and_does_not_scroll_sideways(tmp_path, facts, width, classes):
    html = re.sub(
        r"<meta http-equiv=[^>]*>", "", page(facts(classes, "a rather long name of class {}"), "runs/model")
    ).replace("</body>", PROBE)
    outer = tmp_path / "outer.html"
    outer.write_text(FRAME.format(width, escape(html)), encoding="utf-8")
    command = [CHROMIUM, *FLAGS, f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom", outer.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    found = json.loads(re.search(r'data-facts="([^"]*)"', done.stdout)[1].replace("&quot;", '"'))
    assert found["scroll"] <= found["width"]
    assert found["bars"] == 14
    assert found["drawn"]
    assert found["coloured"] == (classes if classes <= 20 else 0)
