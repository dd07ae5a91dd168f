"""A space's name stands in its own folder, and nowhere else in the package: everything else asks its record."""

import ast
import re
from pathlib import Path

import idarts

ROOT = Path(idarts.__file__).parent
BUILDS_ON = {"nas_bench_1shot1": {"nas_bench_101"}}  # its cells are some of the other's
FOLDERS = sorted(file.parent for file in ROOT.glob("spaces/*/__init__.py"))
NAMES = re.compile(r"nas[-_]?bench[-_]?[0-9]|1shot1|residual[-_]blocks|\bdarts[-_]s[0-9]", re.IGNORECASE)
WHOLE = {"darts", "mobile"}  # also the name of a method, and a plain word: only as a whole string

# Presets, methods, the paper's experiments and the files of a benchmark's table are about one space by nature.
ALLOWED = {
    "searching/settings.py",  # the default of RunConfig.space
    "fitting/plan.py",  # the default of a fit
    "searching/legacy.py",  # a method of the same name
    "training/presets.py",
    "experiments/paper",
    "tables",
    "experiments/searches.py",  # the paper's spaces
    "cli/doctor.py",  # what the table of NAS-Bench-101 is also for
    "cli/table.py",  # a column of that table
    "data/splitting.py",  # the halves of CIFAR that NAS-Bench-201 publishes
    "experiments/sweep.py",  # the example of a plan
}


def test_the_walk_sees_the_spaces():
    assert [folder.name for folder in FOLDERS][-3:] == ["nas_bench_1shot1", "nas_bench_201", "residual_blocks"]
    assert [word for _, word in mentions(ast.parse('"""nas-bench-201"""\nx = f("nas-bench-201", "darts")'))] == [
        "nas-bench-201",
        "darts",
    ]
    assert [word for _, word in mentions(ast.parse("from a.nas_bench_101 import b"))] == ["a.nas_bench_101"]
    assert not list(mentions(ast.parse('"idarts"')))


def test_no_space_is_named_outside_its_folder():
    files = [file for file in sorted(ROOT.rglob("*.py")) if not any(folder in file.parents for folder in FOLDERS)]
    assert len(files) > 100
    wrong = [
        f"{file.relative_to(ROOT)}:{line}: {word}"
        for file in files
        if not any(file.relative_to(ROOT).as_posix().startswith(part) for part in ALLOWED)
        for line, word in mentions(ast.parse(file.read_text(encoding="utf-8")))
    ]
    assert not wrong, "a space is named outside its folder; ask its record in idarts.arch.SPACES:\n" + "\n".join(wrong)


def test_a_folder_names_no_other_space():
    for folder in FOLDERS:
        others = {other.name for other in FOLDERS} - {folder.name, "choice"} - BUILDS_ON.get(folder.name, set())
        for file in folder.glob("*.py"):
            words = {word.lower().replace("-", "_") for _, word in mentions(ast.parse(file.read_text("utf-8")))}
            assert not [(file, word, other) for word in words for other in others if other in word.split(".")]


def mentions(tree):
    """Lines with a space's name in an import, an identifier or a text that is no documentation."""
    documented = {id(part.value) for part in ast.walk(tree) if isinstance(part, ast.Expr)}
    for part in ast.walk(tree):
        if isinstance(part, ast.Constant) and isinstance(part.value, str) and id(part) not in documented:
            words = [part.value]
        elif isinstance(part, ast.ImportFrom):
            words = [part.module or "", *(alias.name for alias in part.names)]
        elif isinstance(part, ast.Import):
            words = [alias.name for alias in part.names]
        else:
            words = [word for word in (getattr(part, "id", None), getattr(part, "attr", None)) if word]
        for word in words:
            if NAMES.search(word) or word in WHOLE:
                yield part.lineno, word
