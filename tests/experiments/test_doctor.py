"""`idarts doctor` tells the truth about a machine that we set up."""

import importlib
import json
import sys

import numpy as np
import pytest

from idarts.cli import main
from idarts.errors import InputError
from idarts.tables import table
from idarts.tables.nas_bench_201.table import Table201
from idarts.tables.storage.columns import write_columns


def write_201(folder):
    write_columns(folder / "nas-bench-201.npz", {name: np.zeros(15625, np.float32) for name in Table201._needed})


def findings(capsys):
    code = main(["doctor", "--json"])
    found = json.loads(capsys.readouterr().out)
    return code, {finding["name"]: finding for finding in found["findings"]}


def test_what_is_there_and_what_is_missing(tmp_path, monkeypatch, capsys):
    (tmp_path / "cifar10.npz").touch()
    write_201(tmp_path)
    monkeypatch.setenv("IDARTS_DATA", str(tmp_path))
    monkeypatch.setenv("IDARTS_TABLES", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setitem(sys.modules, "submitit", None)
    code, found = findings(capsys)
    assert code == 0
    assert found["cifar10"]["state"] == "found"
    assert found["cifar10"]["message"] == str(tmp_path / "cifar10.npz")
    assert found["cifar100"]["state"] == "missing"
    assert found["nas-bench-201"]["state"] == "found"
    assert found["nas-bench-101"]["state"] == "missing"
    assert found["slurm"] | {"message": ""} == {
        "part": "extras",
        "name": "slurm",
        "state": "missing",
        "message": "",
        "help": "pip install 'idarts[slurm]'",
    }
    assert found["torch"]["message"] == importlib.import_module("torch").__version__


def test_tables_that_no_look_up_can_use_are_missing(tmp_path, monkeypatch, capsys):
    """What doctor says is what a look-up does."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    cache = tmp_path / "cache" / "idarts" / "tables"
    cache.mkdir(parents=True)
    write_201(cache)
    monkeypatch.delenv("IDARTS_TABLES", raising=False)
    assert findings(capsys)[1]["nas-bench-201"]["state"] == "found"

    def refused(*words):
        code, found = findings(capsys)
        assert code == 0
        one = found["nas-bench-201"]
        with pytest.raises(InputError) as caught:
            table("nas-bench-201")
        assert one["state"] == "missing"
        assert f"{one['message']}; {one['help']}" == str(caught.value)
        assert all(word in one["message"] for word in words)
        return found

    monkeypatch.setenv("IDARTS_TABLES", str(tmp_path / "none"))
    assert refused("none does not exist")["IDARTS_TABLES"]["message"] == f"{tmp_path / 'none'} is not a folder"
    monkeypatch.delenv("IDARTS_TABLES")
    good = (cache / "nas-bench-201.npz").read_bytes()
    (cache / "nas-bench-201.npz").write_bytes(good[:-100])
    refused("cannot be read as a table")
    write_columns(cache / "nas-bench-201.npz", {"a": np.zeros(15625, np.float32)})
    refused("no column cifar100_flops")


def test_parquet_tables(tmp_path, monkeypatch, capsys):
    """Only looked at, for a conversion takes seconds; and missing where pyarrow is."""
    parquet = pytest.importorskip("pyarrow.parquet", reason="needs pyarrow (idarts[tables])")
    import pyarrow

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("IDARTS_TABLES", str(tmp_path))
    names = ["hash", "n_vertices", "adj_bits", "ops", "params", "test_acc_108ep_mean"]
    names += [f"in_1shot1_ss{number}" for number in (1, 2, 3)]
    parquet.write_table(pyarrow.table({name: [1] for name in names}), tmp_path / "nasbench101_108ep_test.parquet")
    (tmp_path / "nasbench201_tss.parquet").write_bytes(b"PAR1")
    found = findings(capsys)[1]
    assert found["nas-bench-101"]["state"] == "found"
    assert found["nas-bench-101"]["message"].startswith(str(tmp_path / "nasbench101_108ep_test.parquet"))
    assert "cannot be read as Parquet" in found["nas-bench-201"]["message"]
    assert not (tmp_path / "cache").exists()
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    found = findings(capsys)[1]["nas-bench-101"]
    assert (found["state"], "needs pyarrow: pip install 'idarts[tables]'" in found["message"]) == ("missing", True)


def test_what_is_required_and_broken_is_an_error(monkeypatch, capsys):
    monkeypatch.setattr("idarts.cli.doctor.requires", lambda name: ["safetensors>=0.5"])
    monkeypatch.setitem(sys.modules, "safetensors", None)
    code, found = findings(capsys)
    assert code == 1
    assert found["safetensors"]["state"] == "broken"


def test_what_an_extra_brings_and_is_missing_is_no_error(monkeypatch, capsys):
    monkeypatch.setattr("idarts.cli.doctor.requires", lambda name: ["torch"])
    monkeypatch.setitem(sys.modules, "sklearn", None)
    code, found = findings(capsys)
    assert code == 0
    assert (found["cli"]["state"], found["cli"]["help"]) == ("missing", "pip install 'idarts[cli]'")
    assert found["digits"]["state"] == "missing"
    assert found["report"]["state"] == "found"


@pytest.mark.parametrize("where", ["", "/no/such/folder"])
def test_in_words(where, monkeypatch, capsys):
    monkeypatch.setenv("IDARTS_DATA", where)
    assert main(["doctor"]) == 0
    shown = capsys.readouterr().out
    assert "→ export IDARTS_DATA=FOLDER" in shown
    assert "idarts table import" in shown or "nas-bench" in shown
