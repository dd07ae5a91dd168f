"""A page in Chromium, measured by a script."""

import json
import re
import shutil
import subprocess
from html import escape

import pytest

CHROMIUM = shutil.which("chromium")
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not on PATH (Debian: apt install chromium)")
LIGHT, DARK = "--blink-settings=preferredColorScheme=1", "--blink-settings=preferredColorScheme=0"
FLAGS = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--window-size=1400,2400"),
]
# A window is never narrower than 500 pixels, but a frame in it may be.
FRAME = '<!doctype html><html style="color-scheme: light dark"><body><iframe width="{}" height="2000" srcdoc="{}">'
# What the browser made of the page, written into the outer document, where --dump-dom shows it.
PROBE = """<script>addEventListener("load", () => {{
const box = (element) => element.getBoundingClientRect();
const all = (selector) => [...document.querySelectorAll(selector)];
parent.document.body.dataset.facts = JSON.stringify({{ width: innerWidth, scroll: document.documentElement.scrollWidth,
{} }}) }})</script></body>"""


def measure(folder, html, width, script, *flags):
    """The values of a JavaScript object's fields, measured on a copy of the page, whose own policy forbids scripts."""
    text = re.sub(r"<meta http-equiv=[^>]*>", "", html).replace("</body>", PROBE.format(script))
    outer = folder / "outer.html"
    outer.write_text(FRAME.format(width, escape(text)), encoding="utf-8")
    command = [CHROMIUM, *FLAGS, *flags, f"--user-data-dir={folder / 'profile'}", "--dump-dom", outer.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    facts = re.search(r'data-facts="([^"]*)"', done.stdout)
    assert facts, done.stdout[-500:] + done.stderr[-500:]
    return json.loads(facts[1].replace("&quot;", '"'))
