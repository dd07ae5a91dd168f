"""Packages import only what stands before them, and no private name of another package."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import idarts

ROOT = Path(idarts.__file__).parent
ORDER = ("errors", "registry", "digests", "files", "pickles", "layers", "hypergrad", "arch", "spaces", "data", "tables")
ORDER += ("engine", "searching", "training", "pages", "fitting", "experiments", "cli")


def imports(source: str, module: str) -> Iterator[tuple[int, str, str | None]]:
    """Every import from idarts in a module, also inside functions: its line, the module, and the name if any."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, name.name, None) for name in node.names if name.name.split(".")[0] == "idarts")
        elif isinstance(node, ast.ImportFrom):
            base = module.split(".")[: -node.level] if node.level else []
            origin = ".".join([*base, *([node.module] if node.module else [])])
            if origin.split(".")[0] == "idarts":
                yield from ((node.lineno, origin, name.name) for name in node.names)


def problem(importer: str, origin: str, name: str | None) -> str | None:
    """What is wrong with an import, or None."""
    path = [*origin.split("."), *([name] if name else [])]
    here = importer.split(".")[1]
    if len(path) < 2 or path[1] == "_version":
        return None if len(path) > 1 else "imports the whole package"
    if path[1] not in ORDER:
        return f"imports {path[1]} through idarts itself"
    if path[1] == here:
        return None
    if any(part.startswith("_") for part in path[2:]):
        return "imports a private name of another package"
    return f"{here} stands before {path[1]}" if ORDER.index(path[1]) > ORDER.index(here) else None


def offences(source: str, module: str) -> list[tuple[int, str, str]]:
    """The wrong imports of a module: line, what is imported, why it is wrong."""
    checked = [(line, origin, name, problem(module, origin, name)) for line, origin, name in imports(source, module)]
    return [(line, f"{origin}.{name}" if name else origin, why) for line, origin, name, why in checked if why]


def modules() -> list[Path]:
    """All modules in packages; idarts/__init__.py and __main__.py stand above them."""
    return [path for path in sorted(ROOT.rglob("*.py")) if path.relative_to(ROOT).parts[0][0] != "_"]


def test_every_package_has_its_place():
    assert {path.relative_to(ROOT).parts[0].removesuffix(".py") for path in modules()} == set(ORDER)


def test_imports_go_one_way_and_take_nothing_private():
    wrong = []
    for path in modules():
        file = path.relative_to(ROOT)
        module = ".".join(["idarts", *file.with_suffix("").parts])
        found = offences(path.read_text(encoding="utf-8"), module)
        wrong += [f"src/idarts/{file}:{line}: {what}: {why}" for line, what, why in found]
    assert not wrong, "\n" + "\n".join(wrong)


@pytest.mark.parametrize(
    ("module", "source", "wrong"),
    [
        ("idarts.data.a", "from idarts.engine import run", "idarts.engine.run"),
        ("idarts.data.a", "def f():\n    import idarts.cli.search", "idarts.cli.search"),
        ("idarts.data.a", "from ..engine import run", "idarts.engine.run"),
        ("idarts.data.a", "from idarts import training", "idarts.training"),
        ("idarts.engine.a", "from idarts.data.folder import _read", "idarts.data.folder._read"),
        ("idarts.engine.a", "from idarts.data._inner import read", "idarts.data._inner.read"),
        ("idarts.engine.a", "from idarts import Choice", "idarts.Choice"),
        ("idarts.engine.a", "import idarts", "idarts"),
        ("idarts.engine.a", "from idarts.engine.b import _own\nfrom .b import _own", None),
        ("idarts.engine.a", "import torch\nfrom idarts._version import __version__", None),
        ("idarts.engine.a", "from idarts.data import load\nfrom idarts import data", None),
    ],
)
def test_the_rules_are_applied(module, source, wrong):
    assert [what for _, what, _ in offences(source, module)] == ([wrong] if wrong else [])
