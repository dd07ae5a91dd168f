"""Jobs of `torchrun` as a user has them: two ranks on this machine, killed, stopped, restarted, gone on with."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from idarts.engine import checkpoint

LAUNCH = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
SMALL = ["--preset", "smoke", "--channels", "4", "--batch", "16", "--rounds", "8", "--checkpoint-rounds", "2"]


def command(out, *torchrun, task=("search", *SMALL)):
    return [*LAUNCH, *torchrun, "-m", "idarts", *task, "--out", str(out)]


def started(arguments):
    env = os.environ | {"OMP_NUM_THREADS": "1"}
    return subprocess.Popen(arguments, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def until_rounds(job, out, rounds):
    for _ in range(4800):
        if job.poll() is not None or len(log(out)) >= rounds:
            return
        time.sleep(0.05)


def log(out):
    """The log without the time that it took."""
    path = out / "metrics.jsonl"
    lines = [line for line in path.read_text().splitlines() if line.endswith("}")] if path.exists() else []
    return [
        {key: value for key, value in json.loads(line).items() if key not in ("seconds", "digest")} for line in lines
    ]


def ranks_of(job):
    """The processes that torchrun has started."""
    children = Path(f"/proc/{job.pid}/task/{job.pid}/children").read_text().split()
    return [int(child) for child in children if b"idarts" in Path(f"/proc/{child}/cmdline").read_bytes()]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    out = tmp_path_factory.mktemp("torchrun") / "run"
    job = started(command(out))
    shown, errors = job.communicate(timeout=200)
    assert job.returncode == 0, errors
    return out, shown, errors


def test_a_job_leaves_one_run(whole):
    out, shown, errors = whole
    assert shown.count("architecture: ") == 1  # the first rank speaks for all
    assert errors.count("round     8/8") == 1
    assert [line["number"] for line in log(out)] == list(range(1, 9))
    assert [path.name for path in sorted((out / "checkpoints").iterdir())] == ["00000006.pt", "00000008.pt"]
    assert json.loads((out / "result.json").read_text())["config"]["distributed"] == "synchronised"


def test_a_killed_rank_ends_the_others_and_torchrun_resumes_bit_for_bit(whole, tmp_path):
    out = tmp_path / "run"
    job = started(command(out, "--max-restarts", "1"))
    until_rounds(job, out, 3)
    before = ranks_of(job)
    os.kill(before[1], signal.SIGKILL)
    killed = time.monotonic()
    while Path(f"/proc/{before[0]}").exists() and Path(f"/proc/{before[0]}/stat").read_text().split()[2] != "Z":
        assert time.monotonic() - killed < 60
        time.sleep(0.05)
    _, errors = job.communicate(timeout=200)
    assert job.returncode == 0, errors
    assert log(out) == log(whole[0])
    final = [checkpoint.latest(folder / "checkpoints")[1]["net"] for folder in (out, whole[0])]
    assert all(torch.equal(final[0][key], final[1][key]) for key in final[1])
    assert not [path for path in out.rglob("*") if path.name.startswith(".") and path.name != ".lock"]


def test_asked_to_stop_all_ranks_end_at_one_round_and_one_process_continues(whole, tmp_path):
    out = tmp_path / "run"
    job = started(command(out))
    until_rounds(job, out, 3)
    job.send_signal(signal.SIGTERM)
    shown, _ = job.communicate(timeout=60)
    assert "stopped after round" in shown
    number = checkpoint.latest(out / "checkpoints")[0]
    assert 3 <= number == len(log(out)) < 8
    one = started([sys.executable, "-m", "idarts", "search", *SMALL, "--out", str(out), "--resume"])
    _, errors = one.communicate(timeout=100)
    assert one.returncode == 0, errors
    assert f"until round {number} there were 2 ranks, now 1" in errors
    assert log(out)[:number] == log(whole[0])[:number]
    assert len(log(out)) == 8
    assert log(out)[-1]["train_loss"] == pytest.approx(log(whole[0])[-1]["train_loss"], rel=0.2)


def test_a_frozen_rank_ends_the_job_on_all_ranks(tmp_path, monkeypatch):
    """Even the first one, for which the others wait while it writes a checkpoint, with much more patience."""
    monkeypatch.setenv("IDARTS_RANK_TIMEOUT", "8")
    out = tmp_path / "run"
    task = ("search", *SMALL, "--checkpoint-rounds", "1", "--rounds", "10000")
    job = started(command(out, task=task))
    until_rounds(job, out, 2)
    ranks = ranks_of(job)
    os.kill(ranks[0], signal.SIGSTOP)
    started_at = time.monotonic()
    while ranks[1] in ranks_of(job):
        assert time.monotonic() - started_at < 60
        time.sleep(0.2)
    os.kill(ranks[0], signal.SIGCONT)  # torchrun waits 30 s for a rank that is stopped
    _, errors = job.communicate(timeout=60)
    assert job.returncode != 0
    assert "rank 0 of 2 has not answered for 8 s" in errors or "did not answer" in errors
    assert checkpoint.latest(out / "checkpoints")[0] >= 1


def test_ranks_that_are_not_made_with_the_same_stop(tmp_path):
    task = f"exec {sys.executable} -m idarts search {' '.join(SMALL)} --out {tmp_path / 'run'} --seed $RANK"
    job = started([*LAUNCH, "--no-python", "bash", "-c", task])
    _, errors = job.communicate(timeout=100)
    assert job.returncode == 1
    assert "rank 1 has seed 1, but rank 0 has 0; start all ranks with the same command" in errors


TRAIN = ["train", "nas-bench-201:0", "--data", "digits", "--depth", "1", "--channels", "4", "--epochs", "2"]


def test_a_training_on_two_ranks(tmp_path):
    """Without BatchNorm's statistics being joint it is not that of one process, but it learns as well."""
    out = tmp_path / "run"
    job = started(command(out, task=[*TRAIN, "--batch", "32", "--checkpoint-rounds", "3"]))
    shown, errors = job.communicate(timeout=200)
    assert job.returncode == 0, errors
    assert shown.count("test accuracy") == 1
    result = json.loads((out / "result.json").read_text())
    assert result["test"]["images"] == 359
    assert result["accuracy"] * 359 == pytest.approx(round(result["accuracy"] * 359))  # every test image once
    assert result["accuracy"] > 0.5
    states = checkpoint.latest(out / "checkpoints", "train")[1]
    (drawn,) = states["random"]  # the CPU's generators alone
    assert states["ranks"] == len(drawn) == 2
    assert not torch.equal(*drawn)


@pytest.mark.parametrize("first", ["nope", "nas-bench-201"])
def test_a_mistake_is_reported_once_whether_all_ranks_made_it_or_only_the_last(tmp_path, first):
    choose = f"--space $([ $RANK = 0 ] && echo {first} || echo nope)"
    task = f"exec {sys.executable} -m idarts search --data digits --out {tmp_path / 'run'} {choose}"
    job = started([*LAUNCH, "--no-python", "bash", "-c", task])
    _, errors = job.communicate(timeout=100)
    assert job.returncode == 1
    assert errors.count("idarts: --space: unknown space 'nope'") == 1
