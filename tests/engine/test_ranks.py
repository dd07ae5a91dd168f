"""Two real Gloo ranks against one process on the joined batch, in float64."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from two_ranks import METHODS, RUNNING, SEARCHES

from idarts.data import CIFAR, Batches, load
from idarts.engine.ranks import share, world
from idarts.errors import InputError

SCRIPT = Path(__file__).with_name("two_ranks.py")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """What one process and each of two ranks have found."""
    out = tmp_path_factory.mktemp("ranks")
    group = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_port()}
    places = [{}, *({**group, "RANK": str(rank), "LOCAL_RANK": str(rank)} for rank in (0, 1))]
    jobs = [
        subprocess.Popen(
            [sys.executable, str(SCRIPT), str(out)],
            env=os.environ | {"OMP_NUM_THREADS": "1"} | place,
            stderr=subprocess.PIPE,
            text=True,
        )
        for place in places
    ]
    errors = [job.communicate(timeout=240)[1] for job in jobs]
    assert [job.returncode for job in jobs] == [0, 0, 0], errors
    return [torch.load(out / f"{name}.pt") for name in ("alone", "0", "1")]


def close(x, y, tolerance=1e-10):
    torch.testing.assert_close(x, y, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("norm", ["plain", "norm"])
def test_synchronised_is_one_process_on_the_joined_batch(found, norm, name):
    alone, first, second = (part[norm][name] for part in found)
    close(first["grads"], alone["grads"])
    close(first["loss"], alone["loss"])
    assert torch.equal(first["grads"], second["grads"])
    assert first["step"] == second["step"]


def test_synchronised_takes_k_plus_two_collectives(found):
    calls = {name: part["calls"] for name, part in found[1]["plain"].items()}
    assert calls["first"] == 1
    assert calls["paper"] == 2 + 2
    assert calls["auto"] == 3 + 2 + 20  # and the first time, a power iteration


@pytest.mark.parametrize("name", [name for name in METHODS if name != "auto"])
def test_local_is_the_mean_of_what_each_rank_finds_alone(found, name):
    halves = [half[name]["grads"] for half in found[0]["local"]]
    close(found[1]["local"][name]["grads"], (halves[0] + halves[1]) / 2)
    assert (halves[0] - halves[1]).abs().max() > 1e-3
    assert found[1]["local"][name]["calls"] <= 2


@pytest.mark.parametrize("name", RUNNING)
def test_a_running_solution_on_two_ranks_is_that_of_one_process(found, name):
    alone, first, second = (part["followed"][name] for part in found)
    for key in ("grads", "kept"):
        close(first[key], alone[key])
        assert torch.equal(first[key], second[key])


@pytest.mark.parametrize("name", RUNNING)
def test_local_ranks_keep_one_running_solution(found, name):
    """They average one vector a call, so that with a fixed step they, too, are one process on the joined batch."""
    alone, first, second = found[0]["followed"], found[1]["local followed"], found[2]["local followed"]
    assert torch.equal(first[name]["kept"], second[name]["kept"])
    if name not in ("automatic", "amigo"):  # these two use each rank's own curvature
        close(first[name]["kept"], alone[name]["kept"])
        close(first[name]["grads"], alone[name]["grads"])


def test_local_ranks_have_one_step(found):
    alone = [half["auto"]["step"] for half in found[0]["local"]]
    steps = [part["local"]["auto"]["step"] for part in found[1:]]
    assert steps[0] == steps[1]
    assert steps[0] == pytest.approx(2 / (1 / alone[0] + 1 / alone[1]))  # of the mean eigenvalue


@pytest.mark.parametrize("name", SEARCHES)
def test_a_search_on_two_ranks_is_that_of_one_process(found, name):
    """Paths are drawn alike on all ranks, statistics are joint, rewards and scores are averaged."""
    alone, first, second = (part[name] for part in found)
    for key in ("alpha", "w", "buffers"):
        close(first[key], alone[key])
        assert torch.equal(first[key], second[key])
    torch.testing.assert_close(torch.tensor(first["losses"]), torch.tensor(alone["losses"]))
    assert first["selected"] == second["selected"] == alone["selected"]


def test_a_training_on_two_ranks_is_that_of_one_process(found):
    alone, first, second = (part["training"] for part in found)
    close(first["w"], alone["w"], 1e-5)  # in float32
    assert torch.equal(first["w"], second["w"])
    assert first["seen"] == second["seen"] == pytest.approx(alone["seen"], rel=1e-5)


def test_ranks_go_by_one_clock(found):
    _, first, second = found
    assert first["timed"]["steps"] == second["timed"]["steps"] > 3
    assert torch.equal(first["timed"]["w"], second["timed"]["w"])


def test_candidates_are_tried_by_two_ranks_as_by_one(found):
    alone, first, second = (part["tried"] for part in found)
    assert first == second
    assert first["loss"] == pytest.approx(alone["loss"], rel=1e-9)
    assert first["selected"] == alone["selected"]
    assert first["cost"] == pytest.approx(4 * (2 + 1 / 3) + 2 * (4 + 1 / 3))


@pytest.mark.parametrize("mode", ["synchronised", "local"])
def test_a_training_with_joint_statistics_is_that_of_one_process(found, mode):
    """In float32; with statistics of each rank's own it is another one."""
    alone, first, second = (part["normalised"][mode] for part in found)
    assert torch.equal(first["state"], second["state"])
    gap = (first["state"] - alone["state"]).abs().max()
    assert gap < 2e-6 if mode == "synchronised" else gap > 1e-3
    assert (first["losses"] == pytest.approx(alone["losses"], rel=1e-5)) == (mode == "synchronised")


