"""`idarts.search` from Python: a space on arrays, a user's own module on a task without images, streams, mistakes."""

import pytest
import torch
from torch import nn
from torch.nn.functional import mse_loss

import idarts
from idarts import Choice, InputError, derive
from idarts.data import load
from idarts.search.streams import TensorBatches


class Sequence(nn.Module):
    """Predicts the sum of what came so far: a recurrent layer can, the others cannot."""

    def __init__(self):
        super().__init__()
        self.layer = Choice(
            {"recurrent": Recurrent(), "pointwise": nn.Linear(1, 8), "nothing": Nothing()},
            name="layer",
        )
        self.head = nn.Linear(8, 1)

    def forward(self, x):
        return self.head(self.layer(x))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.step = nn.Linear(1, 8)

    def forward(self, x):
        return self.step(x).cumsum(dim=1)


class Nothing(nn.Module):
    def forward(self, x):
        return x.new_zeros(*x.shape[:2], 8)


def sums(count):
    x = torch.randn(count, 6, 1, generator=torch.Generator().manual_seed(0))
    return x, x.cumsum(dim=1)


def test_a_users_module_on_sequences_end_to_end(tmp_path):
    torch.manual_seed(0)
    model = Sequence()
    result = idarts.search(
        model,
        sums(400),
        loss=mse_loss,
        out=tmp_path / "run",
        rounds=60,
        batch=32,
        weights={"rate": 0.05, "clip": 1.0},
        alpha={"rate": 0.05},
    )
    assert result.architecture.choices == {"layer": "recurrent"}
    assert result.rounds[-1]["valid_loss"] < 0.5 * result.rounds[0]["valid_loss"]
    assert result.rounds[-1]["valid_accuracy"] is None
    plain = derive(model, result.architecture)
    assert not any("alpha" in name for name, _ in plain.named_parameters())
    assert isinstance(plain.layer, Recurrent)


def test_a_space_on_arrays(tmp_path):
    digits = load("digits")
    images, labels = digits.train.images[:200], digits.train.labels[:200]
    result = idarts.search(
        "nas-bench-201", (images, labels), out=tmp_path / "run", rounds=2, batch=16, depth=1, channels=4, seed=1
    )
    assert result.architecture.space == "nas-bench-201"
    assert len(result.rounds) == 2
    again = idarts.search(
        "nas-bench-201", (images, labels), out=tmp_path / "again", rounds=2, batch=16, depth=1, channels=4, seed=1
    )
    assert [r["alpha"] for r in again.rounds] == [r["alpha"] for r in result.rounds]


def test_streams_are_taken_as_they_are(tmp_path):
    x, y = sums(64)
    streams = TensorBatches(x, y, 8, seed=0), TensorBatches(x, y, 8, seed=1)
    result = idarts.search(Sequence(), *streams, loss=mse_loss, out=tmp_path / "run", rounds=1)
    assert streams[0].position == 5  # four weight steps and the hypergradient's batch
    assert len(result.rounds) == 1


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda out: idarts.search(nn.Linear(2, 2), sums(40), out=out), "Choice"),
        (lambda out: idarts.search(Sequence(), sums(40), method="magic", out=out), "unknown method 'magic'"),
        (lambda out: idarts.search(Sequence(), sums(40), rouds=3, out=out), "did you mean rounds"),
        (lambda out: idarts.search(Sequence(), sums(40), batch=1000, out=out), "a batch of 1000 from 20"),
        (lambda out: idarts.search("nas-bench-2001", sums(40), out=out), "images"),
        (lambda out: idarts.search(Sequence(), (sums(40)[0], sums(30)[1]), out=out), "40 inputs with 30 targets"),
        (lambda out: idarts.search(Sequence(), sums(40), device="cuda:7", out=out), "device says nothing of a model"),
        (lambda out: idarts.search("nas-bench-201", sums(40), image=16, out=out), "image says nothing of data"),
        (
            lambda out: idarts.search(Sequence(), sums(40), batch=8, selection={"rule": "trials"}, out=out),
            "no networks can be built",
        ),
    ],
)
def test_mistakes(tmp_path, call, words):
    with pytest.raises(InputError, match=words):
        call(tmp_path / "run")
    assert not (tmp_path / "run" / "config.json").exists()


def test_a_device_that_is_not_there_is_refused(tmp_path):
    images = load("digits").train.images[:64], load("digits").train.labels[:64]
    with pytest.raises(InputError, match="cuda:7"):
        idarts.search("nas-bench-201", images, device="cuda:7", out=tmp_path / "run", rounds=1, channels=4, depth=1)
