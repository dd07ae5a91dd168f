"""Real searches on every engine, with workers killed for real; on Ray and Slurm's client where they are installed."""

import csv
import json
import os
import re
import signal
import threading
import time
from collections import Counter
from contextlib import contextmanager, suppress
from functools import partial
from glob import iglob
from importlib import import_module
from importlib.util import find_spec
from multiprocessing import forkserver
from pathlib import Path
from random import Random

import numpy as np
import pytest
from answering import answer
from sklearn.datasets import load_digits

from idarts.cli import main
from idarts.errors import InputError
from idarts.experiments import local, on_ray, on_slurm
from idarts.experiments.engines import EngineError

ROUNDS = 6
METHODS = ["darts-first-order", "gdas"]
SETTINGS = {"rounds": ROUNDS, "channels": 4, "hypergradient.method": "first-order", "checkpoint_rounds": 1}


def needs(module):
    return pytest.mark.skipif(find_spec(module) is None, reason=f"needs {module}")


@pytest.fixture(autouse=True)
def _quick_ray(monkeypatch):
    """Workers that wait for no other test (Ray starts them at niceness 15), and a dead node noticed in 5 s, not 15."""
    monkeypatch.setenv("RAY_worker_niceness", "0")
    monkeypatch.setenv("RAY_health_check_period_ms", "1000")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=os.pathsep)


def working(out):
    """The processes that are at a job of a sweep, with its name: they have its log open."""
    found = {}
    for place in iglob("/proc/[0-9]*/fd/*"):  # pathlib's would stumble over a process that ends
        with suppress(OSError):
            log = Path(place).readlink()
            if log.parent == out / "logs":
                found[int(place.split("/")[2])] = log.stem
    return found


def killed(out, pid, job):
    """Whether a process was killed before its job was done: halted first, so that the answer stays true."""
    with suppress(OSError):
        os.kill(pid, signal.SIGSTOP)
        while Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "TZX":
            time.sleep(0.001)
        if working(out).get(pid) == job and not (out / job / "result.json").exists():
            os.kill(pid, signal.SIGKILL)
            return True
        os.kill(pid, signal.SIGCONT)
    return False


@contextmanager
def killing(out):
    """While the block lasts, workers are killed: some jobs at once, and some of these again after a random round.

    Gives how often in each job.
    """
    kills, planned, stop, draw = Counter(), {}, threading.Event(), Random(0)

    def run():
        while not stop.wait(0.05):
            for pid, job in working(out).items():
                rounds = [0, draw.randrange(ROUNDS)][: (0, 1, 0, 2)[len(planned) % 4]]
                after = planned.setdefault(job, rounds)
                log = out / job / "metrics.jsonl"
                if after and (log.read_text().count("\n") if log.exists() else 0) >= after[0] and killed(out, pid, job):
                    kills[job] += 1
                    after.pop(0)

    killer = threading.Thread(target=run)
    killer.start()
    try:
        yield kills
    finally:
        stop.set()
        killer.join()


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    """The digits in a file, for every job would spend most of its time on importing scikit-learn."""
    file, found = tmp_path_factory.mktemp("data") / "digits.npz", load_digits()
    x, y = (found.images * 15).astype(np.uint8)[..., None], found.target
    np.savez(file, x_train=x[:1440], y_train=y[:1440], x_test=x[1440:], y_test=y[1440:])
    return f"npz:{file}"


@pytest.mark.parametrize(
    ("engine", "seeds"),
    [
        (["local"], 3),
        pytest.param(["ray", "--address", "local"], 1, marks=needs("ray")),
        pytest.param(["slurm"], 1, marks=needs("submitit")),  # whose own processes take the place of a cluster's
    ],
    ids=["local", "ray", "slurm"],
)
def test_a_sweep_with_workers_killed_at_random(engine, seeds, digits, tmp_path, monkeypatch, capsys):
    """All jobs are done, each once and every round of it once; every kill is reported, and nothing else."""
    monkeypatch.setattr("idarts.cli.jobs.on_slurm", partial(on_slurm, cluster="local"))
    file, out = tmp_path / "tiny.yaml", tmp_path / "out"
    tiny = {"settings": SETTINGS | {"data": digits}, "seeds": seeds, "slurm": {"timeout_min": 5}}
    file.write_text(json.dumps({"preset": "smoke", "methods": METHODS, **tiny}))
    with killing(out) as kills:
        code = main(["sweep", str(file), "--out", str(out), "--jobs", "2", "--engine", *engine])
    shown = capsys.readouterr().err
    assert code == 0, shown
    jobs = [f"nas-bench-201-{method}-{seed}" for method in METHODS for seed in range(1, seeds + 1)]
    assert kills.total() >= 1  # how many depends on how quick the jobs are
    again = re.findall(r"^(\S+): .*; trying again \((\d) of 2\)$", shown, re.MULTILINE)
    assert sorted(again) == sorted((job, str(1 + n)) for job, count in kills.items() for n in range(count))
    rows = list(csv.DictReader((out / "results.csv").read_text().splitlines()))
    assert sorted(row["job"] for row in rows) == sorted(jobs)
    assert {(row["method"], row["seed"]) for row in rows} == {tuple(job[14:].rsplit("-", 1)) for job in jobs}
    for job in jobs:
        log = (out / job / "metrics.jsonl").read_text().splitlines()
        assert [json.loads(line)["number"] for line in log] == list(range(1, ROUNDS + 1))
        assert not [path for path in (out / job).glob(".*") if path.name != ".lock"]


def test_a_killed_process_takes_no_other_with_it():
    with local() as call:
        with pytest.raises(EngineError, match="was killed"):
            call(answer, {"kill": True})
        assert call(answer, {"kill": False}) != os.getpid()


def test_a_server_of_processes_that_dies_is_started_again():
    with local() as call:
        first = call(answer, {"kill": False})
        os.kill(forkserver._forkserver._forkserver_pid, signal.SIGKILL)
        answers = []
        for _ in range(3):  # the retries of the runner
            time.sleep(0.5)  # until the kill has been carried out
            with suppress(EngineError):
                answers.append(call(answer, {"kill": False}))
        assert answers
        assert first not in answers


def ray_node():
    """The process of Ray's node that this one has started."""
    for stat in iglob("/proc/[0-9]*/stat"):
        with suppress(OSError):
            pid, name, _, parent, *_ = Path(stat).read_text().split()
            if (name, int(parent)) == ("(raylet)", os.getpid()):
                return int(pid)
    raise AssertionError("no node of Ray is running")


@needs("ray")
def test_a_node_of_ray_that_dies_is_started_again(tmp_path, monkeypatch):
    with on_ray("local") as call:
        first = call(answer, {"kill": False})
        (tmp_path / "only_here.py").write_text("def one(task): return 1")
        monkeypatch.syspath_prepend(tmp_path)
        with pytest.raises(EngineError, match="ModuleNotFoundError: No module named 'only_here'"):
            call(import_module("only_here").one, {})
        os.kill(ray_node(), signal.SIGKILL)
        answers = []
        for _ in range(3):  # the retries of the runner
            with suppress(EngineError):
                answers.append(call(answer, {"kill": False}))
        assert answers
        assert first not in answers


def test_an_engine_that_is_not_installed_is_named_with_its_command(tmp_path, monkeypatch):
    for name, engine in (("ray", on_ray("local")), ("submitit", on_slurm(tmp_path))):
        monkeypatch.setitem(__import__("sys").modules, name, None)
        with pytest.raises(InputError, match=r"pip install 'idarts\["), engine:
            pass
