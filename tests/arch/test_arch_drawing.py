"""Drawings: the right files, whole or not at all, and the page of all of them."""

import re
from xml.etree import ElementTree

import pytest

from idarts.arch import SPACES, Architecture, draw, drawing, parse, registry, style
from idarts.arch.rules import CellRules
from idarts.errors import InputError
from idarts.pages.gallery import page, write_gallery

pytest.importorskip("pygraphviz", reason="needs pygraphviz (idarts[draw])")


@pytest.mark.parametrize(
    ("form", "start"), [("svg", b"<?xml"), ("png", b"\x89PNG"), ("pdf", b"%PDF"), ("dot", b"digraph")]
)
def test_formats(tmp_path, form, start):
    written = draw(parse("DARTS_V2"), tmp_path / f"cell.{form}")
    assert written.read_bytes().startswith(start)
    assert [file.name for file in tmp_path.iterdir()] == [f"cell.{form}"]


def test_every_operation_has_a_family_and_a_short_label():
    cells = [SPACES[name] for name in SPACES if isinstance(SPACES[name].check, CellRules)]
    assert len(cells) == 9
    for space in cells:
        for op in space.check.ops:
            assert space.style.family(op) in style.FAMILIES
            assert "_" not in space.style.label(op)
    families = {op: style.family(op) for op in SPACES["darts"].check.ops}
    assert [op for op in families if families[op] == "pool"] == ["max_pool_3x3", "avg_pool_3x3"]
    assert [op for op in families if families[op] in ("skip", "none")] == ["none", "skip_connect"]
    assert SPACES["darts"].style.family("noise") == "none"  # nothing passes there, as on an edge without operation


def test_the_drawing_shows_every_operation_and_both_cells():
    dot = drawing.to_dot(parse("AmoebaNet-A"))
    assert "normal cell" in dot
    assert "reduction cell" in dot
    assert len(re.findall(r"_op[0-9]+ \[label", dot)) == 20


@pytest.mark.parametrize("name", registry.names())
def test_text_is_readable_at_8_cm(name):
    """Twelve points, shrunk with a drawing that is wider than 8 cm, must stay above six."""
    svg = drawing.render(registry.entry(name).architecture, "svg").decode()
    width = float(re.search(r'<svg width="([0-9.]+)pt"', svg)[1])
    assert 12 * min(1, 8 / 2.54 * 72 / width) > 6


def test_a_failure_leaves_nothing_behind(tmp_path, monkeypatch):
    target = tmp_path / "cell.svg"
    target.write_text("older drawing")

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(InputError, match="No space left on device"):
        draw(parse("DARTS_V2"), target)
    assert [file.name for file in tmp_path.iterdir()] == ["cell.svg"]
    assert target.read_text() == "older drawing"


@pytest.mark.parametrize(("path", "message"), [("cell.bmp", "must end in .svg or"), ("new/cell.bmp", "must end in")])
def test_bad_targets(tmp_path, path, message):
    with pytest.raises(InputError, match=message):
        draw(parse("DARTS_V2"), tmp_path / path)
    assert not list(tmp_path.iterdir())


def test_a_user_s_module_has_no_cell_to_draw(tmp_path):
    with pytest.raises(InputError, match="has no cells to draw"):
        draw(Architecture("choice", choices={"a": "b"}), tmp_path / "cell.svg")


def test_without_pygraphviz_the_error_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pygraphviz", None)
    with pytest.raises(InputError, match=r"pip install 'idarts\[draw\]'"):
        draw(parse("DARTS_V2"), tmp_path / "cell.svg")
    assert draw(parse("DARTS_V2"), tmp_path / "cell.dot").exists()


def test_the_gallery_is_one_page_that_needs_no_network(tmp_path):
    text = write_gallery(tmp_path / "gallery").read_text()
    assert text == page()
    drawings = re.findall(r"<svg.*?</svg>", text, flags=re.DOTALL)
    assert len(drawings) == len(registry.names())
    for svg in drawings:
        ElementTree.fromstring(svg)
    assert set(re.findall(r'(?:src|href)="?(http[^" ]*)', text)) == set()
    assert re.findall(r'\bid="', text) == []
