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
from idarts.data import source_names
from idarts.engine.settings import dotted
from idarts.searching import METHODS, RELAXATIONS, SELECTIONS, RunConfig
from idarts.spaces import SPACES
from idarts.training.settings import TrainConfig


def shown(capsys, *arguments):
    assert main([*arguments, "--help"]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize(("command", "kind"), [("search", RunConfig), ("train", TrainConfig)])
def test_every_setting_is_explained(command, kind, capsys):
    text = shown(capsys, command)
    settings = dotted(asdict(kind()))
    for name in settings:
        typed = re.escape(name.replace("_", "-"))
        option = re.search(rf"^  --{typed} ({{.*?}}|VALUE)(.*?)(?=^  --|^\S|\Z)", text, re.MULTILINE | re.DOTALL)
        assert option, name
        assert option[2].split("(default")[0].split(), name
    assert not re.search(r"<class|type:|default: null|\(default: [^)]*\) \(default", text)
    assert text.startswith(f"usage: idarts {command} ")
    for group in {name.split(".")[0] for name in settings if "." in name}:
        assert f"\n{group}:\n  " in text


def test_defaults_are_shown_once(capsys):
    text = shown(capsys, "search")
    assert re.search(r"--inner-steps VALUE\s+T: .*\(default: 4\)", text)
    assert "--inner_steps" not in text  # it can be typed, too
    assert "(default: [0.5, 0.999])" in text
    assert "(default: [])" not in text
    assert " ".join(text.split()).count("(default: runs/SPACE-METHOD-") == 1
    assert "(default: False)" not in text.split("--rounds")[0]
    assert "default: null" not in shown(capsys, "table", "best") + shown(capsys, "reproduce")


def test_names_in_the_help_are_all_there_are(capsys):
    text = " ".join(shown(capsys, "search").split())
    searched = [name for name in SPACES if SPACES[name].has("supernet")]
    assert "nas-bench-101" not in searched  # a table has its cells, but there is nothing to search them with
    offered = {"space": searched, "relaxation": RELAXATIONS, "selection.rule": SELECTIONS}
    for option, known in offered.items():
        names = re.search(rf"--{option} VALUE .*?: ([^:]*), or your own package.module:name", text)[1].split(", ")
        assert names == list(known)
    assert f"`idarts methods`: {', '.join(METHODS)} (default: idarts)" in text
    sources = ", ".join(source_names())
    assert f"data to search on: {sources}, or your own package.module:name" in text
    for command in ("train", "evaluate", "fit"):
        assert sources in " ".join(shown(capsys, command).split())
    assert main(["methods"]) == 0
    listed = capsys.readouterr().out
    assert all(f"{name}\n" in listed for name in METHODS)


def test_what_is_to_be_copied_stays_whole(capsys):
    text = shown(capsys, "completion")
    assert "  idarts completion bash > ~/.local/share/bash-completion/completions/idarts\n" in text
    assert "reproduce/EXPERIMENT-PRESET" in shown(capsys, "reproduce")


@pytest.mark.parametrize("command", ["reproduce", "sweep"])
def test_experiments_show_their_defaults(command, capsys):
    text = " ".join(shown(capsys, command).split())
    assert re.search(r"--retries RETRIES how often a job that died is tried again \(default: \d\)", text)
    assert "(default: 0)" in text.partition("--gpus GPUS GPUs")[2].partition(" --")[0]


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("serach", "unknown command 'serach'; did you mean search?"),
        ("--wrong", "unknown option --wrong; idarts --help lists all options"),
        ("arch shwo", "unknown action 'shwo'; did you mean show?"),
        ("arch", "missing ACTION; idarts arch --help explains the command"),
        ("arch convert DARTS_V2", "missing --to; idarts arch convert --help explains the command"),
        ("table query", "missing BENCHMARK, CELL; idarts table query --help explains the command"),
        ("table best nas-bench-201 --top abc", "--top is 'abc', expected a whole number"),
        ("table best nas-bench-201 --topp 3", "unknown option --topp; did you mean --top?"),
        ("table best nas-bench-201 --top", "--top: expected one argument"),
        ("arch show X --depth x", "--depth is 'x', expected a whole number"),
        ("arch show X --deep=3", "unknown option --deep; did you mean --depth?"),
        ("arch show X Y", "unexpected argument 'Y'; idarts arch show --help explains the command"),
        ("profile X --seconds long", "--seconds is 'long', expected a number"),
        ("evaluate RUN --part tset", "--part is 'tset'; did you mean test?"),
        ("evaluate RUN", "RUN is not a folder; give a model folder, or that of a finished training or fit"),
        ("reproduce table-1 --jobs two", "--jobs is 'two', expected a whole number"),
        ("reproduce table-0", "unknown experiment 'table-0'; did you mean table-k?"),
        ("search --roundz 3", "unknown option --roundz; did you mean --rounds?"),
        ("search --rate 3", "unknown option --rate; did you mean --weights.rate or --alpha.rate or --controller.rate?"),
        ("search --arch X", "unknown option --arch; idarts search --help lists all options"),
        ("train --arch X", "unknown option --arch; did you mean --architecture?"),
        ("train --checkpoint_round 3", "unknown option --checkpoint_round; did you mean --checkpoint-rounds?"),
        ("search --xyzxyz", "unknown option --xyzxyz; idarts search --help lists all options"),
        ("search smoke", "unexpected argument 'smoke'; idarts search --help explains the command"),
        ("search --rounds many", "--rounds is 'many', expected a whole number of at least 1"),
        ("search --rounds 1.5", "--rounds is '1.5', expected a whole number of at least 1"),
        ("search --rounds nan", "--rounds is 'nan', expected a whole number of at least 1"),
        ("search --alpha.rate NaN", "--alpha.rate is 'NaN', expected a number of at least 0 or auto"),
        ("search --alpha.rate 1e999", "--alpha.rate is '1e999', expected a number of at least 0 or auto"),
        ("search --alpha.betas 3", "--alpha.betas is '3', expected 2 values, each a number from 0 to below 1"),
        (f"search --batch {'[' * 9999}", f"--batch is '{'[' * 9999}', expected a whole number of at least 1"),
    ],
)
def test_mistakes_are_named_as_they_were_typed(command, message, capsys):
    assert main(command.split()) == 2
    assert capsys.readouterr().err == f"idarts: {message}\n"


def test_an_unknown_part_is_answered_with_those_there_are(capsys):
    assert main(["search", "--relaxation", "gumble"]) == 2
    assert "gumbel" in capsys.readouterr().err


def test_all_that_the_package_requires_is_looked_for(monkeypatch, capsys):
    pyproject = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    needed = pyproject["project"]["dependencies"]
    modules = required_modules(needed)
    assert set(modules) == {"torch", "numpy", "pydantic", "safetensors"}
    for name in modules:
        assert importlib.util.find_spec(name), name
    monkeypatch.setattr("idarts.cli.doctor.requires", lambda name: [*needed, "absent>=1; extra == 'x'"])
    monkeypatch.setitem(sys.modules, "safetensors", None)
    assert main(["doctor"]) == 1
    assert "safetensors does not work" in capsys.readouterr().err
