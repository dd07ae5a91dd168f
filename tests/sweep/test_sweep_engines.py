"""Ray and Slurm's client, where they are installed: the same jobs, the same kills."""

import os
import signal
import threading
import time
from pathlib import Path
from random import Random

import pytest

from idarts.cli import main
from idarts.errors import InputError
from idarts.sweep import on_ray, on_slurm
from idarts.sweep.conduct import _tried
from idarts.sweep.engines import EngineError
from idarts.sweep.job import Outcome


def count(task):
    """A job that takes a moment, and counts how often it came to its end."""
    (Path(task["folder"]) / f"try-{os.getpid()}").touch()
    time.sleep(0.4)
    done = Path(task["folder"], "result.json")
    if not done.exists():
        done.write_text("{}")
        with Path(task["folder"], "ends").open("a") as ends:
            ends.write("x")
    return Outcome()


def hurt(task):
    os.kill(os.getpid(), signal.SIGKILL)


def test_twenty_jobs_on_ray_with_workers_killed_at_random(tmp_path, monkeypatch):
    pytest.importorskip("ray", reason="needs Ray")
    monkeypatch.setattr("idarts.sweep.conduct.work", count)  # Ray's side is what is tried here; searches are elsewhere
    folders = [tmp_path / str(number) for number in range(20)]
    for folder in folders:
        folder.mkdir()
    kills, stop, told, failures = [], threading.Event(), [], []

    def kill():
        draw = Random(0)
        while not stop.wait(draw.uniform(0.2, 0.6)):
            begun = [int(path.name[4:]) for path in tmp_path.glob("*/try-*") if not _done(path.parent)]
            running = [number for number in begun if Path(f"/proc/{number}").exists()]
            if running and len(kills) < 8:
                kills.append(draw.choice(running))
                os.kill(kills[-1], signal.SIGKILL)

    def one(call, folder):
        failures.append(_tried(call, {"folder": str(folder)}, 10, told.append))

    with on_ray("local") as call:
        threads = [threading.Thread(target=one, args=(call, folder)) for folder in folders]
        killer = threading.Thread(target=kill)
        for thread in [*threads, killer]:
            thread.start()
        for thread in threads:
            thread.join()
        stop.set()
        killer.join()
    assert failures == [None] * 20
    assert len(kills) >= 3
    assert [(folder / "ends").read_text() for folder in folders] == ["x"] * 20


def _done(folder):
    return (folder / "result.json").exists()


def test_a_sweep_on_ray(tmp_path):
    pytest.importorskip("ray", reason="needs Ray")
    file = tmp_path / "one.yaml"
    file.write_text("{preset: smoke, settings: {rounds: 1, channels: 4, hypergradient.order: first}}")
    assert main(["sweep", str(file), "--out", str(tmp_path / "out"), "--engine", "ray", "--address", "local"]) == 0
    assert (tmp_path / "out" / "results.csv").read_text().count("\n") == 2


def test_submitit_runs_jobs_and_tells_of_those_that_die(tmp_path):
    pytest.importorskip("submitit", reason="needs submitit")
    (tmp_path / "job").mkdir()
    with on_slurm(tmp_path / "files", cluster="local", parameters={"timeout_min": 1}) as call:
        assert call(count, {"folder": str(tmp_path / "job")}) == Outcome()
        with pytest.raises(EngineError, match="died"):
            call(hurt, {})
    assert (tmp_path / "job" / "ends").read_text() == "x"


def test_an_engine_that_is_not_installed_is_told_with_the_command(tmp_path, monkeypatch):
    for name, engine in (("ray", on_ray("local")), ("submitit", on_slurm(tmp_path))):
        monkeypatch.setitem(__import__("sys").modules, name, None)
        with pytest.raises(InputError, match=r"pip install 'idarts\["), engine:
            pass
