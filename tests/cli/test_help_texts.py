"""What `--help` and the messages about options say."""

import importlib.util
import re
import sys
import tomllib
from dataclasses import asdict
from pathlib import Path

import pytest

from idarts.cli import main
from idarts.cli.doctor import required_modules
from idarts.engine.settings import dotted
from idarts.searching.run import RunConfig
from idarts.searching.settings import METHODS
from idarts.spaces import space
from idarts.training.settings import TrainConfig


def shown(capsys, *arguments):
    assert main([*arguments, "--help"]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize(("command", "kind"), [("search", RunConfig), ("train", TrainConfig)])
def test_every_setting_is_explained(command, kind, capsys):
    text = shown(capsys, command)
    settings = dotted(asdict(kind()))
    for name in settings:
        option = re.search(rf"^  --{re.escape(name)} (.*?)(?=^  --|^\S|\Z)", text, re.MULTILINE | re.DOTALL)
        assert option, name
        told = re.sub(r"^({.*?}|\[.*?\]|[A-Z_]+)", "", option[1]).split("(default")[0].split()
        assert told, name
    assert not re.search(r"<class|type:|default: null|\(default: [^)]*\) \(default", text)
    assert text.startswith(f"usage: idarts {command} ")
    for group in {name.split(".")[0] for name in settings if "." in name}:
        assert f"\n{group}:\n  " in text


def test_defaults_are_told_once_and_are_those_of_the_method(capsys):
    text = shown(capsys, "search", "--method", "darts")
    assert re.search(r"--inner_steps INNER_STEPS\s+T: .*\(default: 1\)", text)
    assert text.count("(default: runs/SPACE-METHOD-DATA-") == 1
    assert "(default: False)" not in text.split("--rounds")[0]
    assert "default: null" not in shown(capsys, "table", "best") + shown(capsys, "reproduce")


def test_names_in_the_help_are_all_there_are(capsys):
    text = " ".join(shown(capsys, "search").split())
    methods = re.search(r"--method METHOD .*?: (.*?) \(default", text)[1].split(", ")
    assert methods == list(METHODS)
    spaces = ["nas-bench-201", *(f"nas-bench-1shot1-s{number}" for number in (1, 2, 3)), "darts"]
    assert "--space SPACE search space: nas-bench-201, nas-bench-1shot1-s1, -s2 or -s3, or darts (" in text
    assert [space(name).skeleton.classes > 0 for name in spaces] == [True] * 5


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("table best nas-bench-201 --top abc", "--top is 'abc', expected int"),
        ("table best nas-bench-201 --topp 3", "unknown option --topp; did you mean --top?"),
        ("arch show X --depth x", "--depth is 'x', expected int"),
        ("arch show X --deep=3", "unknown option --deep; did you mean --depth?"),
        ("reproduce table-1 --jobs two", "--jobs is 'two', expected int"),
        ("search --roundz 3", "unknown option --roundz; did you mean --rounds?"),
        ("search --xyzxyz", "unknown option --xyzxyz; --help lists all options"),
    ],
)
def test_only_unknown_options_are_called_so(command, told, capsys):
    assert main(command.split()) == 2
    assert capsys.readouterr().err == f"idarts: {told}\n"


def test_all_that_the_package_requires_is_looked_for(monkeypatch, capsys):
    pyproject = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    needed = pyproject["project"]["dependencies"]
    modules = required_modules(needed)
    assert {"torch", "PIL", "sklearn", "safetensors", "yaml", "scipy"} <= set(modules)
    for name in modules:
        assert importlib.util.find_spec(name), name
    monkeypatch.setattr("idarts.cli.doctor.requires", lambda name: [*needed, "absent>=1; extra == 'x'"])
    monkeypatch.setitem(sys.modules, "safetensors", None)
    assert main(["doctor"]) == 1
    assert "safetensors does not work" in capsys.readouterr().err
