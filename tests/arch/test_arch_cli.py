"""`idarts arch` as a person calls it: output, exit codes, one line for a mistake."""

import json
import subprocess
import sys

import pytest

from idarts.arch import parse, registry, to_json
from idarts.cli import main


def run(capsys, *arguments):
    code = main(["arch", *map(str, arguments)])
    output = capsys.readouterr()
    return code, output.out, output.err


def test_list_names_every_published_cell(capsys):
    code, out, _ = run(capsys, "list")
    assert code == 0
    assert all(name in out for name in registry.names())
    listed = json.loads(run(capsys, "list", "--json")[1])
    assert [entry["name"] for entry in listed] == registry.names()


def test_show_json_in_a_real_process():
    command = [sys.executable, "-m", "idarts", "arch", "show", "DARTS_V2", "--json"]
    report = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert list(report) == ["name", "space", "architecture", "provenance", "networks"]
    assert (report["name"], report["space"]) == ("DARTS_V2", "darts")
    assert parse(report["architecture"]) == parse("DARTS_V2")
    assert report["networks"]["cifar"]["params"] == 3349342
    assert report["networks"]["imagenet"]["params"] == 4718752
    assert report["networks"]["imagenet"]["multiply_adds"] == {"conv+fc": 529912552, "conv+fc+bn": 538191592}
    assert report["networks"]["cifar"]["params_with_auxiliary"] == 3825768


def test_show_of_a_nas_bench_201_string(capsys):
    text = "|nor_conv_3x3~0|+|nor_conv_3x3~0|nor_conv_3x3~1|+|nor_conv_3x3~0|nor_conv_3x3~1|nor_conv_3x3~2|"
    report = json.loads(run(capsys, "show", text, "--json")[1])
    assert report["name"] == "NB201_all_conv3x3"
    assert list(report["networks"]) == ["cifar10", "cifar100", "imagenet16"]
    assert report["networks"]["cifar10"]["params"] == 1531546


def test_show_for_people(capsys):
    code, out, _ = run(capsys, "show", "iDARTS", "--classes", "100")
    assert code == 0
    assert "transcription" in out
    assert "Genotype(normal=[('skip_connect', 0), ('dil_conv_3x3', 1)" in out
    assert "conv+fc+bn" in out


def test_show_of_a_user_s_own_module(capsys, tmp_path):
    file = tmp_path / "mine.json"
    file.write_text('{"schema": 1, "space": "choice", "choices": {"block1": "conv3"}}')
    assert json.loads(run(capsys, "show", file, "--json")[1])["networks"] == {}
    assert "block1: conv3" in run(capsys, "show", file)[1]


def test_convert(capsys, tmp_path):
    assert run(capsys, "convert", "nas-bench-201:12", "--to", "index")[1] == "12\n"
    assert run(capsys, "convert", "--to", "json", "DARTS_V2")[1] == to_json(parse("DARTS_V2")) + "\n"
    assert run(capsys, "convert", "DARTS_V2", "--to", "genotype", "-o", tmp_path / "cell.txt")[0] == 0
    assert parse(tmp_path / "cell.txt") == parse("DARTS_V2")


def test_draw_and_gallery(capsys, tmp_path):
    pytest.importorskip("pygraphviz", reason="needs pygraphviz (idarts[draw])")
    assert run(capsys, "draw", "DARTS_V2", "-o", tmp_path / "cell.svg") == (0, f"{tmp_path / 'cell.svg'}\n", "")
    assert run(capsys, "gallery", "-o", tmp_path / "gallery")[0] == 0
    assert (tmp_path / "gallery" / "index.html").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["show", "DARTS_V3"], "did you mean DARTS_V2"),
        (["convert", "DARTS_V2", "--to", "string"], "has no form 'string', expected json or genotype"),
        (["draw", "DARTS_V2", "-o", "cell.jpeg"], "must end in .svg"),
        (["show", "DARTS_V2", "--depth", "0"], "depth is 0, expected"),
        (["show", "|none~0|+|none~0|none~1|"], "has 2 nodes, expected the 3"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(capsys, arguments, message):
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (2, "")
    assert err.startswith("idarts: ")
    assert err.count("\n") == 1
    assert message in err


@pytest.mark.parametrize("arguments", [[], ["frobnicate"], ["show"], ["show", "DARTS_V2", "--depth", "many"]])
def test_wrong_usage_is_exit_code_2(capsys, arguments):
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (2, "")
    assert err.startswith("idarts: ")
    assert err.count("\n") == 1


@pytest.mark.parametrize("arguments", [["--help"], ["show", "--help"]])
def test_help(capsys, arguments):
    code, out, _ = run(capsys, *arguments)
    assert code == 0
    assert "usage: idarts" in out
    assert " arch " in out
