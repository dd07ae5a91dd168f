"""The equations, theorems and the algorithm of the paper are each named in exactly one docstring."""

import ast
import re
from pathlib import Path

import pytest

import idarts

SOURCE = Path(idarts.__file__).parent
DOCS = Path(__file__).parents[1] / "docs"
# What the paper numbers, and where it is: file and name.
PLACES = {
    "Eq. 3": "hypergrad/solvers/one_step.py:OneStep",
    "Eq. 4": "hypergrad/solvers/reverse.py:ReverseMode",
    "Eq. 5": "hypergrad/solvers/truncated_reverse.py:TruncatedReverse",
    "Eq. 6": "hypergrad/solvers/exact.py:Exact",
    "Eq. 8": "hypergrad/solvers/neumann.py:Neumann",
    "Eq. 9": "searching/strategies/gradient.py:Gradient",
    "Theorem 1": "experiments/paper/theory.py:theorem_1",
    "Theorem 2": "experiments/paper/theory.py:theorem_2",
    "Corollary 2": "experiments/paper/theory.py:corollary_2",
    "Algorithm 1": "searching/loop.py:rounds",
}


def docstrings():
    """(file:name, docstring) for everything in the package that has one; a module's name is empty."""
    for file in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                text = ast.get_docstring(node)
                if text:
                    yield f"{file.relative_to(SOURCE).as_posix()}:{getattr(node, 'name', '')}", text


ALL = list(docstrings())


@pytest.mark.parametrize("label", PLACES)
def test_each_is_named_in_exactly_one_docstring(label):
    named = re.compile(rf"{re.escape(label)} of the paper")
    assert [place for place, text in ALL if named.search(text)] == [PLACES[label]]


@pytest.mark.parametrize("label", [label for label in PLACES if not label.startswith("Eq.")])
def test_no_other_docstring_uses_the_number(label):
    """Equations of other papers have numbers, too; theorems and algorithms are the paper's alone."""
    named = re.compile(rf"(?<!\d\d\d\d, ){label}\b(?! of (?!the paper))")
    assert [place for place, text in ALL if named.search(text)] == [PLACES[label]]


@pytest.mark.parametrize("label", PLACES)
def test_the_theory_page_links_to_the_code(label):
    name = PLACES[label].rpartition(":")[2]
    section = re.search(
        rf"^## [^\n]*\b{re.escape(label)}\b.*?(?=^## |\Z)", (DOCS / "theory.md").read_text(), re.M | re.S
    )
    assert section is not None, f"docs/theory.md has no section for {label}"
    assert re.search(rf"\{{py:(obj|class|func|meth)\}}`[^`]*\b{name}\b", section[0]), f"no link to {name}"
