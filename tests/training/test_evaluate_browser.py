"""The evaluation's page in a real browser: it fits a phone and a laptop, and all of it is drawn."""

import pytest
from browser import measure, needs_chromium

from idarts.pages.evaluation import page

pytestmark = needs_chromium
FACTS = """
  bars: all("rect.bar").filter((bar) => box(bar).width > 1).length,
  drawn: all("svg, img").every((one) => box(one).width > 100),
  coloured: all("td.right").filter((cell) => !getComputedStyle(cell).backgroundColor.endsWith(", 0)")).length,
"""


@pytest.mark.parametrize(("width", "classes"), [(390, 15), (390, 40), (1280, 15)])
def test_it_is_drawn_and_does_not_scroll_sideways(browser, tmp_path, facts, width, classes):
    file = tmp_path / "evaluation.html"
    file.write_text(page(facts(classes, "a rather long name of class {}"), "runs/model"), encoding="utf-8")
    seen = measure(browser.open(file, width), FACTS)
    assert browser.problems() == []
    assert seen["scroll"] <= seen["width"]
    assert seen["bars"] == 14
    assert seen["drawn"]
    assert seen["coloured"] == (classes if classes <= 20 else 0)
