"""The report in a real browser: it opens without a network, and fits a phone."""

import json
import re
import shutil
import subprocess
from html import escape

import pytest
from report_runs import SHAPES, config, write_run

from idarts.pages import write_report

CHROMIUM = shutil.which("chromium")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not on PATH (Debian: apt install chromium)")
FLAGS = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--hide-scrollbars", "--window-size=1400,2400"),
]
# A window is never narrower than 500 pixels, but a frame in it may be.
FRAME = '<!doctype html><html style="color-scheme: light dark"><body><iframe width="{}" height="2000" srcdoc="{}">'
# What the browser made of the page, written into the outer document, where --dump-dom shows it.
PROBE = """<script>addEventListener("load", () => {
const box = (found) => found.getBoundingClientRect();
const inside = (found) => { for (let up = found.parentElement; up; up = up.parentElement)
  if (getComputedStyle(up).overflowX === "hidden") return true; return false };
parent.document.body.dataset.facts = JSON.stringify({
  width: innerWidth, scroll: document.documentElement.scrollWidth,
  wide: [...document.querySelectorAll("body *")].filter((found) => box(found).right > innerWidth + 1 && !inside(found))
    .map((found) => found.tagName + "." + found.getAttribute("class")),
  drawn: [...document.querySelectorAll("svg, img")].every((found) => box(found).width > 40 && box(found).height > 10),
  loaded: [...document.images].every((found) => found.complete && found.naturalWidth > 0),
  lines: [...document.querySelectorAll("path.line")].filter((found) => found.getTotalLength() > 100).length,
  requests: performance.getEntriesByType("resource").filter((entry) => !entry.name.startsWith("data:")).length,
  ink: getComputedStyle(document.body).color, page: getComputedStyle(document.body).backgroundColor,
}) })</script></body>"""


def facts(folder, page, width, *flags):
    """Measure a copy of the page, whose own policy forbids every script."""
    text = re.sub(r"<meta http-equiv=[^>]*>", "", page.read_text(encoding="utf-8")).replace("</body>", PROBE)
    outer = folder / "outer.html"
    outer.write_text(FRAME.format(width, escape(text)), encoding="utf-8")
    done = subprocess.run(
        [CHROMIUM, *FLAGS, *flags, f"--user-data-dir={folder / 'profile'}", "--dump-dom", outer.as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    found = re.search(r'data-facts="([^"]*)"', done.stdout)
    assert found, done.stdout[-500:] + done.stderr[-500:]
    return json.loads(found[1].replace("&quot;", '"'))


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("space", SHAPES)
def test_it_is_drawn_and_does_not_scroll_sideways(tmp_path, space, width):
    run = write_run(tmp_path / "run", space, settings=config(space, note="a" * 300, data="folder:" + "long/" * 40))
    found = facts(tmp_path, write_report(run), width)
    assert found["width"] == width
    assert found["scroll"] <= width
    assert found["wide"] == []
    assert found["drawn"]
    assert found["loaded"]
    assert found["lines"] == 10
    assert found["requests"] == 0


def test_light_and_dark_both_have_contrast(tmp_path):
    page = write_report(write_run(tmp_path / "run"))
    light = facts(tmp_path, page, 390, "--blink-settings=preferredColorScheme=1")
    dark = facts(tmp_path, page, 390, "--blink-settings=preferredColorScheme=0")
    assert luminance(light["page"]) > luminance(dark["page"])
    for found in (light, dark):
        low, high = sorted((luminance(found["ink"]), luminance(found["page"])))
        assert (high + 0.05) / (low + 0.05) > 7


def luminance(colour):
    """WCAG's relative luminance of a colour as a browser writes it: rgb(1, 2, 3)."""
    parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
