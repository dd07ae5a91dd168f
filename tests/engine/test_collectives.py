"""Each function between ranks alone, on two real Gloo ranks, against numbers added by hand."""

import os
import subprocess
import sys
import threading
import time
from datetime import timedelta
from pathlib import Path

import pytest
import torch
from few_collectives import IMAGES
from test_ranks import free_port
from torch.distributed import HashStore

from idarts.engine.ranks import restarted, watch

SCRIPT = Path(__file__).with_name("few_collectives.py")


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """What each rank has found, and what it wrote to its standard error."""
    out = tmp_path_factory.mktemp("ranks")
    group = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_port(), "IDARTS_RANK_TIMEOUT": "20"}
    jobs = [
        subprocess.Popen(
            [sys.executable, str(SCRIPT), str(out)],
            env=os.environ | {"OMP_NUM_THREADS": "1", "RANK": str(rank), "LOCAL_RANK": str(rank)} | group,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in (0, 1)
    ]
    errors = [job.communicate(timeout=60)[1] for job in jobs]
    assert [job.returncode for job in jobs] == [0, 0], errors
    return [torch.load(out / f"{rank}.pt") for rank in (0, 1)], errors


@pytest.fixture(scope="module")
def found(ran):
    return ran[0]


def test_places(found):
    assert [part["place"] for part in found] == [(0, 2, 0, (0, 2)), (1, 2, 1, (1, 2))]
    assert all("7 cannot be divided evenly over 2 ranks" in part["uneven"][1] for part in found)
    assert [part["afterwards"] for part in found] == [(0, 1, 0)] * 2


def test_sums_means_and_what_they_send(found):
    for rank, part in enumerate(found):
        sums = part["sums"]
        assert (sums["sum"], sums["mean"]) == ([3.0, 30.0], [1.5, 15.0])
        assert sums["mine"] == [1.0 + rank, 10.0 + 10 * rank]
        assert (sums["inner"], sums["outer"]) == ((1, 16), (3, 8 + 16 + 4))


def test_gradients_and_measures_in_one_collective(found):
    for part in found:
        first, none, third = part["gradients"]["means"]
        assert (first.tolist(), none, third.tolist()) == ([[1.5], [1.5]], None, 2.0)
        assert (first.dtype, third.dtype) == (torch.float32, torch.float64)
        assert part["gradients"]["seen"].tolist() == [1.0, 6.0]
        assert part["gradients"]["calls"] == 1


def test_buffers_are_averaged_and_modules_copied_from_the_first(found):
    for rank, part in enumerate(found):
        own = [5 + 2 * rank]
        running = {"running_mean": [6.0], "running_var": [6.0]}
        assert part["buffers"]["averaged"] == {"weight": own, "bias": own, "num_batches_tracked": own} | running
        assert part["buffers"]["without"] == 0
        first = {"weight": [5.0], "bias": [5.0], "num_batches_tracked": [5]}
        assert part["buffers"]["copied"] == first | running


@pytest.mark.parametrize("joint", [True, False])
def test_statistics_of_all_ranks_or_of_each(found, joint):
    """Against torch's BatchNorm on all images at once, or on those of a rank."""
    for ranks in [(0, 1)] if joint else [(0,), (1,)]:
        x = torch.cat([IMAGES[2 * rank : 2 * rank + 2] for rank in ranks]).requires_grad_()
        y = torch.nn.BatchNorm2d(1).double()(x)
        (grad,) = torch.autograd.grad((y**3).sum(), x)
        ours = [found[rank]["normalised"][joint] for rank in ranks]
        torch.testing.assert_close(torch.cat([one["y"] for one in ours]), y.detach())
        torch.testing.assert_close(torch.cat([one["grad"] for one in ours]), grad)


def test_the_first_rank_acts_for_all(found):
    assert [part["first"]["called"] for part in found] == [[0], []]
    assert [part["first"]["answer"] for part in found] == ["from rank 0"] * 2
    assert [part["first"]["ours"] for part in found] == [("InputError", "in use")] * 2
    expected = [("ZeroDivisionError", "division by zero"), ("IdartsError", "on rank 0: division by zero")]
    assert [part["first"]["other"] for part in found] == expected


def test_values_and_flags_of_all_ranks(found):
    for part in found:
        assert part["gathered"] == [[0, 7], [1, 7]]
        assert part["flags"] == (True, True, False, True)


def test_what_differs_is_named_on_all_ranks(found):
    for part in found:
        compared = part["comparisons"]
        assert compared["facts"][1].startswith("rank 1 has data sha256:1, but rank 0 has sha256:0")
        assert compared["equal facts"] is None
        for name, error in compared["bits"].items():  # a digest sees the order, and each bit
            if name == "equal":
                assert error is None
            else:
                assert error[1].startswith("w on rank 1 differs from that of rank 0 now"), name
        assert compared["precisions"] == [True] * 3
    assert found[0]["comparisons"]["lacking"][1].startswith("rank 1 has more None, but rank 0 has 2")


def test_one_clock(found):
    first, second = (part["clocks"]["seconds"] for part in found)
    assert first == second
    assert 0.1 <= first < 1.0  # the mean of 0 and 0.2; a clock inside itself would count twice
    assert [part["clocks"]["after an error"] for part in found] == [first, second]


def test_ranks_wait_for_each_other(found):
    assert found[0]["waiting"]["left"] >= found[1]["waiting"]["arrived"]


def test_a_lost_rank_is_explained(found):
    for rank, part in enumerate(found):
        kind, text = part["explained"]
        assert kind == "IdartsError"
        assert text.startswith(f"rank {rank} of 2 waited for the others to average: one has ended, or did not answer")
        assert "20 s" in text


def test_only_the_first_rank_shows_warnings(ran):
    assert ["said once" in text for text in ran[1]] == [True, False]


@pytest.mark.parametrize(("count", "expected"), [(None, False), ("0", False), ("1", True)])
def test_a_restart_is_noticed(monkeypatch, count, expected):
    monkeypatch.delenv("TORCHELASTIC_RESTART_COUNT", raising=False)
    if count is not None:
        monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", count)
    assert restarted() is expected


class Lost:
    """The store of a job that has ended."""

    def set(self, *_):
        raise RuntimeError("connection closed")


def test_a_watch_that_hangs_does_not_keep_its_process_alive(monkeypatch):
    class Hanging:
        def set(self, *_):
            threading.Event().wait()

    monkeypatch.setattr(watch, "BEAT", 0.02)
    before = set(threading.enumerate())
    with watch.watched(Hanging(), 0, 2, timedelta(seconds=5)):
        time.sleep(0.1)
    assert [thread.daemon for thread in set(threading.enumerate()) - before] == [True]


@pytest.mark.parametrize(
    ("other", "ends"),
    [
        ("beats", None),
        ("done", None),
        ("silent", "rank 1 of 2 has not answered"),
        ("stuck", "rank 1 of 2 has not answered"),
        ("lost", "rank 0 of 2 lost the process that started the job"),
    ],
)
def test_a_watch_ends_a_rank_when_another_is_silent(monkeypatch, other, ends):
    ended, store, stop = threading.Event(), HashStore(), threading.Event()
    reasons = []
    monkeypatch.setattr(watch, "BEAT", 0.02)
    monkeypatch.setattr(watch, "_LEAVING", 0.1)
    monkeypatch.setattr(watch, "_end", lambda reason: (reasons.append(reason), ended.set(), stop.set()))

    def beat():
        count = 0
        while not stop.wait(0.02):
            count += 1
            store.set("beat 1", {"beats": str(count), "done": "done"}.get(other, "1"))

    thread = threading.Thread(target=beat, daemon=True)
    if other != "silent":
        thread.start()
    with watch.watched(Lost() if other == "lost" else store, 0, 2, timedelta(seconds=0.5)):
        ended.wait(1.0 if ends is None else 10)
    stop.set()
    if ends is None:
        assert reasons == []
        assert store.get("beat 0") == b"done"  # so that the others do not wait for it
    else:
        assert reasons[0].startswith(ends)
