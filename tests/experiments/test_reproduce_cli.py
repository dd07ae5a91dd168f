"""`idarts reproduce` as a person types it."""

import csv
import os
import shlex
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import pytest

from idarts.cli import jobs as cli_jobs
from idarts.cli import main
from idarts.engine.folder import locked
from idarts.errors import InputError
from idarts.experiments import EXPERIMENTS, engines
from idarts.experiments.jobs import Outcome


def test_help_lists_the_experiments_with_a_line_each(capsys):
    assert main(["reproduce", "--help"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert len(EXPERIMENTS) >= 7
    for name in EXPERIMENTS:
        assert f"{name} {EXPERIMENTS[name].summary}" in text


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["table-1", "--preset", "large"], "unknown preset 'large'; there are paper, cpu, smoke"),
        (
            ["table-1", "--seeds", "one"],
            "--seeds is 'one', expected a number of seeds such as 3, or a list such as 1,2,3",
        ),
        (["table-k", "--jobs", "0"], "--jobs is 0, expected at least 1"),
        (["table-k", "--methods", "gdas"], "table-k does not use --methods; remove it"),
        (["table-hypergradients", "--tables", "x"], "table-hypergradients does not use --tables; remove it"),
        (["table-1", "--engine", "here", "--jobs", "2"], "--engine here runs one job at a time; use --engine local"),
        (["table-1", "--engine", "slurm", "--slurm", "600"], "--slurm is '600', expected JSON such as"),
        (["table-1", "--tables", "/nowhere"], "the folder of tables /nowhere does not exist"),
    ],
)
def test_mistakes_are_one_line(capsys, tmp_path, monkeypatch, arguments, said):
    monkeypatch.chdir(tmp_path)
    assert main(["reproduce", *arguments]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert said in lines[0]
    assert not list(tmp_path.iterdir())


def test_rows_are_named_with_or_without_spaces_and_once(tables, tmp_path, capsys):
    command = ["reproduce", "table-1", "--preset", "smoke", "--seeds", "1", "--tables", str(tables)]
    command += ["--out", str(tmp_path / "out"), "--methods"]
    assert main([*command, "random-search,random-search"]) == 2
    assert "methods are random-search, random-search, expected each once" in capsys.readouterr().err
    assert main([*command, "random-search, optimum"]) == 2
    assert "unknown row 'optimum'; did you mean optimal?" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    assert main([*command, " random-search , optimal"]) == 0
    assert "Its numbers mean nothing" in capsys.readouterr().err
    for page in ("index.html", "results.md"):
        assert "Its numbers mean nothing" in (tmp_path / "out" / page).read_text()
    with (tmp_path / "out" / "results.csv").open() as file:
        assert [row["method"] for row in csv.DictReader(file)] == ["random-search", "optimal"]


def test_searches_side_by_side_have_no_more_threads_than_omp_num_threads(tables, tmp_path, monkeypatch):
    given = []

    @contextmanager
    def noting():
        def call(_, task):
            given.append(task["threads"])
            return Outcome("noted")

        yield call

    monkeypatch.setattr(engines, "cores", lambda: 8)
    monkeypatch.setattr(cli_jobs, "local", noting)
    command = ["reproduce", "table-1", "--preset", "smoke", "--seeds", "1", "--methods", "gdas", "--jobs", "2"]
    command += ["--retries", "0", "--tables", str(tables), "--out", str(tmp_path / "out")]
    for limit in ("1", "3", "100"):
        monkeypatch.setenv("OMP_NUM_THREADS", limit)
        assert main(command) == 1
    assert given == [1, 3, 4]


def test_an_interrupt_says_how_to_continue_and_that_continues(tables, tmp_path):
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


def until(found, seconds=120.0):
    """What is found in the end, or the test fails."""
    deadline = time.monotonic() + seconds
    while not (answer := found()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return answer


def holder(run):
    """Who works in a run's folder, or did so last; not we, who only look."""
    text = (run / ".lock").read_text() if (run / ".lock").exists() else ""
    return int(text) if text and int(text) != os.getpid() else None


def free(run):
    with suppress(InputError), locked(run, "run"):
        return True
    return False


def is_halted(pid):
    """Whether all threads of a process are stopped."""
    stats = [file.read_text() for file in Path(f"/proc/{pid}/task").glob("*/stat")]
    return all(stat.rpartition(")")[2].split()[0] == "T" for stat in stats)


def has_pending_sigterm(pid):
    """Whether SIGTERM waits for a halted process."""
    pending = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("ShdPnd"))
    return bool(int(pending.split()[1], 16) >> (signal.SIGTERM - 1) & 1)


def test_searches_end_with_their_command_however_it_ends_and_the_same_command_continues(tables, tmp_path):
    """Searches are halted when they start, and let go when their command is gone: alone, they would reach a result."""
    out = tmp_path / "out"
    runs = [out / "runs" / f"gdas-{seed}" for seed in (1, 2)]
    command = [sys.executable, "-m", "idarts", "reproduce", "table-1", "--methods", "gdas", "--preset", "smoke"]
    command += ["--seeds", "2", "--jobs", "2", "--out", str(out), "--tables", str(tables)]
    for number, code in ((signal.SIGKILL, -9), (signal.SIGINT, 130)):
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            halted = []
            try:
                for run in runs:
                    halted.append(until(partial(holder, run)))
                    os.kill(halted[-1], signal.SIGSTOP)
                until(lambda: all(map(is_halted, halted)))  # noqa: B023 (called at once)
                process.send_signal(number)
                if number == signal.SIGKILL:
                    process.wait()
                else:
                    until(lambda: all(map(has_pending_sigterm, halted)))  # noqa: B023 (called at once)
            finally:
                for pid in halted:
                    os.kill(pid, signal.SIGCONT)
            shown, errors = process.communicate(timeout=120)
        assert process.returncode == code
        assert "Traceback" not in errors
        assert ("the same command continues:\n  idarts reproduce table-1 --preset smoke --seeds 2 " in shown) == (
            code == 130
        )
        until(lambda: all(map(free, runs)))
        assert not [run for run in runs if (run / "result.json").exists()]
    again = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert again.stdout == f"{out}/index.html\n"
    assert all((run / "result.json").exists() for run in runs)
