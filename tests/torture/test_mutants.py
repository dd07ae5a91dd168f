"""The tool behind `make mutants`: what it plants, what it reports, and that it leaves the source alone."""

import ast
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import mutants
import pytest
from mutations import mutations

LARGER = """def larger(x, y):
    if x < y:
        return y
    return x
"""
TEST = """from idarts.small import larger

def test_the_larger():
    assert (larger(1, 2), larger(2, 1)) == (2, 2)
"""
SETTINGS = """[tool.pytest.ini_options]
addopts = "--doctest-modules --import-mode=importlib"
"""
START = """import sys
from pathlib import Path
import mutants
mutants.WARM = ("pytest",)  # the small repository does not use torch
sys.exit(mutants.main(sys.argv[2:], Path(sys.argv[1]), {"small": {"small.py": "it/test_small"}}))
"""


@pytest.fixture
def repository(tmp_path):
    files = {"src/idarts/__init__.py": "", "src/idarts/small.py": LARGER, "tests/it/test_small.py": TEST}
    for name, text in {**files, "pyproject.toml": SETTINGS}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_a_fault_that_no_test_can_see_survives_and_the_others_are_killed(repository):
    """Of the three, x <= y in place of x < y changes nothing."""
    out = repository / "results.jsonl"
    plain = {name: value for name, value in os.environ.items() if name != "PYTEST_PLUGINS"}  # CI's is not there

    def run(*more):
        return subprocess.run(
            [sys.executable, "-c", START, str(repository), "--out", str(out), *more],
            env=plain | {"PYTHONPATH": str(Path(mutants.__file__).parent)},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    first = run()
    records = [json.loads(line) for line in out.read_text().splitlines()]
    assert Counter(record["outcome"] for record in records) == {"killed": 2, "survived": 1}, first.stdout + first.stderr
    assert "2 of 3 killed: 66.7%" in first.stdout
    assert "src/idarts/small.py:2 (comparison)\n  - if x < y:\n  + if (x <= y):" in first.stdout
    assert first.returncode == 1  # under the bar
    assert (repository / "src/idarts/small.py").read_text() == LARGER
    assert run().stdout == first.stdout  # nothing is run again
    assert len(out.read_text().splitlines()) == 3


def test_every_kind_of_fault():
    source = b"""
def f(x, y: int = 1) -> int | None:
    '''Says 1 + 1.'''
    if x and not y:
        raise ValueError(f"{x + 1}")
    g(x, key=-y)
    x.a = True
    return x * 2.0
"""
    found = Counter(one.kind for one in mutations("f.py", source))
    kinds = {"constant": 3, "and/or": 1, "condition": 1, "sign": 2, "deletion": 4, "argument": 1, "arithmetic": 1}
    assert found == kinds


def test_the_table_names_files_and_tests_and_the_sample_is_seeded():
    for rows in mutants.TABLE.values():
        for pattern, tests in rows.items():
            assert any((mutants.ROOT / mutants.PACKAGE).glob(pattern)), pattern
            for word in mutants._arguments(tests):
                assert not word.startswith("tests/") or (mutants.ROOT / word.partition("::")[0]).exists(), word
    sample = mutants.sample(300, 18, mutants.ROOT, mutants.TABLE)
    assert Counter(area for area, _, _ in sample) == dict.fromkeys(mutants.TABLE, 50)
    assert sample[:60] == mutants.sample(60, 18, mutants.ROOT, mutants.TABLE)
    assert len({one.name for _, _, one in sample}) == 300
    for _, _, one in sample:
        source = (mutants.ROOT / one.file).read_bytes()
        ast.parse(source[: one.start] + one.new.encode() + source[one.end :])
