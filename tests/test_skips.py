"""CI's plugin: skips that are not on its list fail the run, with one line each; without it they are only skips."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PLUGIN = Path(__file__).parents[1] / ".ci"
TESTS = """
import pytest, unittest

def test_that_runs():
    pass

def test_listed():
    pytest.skip("IDARTS_TABLES names no folder with x")

def test_expected_to_fail():
    pytest.xfail("known")

@pytest.mark.skipif(True, reason="no browser")
def test_unlisted():
    pass

def test_of_unittest():
    raise unittest.SkipTest("no pandas")
"""
MODULE = 'import pytest\npytest.importorskip("no_such_module", reason="needs no_such_module")'
LINES = [
    "test_module.py skipped, but could run here: needs no_such_module",
    "test_some.py::test_unlisted skipped, but could run here: no browser",
    "test_some.py::test_of_unittest skipped, but could run here: no pandas",
]


def run(folder, *options, **variables):
    """The exit code and the lines about skips of a real run of pytest."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "IDARTS"))}
    environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # which take a second to import
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options]
    done = subprocess.run(
        command, cwd=folder, env=environment | variables, capture_output=True, text=True, check=False, timeout=120
    )
    return done.returncode, [line for line in done.stdout.splitlines() if "could run here" in line]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "test_some.py").write_text(TESTS)
    (tmp_path / "test_module.py").write_text(MODULE)
    return tmp_path


@pytest.mark.parametrize("options", [[], ["-p", "xdist", "-n", "2"]], ids=["one process", "two workers"])
def test_unlisted_skips_fail_the_run_with_one_line_each(folder, options):
    code, lines = run(folder, *options, PYTHONPATH=str(PLUGIN), PYTEST_PLUGINS="fail_on_skips")
    assert code == pytest.ExitCode.TESTS_FAILED
    assert sorted(lines) == sorted(LINES)


def test_a_listed_skip_fails_the_run_only_where_its_data_are(folder):
    plugin = {"PYTHONPATH": str(PLUGIN), "PYTEST_PLUGINS": "fail_on_skips"}
    assert run(folder, "-k", "runs or listed and not unlisted", "test_some.py", **plugin) == (0, [])
    code, lines = run(folder, "test_some.py::test_listed", **plugin, IDARTS_TABLES="/data")
    assert code == pytest.ExitCode.TESTS_FAILED
    assert len(lines) == 1


def test_without_the_plugin_skips_are_only_skips(folder):
    assert run(folder) == (0, [])