def test_ranks_of_a_local_search_hold_the_same_state(found):
    """Though they began with different weights, and each normalises by statistics of its own."""
    first, second = (part["local search"] for part in found[1:])
    for key in ("alpha", "w", "buffers", "spectrum"):
        assert torch.equal(first[key], second[key]), key
    assert (first["alpha"] - found[0]["idarts"]["alpha"]).abs().max() > 1e-6


def test_half_precision_in_weight_steps(found):
    first, second = (part["half search"] for part in found[1:])
    assert torch.equal(first["w"], second["w"])
    assert not torch.equal(first["w"], found[0]["idarts"]["w"])


def test_another_alpha_on_one_rank_stops_all(found):
    assert found[1]["tampered"] == found[2]["tampered"]
    assert "α on rank 1 differs from that of rank 0 after round 2" in found[1]["tampered"]


def test_an_error_of_the_first_rank_is_everybodys(found):
    assert [part["refused"] for part in found[1:]] == ["the folder is in use"] * 2


def test_flags_of_any_rank_count(found):
    assert [part["flags"] for part in found[1:]] == [(True, False)] * 2


def test_a_bad_batch_on_one_rank_is_skipped_by_all(found):
    assert [part["nan"] for part in found[1:]] == [["NotFiniteError"] * 2] * 2


@pytest.mark.parametrize("ranks", [2, 3])
def test_shares_make_up_the_epoch_without_overlap(ranks):
    """Every image once, with the augmentation that one process would have given it."""
    part = load("digits").train
    whole = Batches(part, 12 * ranks, seed=5, augment=CIFAR)
    pieces = [Batches(part, 12 * ranks, seed=5, augment=CIFAR, share=(rank, ranks)) for rank in range(ranks)]
    for _ in range(len(whole) + 3):  # into the next epoch
        x, y = next(whole)
        each = [next(piece) for piece in pieces]
        assert [len(labels) for _, labels in each] == [12] * ranks
        assert torch.equal(torch.cat([images for images, _ in each]), x)
        assert torch.equal(torch.cat([labels for _, labels in each]), y)
    assert all(torch.equal(piece.state_dict()["generator"], whole.state_dict()["generator"]) for piece in pieces)


def test_every_image_is_seen_once_in_an_epoch():
    part = load("digits").train
    numbered = type(part)(part.images, torch.arange(len(part)), part.mean, part.std)
    pieces = [Batches(numbered, 64, seed=1, share=(rank, 4)) for rank in range(4)]
    seen = [int(label) for piece in pieces for _, labels in piece.one_epoch() for label in labels]
    assert len(seen) == len(set(seen)) == len(part) // 64 * 64


def test_a_batch_must_make_equal_shares(monkeypatch):
    assert share(7) == (0, 1)
    assert world() == 1
    monkeypatch.setattr("idarts.engine.ranks.group.world", lambda: 4)
    with pytest.raises(InputError, match="a batch of 10 cannot be divided evenly over 4 ranks"):
        share(10)


def test_what_ranks_are_made_with_must_be_equal(found):
    for part in found[1:]:
        assert part["unequal"].startswith("rank 1 has data sha256:1, but rank 0 has sha256:0; start all ranks with")
