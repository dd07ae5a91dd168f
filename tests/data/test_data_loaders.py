"""DataLoaders as data: what they stand for, and what is refused because a run could not resume."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import (
    DataLoader,
    IterableDataset,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
)

import idarts
from idarts import Choice, InputError
from idarts.data import load


def pairs(count=40):
    images = torch.from_numpy(np.random.default_rng(0).integers(0, 256, (count, 1, 8, 8), dtype=np.uint8))
    return TensorDataset(images, torch.arange(count) % 2)


@pytest.mark.parametrize("options", [{}, {"shuffle": True, "batch_size": 7}, {"drop_last": True, "batch_size": 3}])
def test_a_loader_is_its_dataset(options):
    data, plain = load(DataLoader(pairs(), **options)), load(pairs())
    assert torch.equal(data.train.images, plain.train.images)
    assert torch.equal(data.test.labels, plain.test.labels)
    assert data.source == plain.source


def test_two_loaders_are_training_and_test_images():
    data = load((DataLoader(pairs(40), shuffle=True), DataLoader(pairs(10))))
    assert (len(data.train), len(data.test)) == (40, 10)


def test_a_random_subset_is_that_subset():
    """As the official code of DARTS halves its training images."""
    data = load(DataLoader(pairs(), sampler=SubsetRandomSampler([5, 7, 8, 2])), hold_out=0)
    assert torch.equal(data.train.images, pairs().tensors[0][[5, 7, 8, 2]])


class Endless(IterableDataset):
    def __iter__(self):
        yield from pairs()


@pytest.mark.parametrize(
    ("loader", "message"),
    [
        (lambda: DataLoader(Endless()), "IterableDataset cannot be resumed; give a map-style Dataset"),
        (lambda: DataLoader(pairs(), collate_fn=list), "with its own collate_fn cannot be resumed"),
        (lambda: DataLoader(pairs(), batch_sampler=[[0, 1], [2]]), "with its own batches cannot be resumed"),
        (lambda: DataLoader(pairs(), batch_size=None), "with its own collate_fn cannot be resumed"),
        (lambda: DataLoader(pairs(), sampler=WeightedRandomSampler([1.0] * 40, 9)), "with its own WeightedRandom"),
        (lambda: DataLoader(pairs(), sampler=[3, 1, 2]), "with its own list cannot be resumed"),
    ],
)
def test_what_cannot_be_resumed_is_refused(loader, message):
    with pytest.raises(InputError, match=message) as caught:
        load(loader())
    assert "\n" not in str(caught.value)


def test_train_and_search_take_loaders(tmp_path):
    sizes = {"depth": 1, "channels": 4, "batch": 8}
    done = idarts.train("nas-bench-201:0", DataLoader(pairs()), out=tmp_path / "train", epochs=1, **sizes)
    assert done.accuracy is not None
    loader = DataLoader(pairs(), shuffle=True)
    select = {"rule": "argmax"}
    idarts.search("nas-bench-201", loader, out=tmp_path / "a", rounds=1, selection=select, **sizes)
    body = Choice({"line": nn.Linear(3, 1), "free": nn.Linear(3, 1, bias=False)}, name="layer")
    numbers = DataLoader(TensorDataset(torch.randn(32, 3), torch.randn(32, 1)))
    mse = nn.functional.mse_loss
    found = idarts.search(body, numbers, numbers, loss=mse, out=tmp_path / "b", rounds=1, batch=8, selection=select)
    assert set(found.architecture.choices) == {"layer"}
