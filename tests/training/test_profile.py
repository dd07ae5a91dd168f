"""`idarts profile`: counts that are known, times that a clock agrees with, memory by closed forms."""

import json
import time

import pytest
import torch
from torch import nn

from idarts import InputError
from idarts.training import profile, save


def test_memory_of_a_chain_is_weights_and_the_two_largest_neighbours():
    net = nn.Sequential(nn.Flatten(), nn.Linear(16, 100), nn.ReLU(), nn.Linear(100, 2))
    weights = 16 * 100 + 100 + 100 * 2 + 2
    for batch in (1, 7):
        [found] = profile(net, (1, 4, 4), [batch], seconds=0)["batches"]
        # The images stay; a Sequential lets go of an input once its output is there.
        assert found["peak"] == 4 * (weights + batch * (16 + 100 + 100))


def test_memory_is_given_back_and_views_cost_nothing():
    class Views(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(torch.ones(1))

        def forward(self, x):
            for _ in range(5):
                x = (x * self.scale).transpose(1, 2).flip(0)
            return x

    [found] = profile(Views(), (8, 8, 1), [4], seconds=0)["batches"]
    size = 4 * 8 * 8
    # The images, the x of the step before, the product, and what flip makes of its view: no more after five steps.
    assert found["peak"] == 4 * (1 + 4 * size)


def test_counts_are_those_of_the_published_network(idarts):
    done = idarts("profile", "nas-bench-201:1462", "--batches", 1, "--seconds", 0, "--json")
    assert (done.returncode, done.err) == (0, "")
    found = json.loads(done.out)
    assert found["params"] == 1_531_546  # NAS-Bench-201's own numbers
    assert found["multiply_adds"]["conv+fc"] == 220_119_690
    assert found["image"] == [3, 32, 32]
    assert found["resident"] > 4 * found["params"]


class Sleeper(nn.Module):
    """As slow as it says, but for the first run, which is slower."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1))
        self.runs = 0

    def forward(self, x):
        if not x.is_meta:
            self.runs += 1
            time.sleep(0.02 if self.runs > 1 else 0.3)
        return x * self.weight


def test_times_are_a_clocks_and_warm():
    [found] = profile(Sleeper(), (1, 2, 2), [3], seconds=0)["batches"]
    assert 0.02 <= found["minimum"] <= found["median"] < 0.25
    assert found["runs"] >= 5
    assert found["images_per_second"] == pytest.approx(3 / found["median"])


def test_nothing_of_the_network_changes(tiny):
    net, _ = tiny("darts")
    before = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    state = torch.get_rng_state()
    profile(net, (3, 8, 8), [2], seconds=0)
    assert all(torch.equal(tensor, before[name]) for name, tensor in net.state_dict().items())
    assert torch.equal(torch.get_rng_state(), state)


def test_sizes_come_from_options_from_the_model_or_from_the_run(idarts, tiny, tmp_path):
    net, card = tiny("darts", channels=1)
    save(tmp_path / "run" / "model", net, card)
    params = sum(weights.numel() for weights in net.parameters())
    for what in (tmp_path / "run", tmp_path / "run" / "model"):
        found = json.loads(idarts("profile", what, "--batches", 1, 2, "--seconds", 0, "--json").out)
        assert found["params"] == params
        assert found["image"] == [1, 8, 8]
        assert [one["batch"] for one in found["batches"]] == [1, 2]
    sizes = ("--depth", 2, "--channels", 4, "--classes", 4, "--image", 8, "--in-channels", 1)
    same = json.loads(idarts("profile", "DARTS_V2", *sizes, "--batches", 1, "--seconds", 0, "--json").out)
    assert same["params"] == params
    wider = json.loads(idarts("profile", tmp_path / "run", "--image", 16, "--batches", 1, "--seconds", 0, "--json").out)
    assert wider["image"] == [1, 16, 16]
    assert wider["multiply_adds"]["conv+fc"] > 3 * same["multiply_adds"]["conv+fc"]


def test_a_searchs_folder_and_what_a_person_reads(idarts, tmp_path):
    from idarts.arch import parse, to_data

    (tmp_path / "result.json").write_text(json.dumps({"architecture": to_data(parse("nas-bench-201:7"))}))
    done = idarts("profile", tmp_path, "--depth", 1, "--channels", 4, "--batches", 1, "--seconds", 0, "--threads", 1)
    assert done.returncode == 0
    for words in ("nas-bench-201: depth 1, 4 channels", "parameters:", "multiply-adds:", "MiB", "1 thread)"):
        assert words in done.out


def test_mistakes_are_one_line(idarts, tiny, own, tmp_path):
    save(tmp_path / "model", *tiny("darts"))
    build, card = own
    from idarts import derive

    save(tmp_path / "own", derive(build(), card.architecture), card)
    for arguments, message in (
        (("DART_V2",), "did you mean DARTS_V2"),
        (("DARTS_V2", "--threads", 0), "--threads is 0"),
        (("DARTS_V2", "--depth", 0), "depth is 0"),
        (("DARTS_V2", "--skeleton", "mnist"), "unknown skeleton 'mnist'"),
        (("DARTS_V2", "--depth", 1, "--batches", 0), "--batches is 0, expected at least 1"),
        (("DARTS_V2", "--device", "warp"), "device is 'warp'"),
        ((tmp_path / "model", "--skeleton", "cifar"), "remove --skeleton"),
        ((tmp_path / "own",), "user's own module"),
        ((tmp_path / "nowhere",), "is not an architecture"),
    ):
        done = idarts("profile", *arguments)
        assert done.returncode == 2, done
        assert message in done.err
        assert done.err.count("\n") == 1
    with pytest.raises(InputError, match="a batch of True"):
        profile(nn.Linear(2, 2), (2,), [True])
