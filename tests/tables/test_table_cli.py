"""`idarts table` as a person calls it: output, exit codes, one line for a mistake."""

import json
import subprocess
import sys

import pytest

from idarts.cli import main

CELL = "|nor_conv_3x3~0|+|nor_conv_3x3~0|nor_conv_3x3~1|+|skip_connect~0|nor_conv_3x3~1|nor_conv_1x1~2|"


def run(capsys, *arguments):
    code = main(["table", *map(str, arguments)])
    output = capsys.readouterr()
    return code, output.out, output.err


@pytest.fixture
def at_hand(real, monkeypatch):
    real.table("nas-bench-201")
    monkeypatch.setenv("XDG_CACHE_HOME", str(real.cache))
    monkeypatch.setenv("IDARTS_TABLES", real.folder)
    return real


def test_query_json_in_a_real_process(at_hand):
    command = [sys.executable, "-m", "idarts", "table", "query", "nas-bench-201", CELL, "--json"]
    answer = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert answer == {
        "index": 6111,
        "architecture": CELL,
        "cifar10": {"valid": 91.60667, "test": 94.37334},
        "cifar100": {"valid": 72.74667, "test": 73.22},
        "imagenet16": {"valid": 45.55556, "test": 46.71111},
    }


def test_query_for_people(at_hand, capsys):
    code, out, err = run(capsys, "query", "nas-bench-201", "6111", "--details", "--tables", at_hand.folder)
    assert (code, err) == (0, "")
    assert all(part in out for part in (CELL, "index: 6111", "94.373", "73.220", "1,073,466", "88.790"))
    code, out, _ = run(capsys, "query", "nas-bench-101", "02e5a0247bbdcf2860b7e96f74961594")
    assert code == 0
    assert all(part in out for part in ("test accuracy, %: 94.318", "parameters: 32,426,634", "maxpool3x3"))


def test_what_json_says_is_taken_back(at_hand, capsys):
    for question in (
        ("query", "nas-bench-201", "7", "--json"),
        ("query", "nas-bench-201", "7", "--details", "--json"),
        ("rank", "nas-bench-201", "7", "--json"),
        ("best", "nas-bench-1shot1-s3", "--json"),
    ):
        printed = run(capsys, *question)[1]
        first = json.loads(printed)
        first = first[0] if isinstance(first, list) else first
        code, out, err = run(capsys, "query", question[1], printed, "--json")
        assert (code, err) == (0, "")
        assert json.loads(out)["architecture"] == first["architecture"]


def test_best(at_hand, capsys):
    code, out, _ = run(capsys, "best", "nas-bench-201", "--dataset", "cifar100", "--split", "test", "--top", "2")
    assert code == 0
    assert out.splitlines()[1].startswith("  1  73.513 %   9930  |nor_conv_3x3~0|")
    assert len(out.splitlines()) == 3
    listed = json.loads(run(capsys, "best", "nas-bench-101", "--json", "--top", "3")[1])
    assert listed[0]["hash"] == "02e5a0247bbdcf2860b7e96f74961594"
    assert len(listed) == 3


def test_rank(at_hand, capsys):
    code, out, _ = run(capsys, "rank", "nas-bench-201", CELL)
    assert code == 0
    assert "1 of 15,625" in out
    answer = json.loads(run(capsys, "rank", "nas-bench-201", CELL, "--json")[1])
    assert answer["cifar10"] == {"valid": {"place": 1, "of": 15625}, "test": {"place": 1, "of": 15625}}
    answer = json.loads(run(capsys, "rank", "nas-bench-101", "02e5a0247bbdcf2860b7e96f74961594", "--json")[1])
    assert answer["cifar10"] == {"test": {"place": 1, "of": 423624}}


@pytest.mark.filterwarnings("always:.*; the others stay unknown")
def test_import_then_query(official, tmp_path, capsys, own_cache):
    folder = official.nats_folder(tmp_path / "NATS-tss-v1_0-3ffb9-simple", (3, 4))
    code, out, err = run(capsys, "import", folder)
    assert (code, out) == (0, f"{own_cache.folder / 'nas-bench-201.npz'}\n")
    assert err.startswith("idarts: warning: ")
    assert err.count("\n") == 1  # no bar where there is no terminal
    assert json.loads(run(capsys, "query", "nas-bench-201", "3", "--json")[1])["index"] == 3
    code, _, err = run(capsys, "query", "nas-bench-201", "5")
    assert code == 2
    assert "has no values for index 5" in err


@pytest.mark.filterwarnings("ignore:.*; the others stay unknown")
def test_import_says_when_another_table_comes_first(official, tmp_path, capsys, monkeypatch):
    folder = official.nats_folder(tmp_path / "folder", (3, 4))
    run(capsys, "import", folder, "--tables", tmp_path / "first")
    monkeypatch.setenv("IDARTS_TABLES", str(tmp_path / "first"))
    code, out, _ = run(capsys, "import", folder)
    assert code == 0
    assert f"look-ups still use {tmp_path / 'first' / 'nas-bench-201.npz'}" in out


def test_a_missing_table_says_what_to_get_and_how_to_import_it(capsys, tmp_path, own_cache):
    for benchmark, what in (
        ("nas-bench-201", "NATS-tss-v1_0-3ffb9-simple"),
        ("nas-bench-101", "nasbench_only108.tfrecord"),
        ("nas-bench-1shot1-s3", "nasbench_only108.tfrecord"),
    ):
        code, out, err = run(capsys, "best", benchmark)
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert str(own_cache.folder) in err
        assert f"idarts table import {what}\n" in err
        assert f"import {what} --tables {tmp_path}\n" in run(capsys, "best", benchmark, "--tables", tmp_path)[2]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("query", "nas-bench-210", "1"), "unknown table 'nas-bench-210'; did you mean nas-bench-201?"),
        (("query", "nas-bench-201", "1", "--tables", "/no such"), "the folder of tables /no such does not exist"),
        (("import", "nothing.pth"), "there is no nothing.pth"),
        (("best", "nas-bench-201", "--dataste", "cifar10"), "--dataste"),
    ],
)
def test_mistakes_are_one_line(capsys, arguments, message):
    code, out, err = run(capsys, *arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert message in err


def test_mistakes_about_a_table_at_hand_are_one_line(at_hand, capsys):
    for arguments, message in (
        (("best", "nas-bench-201", "--dataset", "svhn"), "no data set 'svhn', expected cifar10 or cifar100"),
        (("best", "nas-bench-201", "--split", "train"), "no split 'train' of cifar10, expected valid or test"),
        (("best", "nas-bench-201", "--top", "0"), "top is 0, expected at least 1"),
        (("rank", "nas-bench-201", "DARTS_V2"), "an architecture of darts is not a NAS-Bench-201 cell"),
        (("query", "nas-bench-101", "00" * 16), f"has no cell {'00' * 16}"),
        (("query", "nas-bench-101", CELL), "an architecture of nas-bench-201 is not a NAS-Bench-101 cell"),
    ):
        code, out, err = run(capsys, *arguments)
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert message in err
