"""What the README and the pages say can be done, can be done."""

import re
import runpy
from pathlib import Path

import pytest
import torch
from torch import nn

import idarts.hypergrad

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = sorted((ROOT / "docs").glob("*.md"))


def python_blocks(text):
    return re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)


def test_the_search_of_the_readme_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    names = {}
    exec(python_blocks(README)[0].replace("rounds=60", "rounds=3"), names)
    assert "block" in capsys.readouterr().out
    assert not any(type(module).__name__ == "Choice" for module in names["net"].modules())


def test_the_bilevel_problem_of_the_readme_runs():
    model = nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 2))
    batch = torch.randn(8, 4), torch.arange(8) % 2
    w, a = tuple(model[0].parameters()), tuple(model[1].parameters())
    before = [t.detach().clone() for t in (*w, *a)]
    exec(python_blocks(README)[1], {"model": model, "w": w, "a": a, "training_batch": batch, "validation_batch": batch})
    moved = [not torch.equal(now, then) for now, then in zip((*w, *a), before, strict=True)]
    assert moved == [False, False, True, True]


def test_the_bilevel_problem_of_the_first_page_runs():
    names = {}
    exec(python_blocks((ROOT / "docs/start.md").read_text(encoding="utf-8"))[0], names)
    assert torch.allclose(names["grads"][0], torch.full((3,), 2.0), rtol=1e-3)


@pytest.mark.parametrize("file", [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *PAGES], ids=lambda file: file.name)
def test_links_to_files_lead_somewhere(file):
    """Also on a hosting site's view of the repository, without the built pages."""
    for address in re.findall(r"\]\(([^)#]+)[^)]*\)", file.read_text(encoding="utf-8")):
        if not re.match(r"\w+:", address):
            assert (file.parent / address).exists(), address


def test_every_page_is_in_the_navigation():
    index = (ROOT / "docs/index.md").read_text(encoding="utf-8")
    listed = {line for block in re.findall(r"```\{toctree\}\n(.*?)```", index, re.S) for line in block.split()}
    assert {page.stem for page in PAGES} - {"index"} <= listed


def test_the_reference_has_every_public_name():
    for module, page in ((idarts, "idarts"), (idarts.hypergrad, "hypergrad")):
        text = (ROOT / f"docs/api/{page}.md").read_text(encoding="utf-8")
        names = [
            name for name in dir(module) if name in module.__all__ and name not in ("ALONE", "SOLVERS", "__version__")
        ]
        assert [name for name in names if not re.search(rf":: {name}$", text, re.M)] in ([], ["hypergradient"])


def test_pictures_are_small():
    pictures = list((ROOT / "docs/images").glob("*.png"))
    assert pictures
    assert all(picture.stat().st_size < 150_000 for picture in pictures)


def test_the_link_checker_sees_what_is_wrong(tmp_path):
    problems = runpy.run_path(str(ROOT / "docs/check_links.py"))["problems"]
    (tmp_path / "other.html").write_text('<p id="here">text</p>')
    (tmp_path / "index.html").write_text(
        '<a href="other.html#here">right</a><a href="https://example.org">elsewhere</a>'
        '<a href="none.html">wrong</a><a href="other.html#there">wrong</a><script src="https://example.org/x.js"></script>'
    )
    found = problems(tmp_path)
    assert [line.split(": ", 1)[1] for line in found] == [
        "none.html does not exist",
        "other.html#there has no such anchor",
        "loads https://example.org/x.js from another server",
    ]
