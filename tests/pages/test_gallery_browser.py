"""The gallery in a real browser: cards of one size, by words, by space and in order, in light and in dark."""

import pytest
from browser import needs_chromium

from idarts.arch import registry
from idarts.pages.gallery import write_gallery

pytestmark = needs_chromium
CARDS = "[...document.querySelectorAll('.gallery article')]"
SHOWN = CARDS + ".filter((card) => !card.hidden).map((card) => card.dataset.{})"
CHOOSE = """(() => {{ const field = document.querySelector('.sift').elements['{}']; field.value = '{}';
  field.dispatchEvent(new Event('input', {{ bubbles: true }})) }})()"""


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    pytest.importorskip("pygraphviz", reason="needs pygraphviz (idarts[draw])")
    return write_gallery(tmp_path_factory.mktemp("gallery"))


def test_cards_are_equal(browser, page):
    browser.open(page)
    sizes = "[...document.querySelectorAll('{}')].map((one) => [one.offsetWidth, one.offsetHeight].join())"
    for what in (".gallery article", ".gallery .drawing"):
        assert len(set(browser.run(sizes.format(what)))) == 1
    assert page.stat().st_size < 500_000
    assert browser.problems() == []


def test_cards_are_sifted_and_sorted(browser, page):
    browser.open(page)
    everything = registry.names()
    assert browser.run(SHOWN.format("name")) == everything
    browser.run(CHOOSE.format("space", "nas-bench-201"))
    assert set(browser.run(SHOWN.format("name"))) == {name for name in everything if name.startswith("NB201")}
    assert browser.run("document.querySelector('.sift output').textContent") == "5 of 32 cells"
    browser.run(CHOOSE.format("space", ""))
    browser.run(CHOOSE.format("words", "chen ICLR"))
    assert browser.run(SHOWN.format("name")) == ["DrNAS_cifar10", "DrNAS_imagenet"]
    browser.run(CHOOSE.format("words", ""))
    browser.run(CHOOSE.format("order", "error"))
    errors = browser.run(SHOWN.format("error"))
    known = [float(error) for error in errors if error]
    assert known == sorted(known)
    assert errors[: len(known)] == [error for error in errors if error]  # those without stand at the end
    assert browser.run(SHOWN.format("name"))[0] == "iDARTS"
    browser.run(CHOOSE.format("order", "year"))
    years = [int(year) for year in browser.run(SHOWN.format("year"))]
    assert years == sorted(years, reverse=True)
    assert browser.problems() == []


def test_without_scripts_all_cells_are_there_and_no_control_that_does_nothing(browser, page):
    browser.open(page, scripts=False)
    root = browser.send("DOM.getDocument")["root"]["nodeId"]
    form = browser.send("DOM.querySelector", nodeId=root, selector=".sift")["nodeId"]
    assert "hidden" in browser.send("DOM.getAttributes", nodeId=form)["attributes"]
    cards = browser.send("DOM.querySelectorAll", nodeId=root, selector=".gallery article:not([hidden])")["nodeIds"]
    assert len(cards) == len(registry.names())
