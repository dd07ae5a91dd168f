"""Searches, trainings, trials and every estimator on a device that is not the CPU, where there is none: see pretend.py.

A wait is a point where the host waits for the device: a GPU then stands idle. The limits are what is needed today.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from socket import socket

import pytest
from cases import ESTIMATORS, PROPOSING, SEARCHES

from idarts.hypergrad import SOLVERS

HERE = Path(__file__).parent
# Waits in a hypergradient: two, for the diagnostics, and those of methods that decide by values.
MORE_TO_ESTIMATE = {"conjugate-gradient": 6, "exact": 3, "neumann": 3, "differences": 3}
# Waits in a weight step: none, but a drawn path must be known to the host, which starts only what is on it.
TO_TRAIN = {"gdas": 1, "parsec": 8, "en2as": 1, "enas": 6}
# Waits in an α step: diagnostics (two), and loss with accuracy.
TO_STEP = {"idarts": 4, "gdas": 4, "parsec": 10, "xnas": 4, "enas": 22, "idarts in nas-bench-1shot1-s3": 4}
# They draw on the device, whose generator is another one, or after something that did.
DRAWING = {"gdas", "drnas", "parsec", "p-darts", "setn", "enas"}


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """What the cases found, in a process of their own."""
    out = tmp_path_factory.mktemp("devices") / "found.json"
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    subprocess.run([sys.executable, str(HERE / "cases.py"), str(out)], env=environment, check=True, timeout=280)
    return json.loads(out.read_text())


def result(found, name):
    assert "error" not in found[name], found[name]["error"]
    return found[name]


def test_the_device_refuses_what_a_gpu_refuses_and_counts_every_wait(found):
    seen, mixes, waiting, free = result(found, "strict")
    assert {name: seen[name] for name in mixes} == dict.fromkeys(mixes, "refused")
    assert {name: seen[name] for name in waiting} == dict.fromkeys(waiting, 1)
    assert {name: seen[name] for name in free} == dict.fromkeys(free, 0)


def test_all_estimators_are_tried():
    assert set(SOLVERS) <= set(ESTIMATORS)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_an_estimator_on_the_device_is_that_on_the_cpu(found, name):
    seen = result(found, f"estimate {name}")
    assert seen["device"] == "pretend:0"
    assert seen["difference"] <= 1e-6
    assert len(seen["waits"][0]) <= MORE_TO_ESTIMATE.get(name, 2), seen["waits"]


@pytest.mark.parametrize("name", SEARCHES)
def test_a_search_on_the_device_waits_only_where_it_must(found, name):
    seen = result(found, f"search {name}")
    weights, step = seen["waits"]
    assert seen["device"] == "pretend:0"
    assert name in DRAWING or seen["difference"] <= 1e-4
    assert len(weights) <= TO_TRAIN.get(name, 0), weights
    assert len(step) <= TO_STEP.get(name, 3), step


@pytest.mark.parametrize("name", PROPOSING)
def test_a_search_without_a_supernet_on_the_device_is_that_on_the_cpu(found, name):
    (loss, selected), on_device = result(found, f"propose {name}")
    assert on_device == [pytest.approx(loss, abs=1e-5), selected]


def test_a_search_that_draws_on_the_device_resumes_bit_for_bit(found):
    whole, resumed = result(found, "resume")
    assert whole == resumed


def test_a_training_with_dropout_resumes_bit_for_bit_and_waits_once_a_round(found):
    (whole, resumed), waits = result(found, "train")
    assert whole == resumed
    assert len(waits) <= 2, waits  # the round's means; at the end of an epoch, the evaluation's


def test_a_trial_leaves_the_random_states_alone(found):
    assert result(found, "trial") == [True, True]


def test_two_ranks_on_the_device_agree_with_two_on_the_cpu(tmp_path):
    with socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    job = os.environ | {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "OMP_NUM_THREADS": "1"}
    outs = [tmp_path / "0.json", tmp_path / "1.json"]
    commands = [[sys.executable, str(HERE / "ranks.py"), str(out)] for out in outs]
    ranks = [subprocess.Popen(command, env=job | {"RANK": str(rank)}) for rank, command in enumerate(commands)]
    assert [rank.wait(timeout=280) for rank in ranks] == [0, 0]
    first, second = (json.loads(out.read_text()) for out in outs)
    assert first["pretend"]["alpha"] == second["pretend"]["alpha"]  # though their batches differ
    assert first["pretend"]["alpha"] == pytest.approx(first["cpu"]["alpha"], abs=1e-4)
    assert first["pretend"]["device"] == "pretend:0"
    assert first["pretend"]["calls"] == first["cpu"]["calls"] > 0
    assert first["pretend"]["waits"] == []
