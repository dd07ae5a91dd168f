"""`idarts doctor` tells the truth about a machine that we set up."""

import importlib
import json
import sys

import pytest

from idarts.cli import main


def findings(capsys):
    code = main(["doctor", "--json"])
    found = json.loads(capsys.readouterr().out)
    return code, {finding["name"]: finding for finding in found["findings"]}


def test_what_is_there_and_what_is_missing(tmp_path, monkeypatch, capsys):
    (tmp_path / "cifar10.npz").touch()
    (tmp_path / "nas-bench-201.npz").touch()
    monkeypatch.setenv("IDARTS_DATA", str(tmp_path))
    monkeypatch.setenv("IDARTS_TABLES", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setitem(sys.modules, "submitit", None)
    code, found = findings(capsys)
    assert code == 0
    assert found["cifar10"]["state"] == "found"
    assert found["cifar10"]["told"] == str(tmp_path / "cifar10.npz")
    assert found["cifar100"]["state"] == "missing"
    assert found["nas-bench-201"]["state"] == "found"
    assert found["nas-bench-101"]["state"] == "missing"
    assert found["slurm"] | {"told": ""} == {
        "part": "extras",
        "name": "slurm",
        "state": "missing",
        "told": "",
        "help": "pip install 'idarts[slurm]'",
    }
    assert found["torch"]["told"] == importlib.import_module("torch").__version__


def test_what_is_required_and_broken_is_an_error(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    code, found = findings(capsys)
    assert code == 1
    assert found["sklearn"]["state"] == "broken"


@pytest.mark.parametrize("where", ["", "/no/such/folder"])
def test_in_words(where, monkeypatch, capsys):
    monkeypatch.setenv("IDARTS_DATA", where)
    assert main(["doctor"]) == 0
    shown = capsys.readouterr().out
    assert "→ export IDARTS_DATA=FOLDER" in shown
    assert "idarts table import" in shown or "nas-bench" in shown
