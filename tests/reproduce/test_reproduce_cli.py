"""`idarts reproduce` as a person types it."""

import os
import shlex
import signal
import subprocess
import sys

import pytest

from idarts.cli import main
from idarts.reproduce import EXPERIMENTS


def test_help_lists_the_experiments_with_a_line_each(capsys):
    assert main(["reproduce", "--help"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    for name, experiment in EXPERIMENTS.items():
        assert f"{name} {experiment.summary}" in text


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["table-1", "--preset", "gpu"], "unknown preset 'gpu'; there are paper, cpu, smoke"),
        (
            ["table-1", "--seeds", "one"],
            "--seeds is 'one', expected a number of seeds such as 3, or a list such as 1,2,3",
        ),
        (["table-k", "--jobs", "0"], "--jobs is 0, expected at least 1"),
        (["table-1", "--tables", "/nowhere"], "the tables' folder /nowhere is no folder"),
    ],
)
def test_mistakes_are_one_line(capsys, tmp_path, monkeypatch, arguments, said):
    monkeypatch.chdir(tmp_path)
    assert main(["reproduce", *arguments]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert said in lines[0]
    assert not list(tmp_path.iterdir())


def test_an_interrupt_says_how_to_go_on_and_going_on_does(tables, tmp_path):
    out = tmp_path / "my results"
    command = [sys.executable, "-m", "idarts", "reproduce", "table-1", "--methods", "random-search", "--seeds", "30"]
    command += ["--preset", "smoke", "--out", str(out), "--tables", str(tables)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        for line in process.stderr:
            if line.startswith("[7/30]"):
                process.send_signal(signal.SIGINT)
                break
        said, _ = process.communicate(timeout=120)
    assert process.returncode == 130
    typed = shlex.split(said.splitlines()[-1])
    assert typed[:3] == ["idarts", "reproduce", "table-1"]
    assert {typed[place]: typed[place + 1] for place in range(3, len(typed), 2)} == {
        **{"--methods": "random-search", "--seeds": "30", "--preset": "smoke"},
        **{"--out": str(out), "--tables": str(tables)},
    }
    done = (out / "results.csv").read_text()
    again = subprocess.run(
        [sys.executable, "-m", *typed], capture_output=True, text=True, env=environment, timeout=240, check=True
    )
    assert again.stdout.strip() == str(out / "index.html")
    count = len(done.splitlines()) - 1
    assert 6 <= count < 30
    assert f"{count} of 30 jobs are done already" in again.stderr
    found = (out / "results.csv").read_text()
    assert found.startswith(done)
    assert len(found.splitlines()) == 31
