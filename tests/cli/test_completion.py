"""Completion, in a real bash: the same function that the Tab key calls."""

import shutil
import subprocess

import pytest

from idarts.cli import COMMANDS, main
from idarts.engine.loggers import LOGGERS
from idarts.searching import METHODS


def script_for(shell, capsys):
    assert main(["completion", shell]) == 0
    return capsys.readouterr().out


@pytest.fixture
def press_tab(tmp_path, capsys):
    """What bash offers for the words of a line, the last of which is being typed."""
    script = tmp_path / "idarts.bash"
    script.write_text(script_for("bash", capsys))
    run = f"""source {script}; complete -p idarts; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _idarts "$1" "${{!#}}" ""
    printf '%s\\n' "${{COMPREPLY[@]}}" """

    def press(*words):
        command = ["bash", "--noprofile", "--norc", "-uc", run, "bash", "idarts", *words]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
        assert not done.stderr
        first, *offered = done.stdout.splitlines()
        assert first == "complete -o default -F _idarts idarts"
        return [word for word in offered if word]

    return press


def test_tab_offers_what_can_be_typed(press_tab):
    assert press_tab("") == list(COMMANDS)
    assert press_tab("se") == ["search"]
    assert press_tab("-v", "tra") == ["train"]
    assert press_tab("search", "--log", "") == list(LOGGERS)
    assert press_tab("search", "--rounds", "7", "--method", "") == list(METHODS)
    assert "nas-bench-101" not in press_tab("search", "--space", "nas-")  # it cannot be searched
    assert press_tab("search", "--data", "cifar") == ["cifar10", "cifar100"]
    assert press_tab("train", "DARTS_V2", "--weights.ne") == ["--weights.nesterov"]
    assert press_tab("train", "DARTS_V2", "--weights.nesterov", "t") == ["true"]
    assert set(press_tab("evaluate", "search", "--part", "t")) == {"train", "test"}  # a folder called like a command
    assert press_tab("arch", "") == ["list", "show", "draw", "convert", "gallery"]
    assert "--output" in press_tab("arch", "draw", "--")
    assert press_tab("completion", "") == ["bash", "zsh", "fish"]
    assert press_tab("search", "--out", "ru") == []  # then bash offers files
    assert press_tab("search", "--inner_") == []  # typed as files have it, but not offered


def test_every_option_is_offered(press_tab, capsys):
    for command in COMMANDS:
        assert main([command, "--help"]) == 0
        text = capsys.readouterr().out
        listed = {line.split()[0].rstrip(",") for line in text.splitlines() if line.startswith("  --")}
        assert listed <= set(press_tab(command, "-")), command


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_the_scripts_of_other_shells_can_be_read(shell, tmp_path, capsys):
    text = script_for(shell, capsys)
    assert "--log" in text or "-l log" in text
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    script = tmp_path / "script"
    script.write_text(text)
    subprocess.run([shell, "-n", script], check=True, timeout=60)


def test_an_unknown_shell_is_one_line(capsys):
    assert main(["completion", "bahs"]) == 2
    assert capsys.readouterr().err == "idarts: SHELL is 'bahs'; did you mean bash?\n"
