"""Splits are disjoint, complete, in proportion, and the same every time."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from idarts.data import Images, load, official_split, split, split_at
from idarts.errors import InputError


def part_of(labels: list[int]) -> Images:
    images = torch.arange(len(labels), dtype=torch.uint8)[:, None, None, None].expand(-1, 1, 2, 2)
    return Images(images, torch.tensor(labels), (0.5,), (0.25,))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 4), min_size=4, max_size=120), st.floats(0.2, 0.8), st.integers(0, 2**31))
def test_a_share_is_disjoint_complete_and_stratified(labels, share, seed):
    part = part_of(labels)
    first, second = split(part, share, seed=seed)
    assert sorted(first.indices.tolist() + second.indices.tolist()) == list(range(len(labels)))
    assert abs(len(first) - share * len(labels)) <= 0.5 + 1e-6
    for label in set(labels):
        wanted = labels.count(label) * len(first) / len(labels)
        assert abs(int((first.labels == label).sum()) - wanted) < 1
    for one in (first, second):
        assert one.images[:, 0, 0, 0].tolist() == one.indices.tolist()
        assert one.labels.tolist() == [labels[i] for i in one.indices.tolist()]


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_counts_are_met_exactly(data):
    labels = data.draw(st.lists(st.integers(0, 3), min_size=4, max_size=80))
    first = data.draw(st.integers(1, len(labels) - 1))
    second = data.draw(st.integers(1, len(labels) - first))
    one, two = split(part_of(labels), (first, second), seed=3)
    assert (len(one), len(two)) == (first, second)
    assert not set(one.indices.tolist()) & set(two.indices.tolist())


@pytest.mark.parametrize(
    ("labels", "counts"), [([0, 1, 0, 1, 0, 1], [2, 1]), ([2, 1, 0] * 2, [1, 1, 1]), ([1, 0], [1])]
)
def test_equal_remainders_go_to_the_first_classes(labels, counts):
    first, second = split(part_of(labels), 0.5)
    assert first.labels.bincount().tolist() == counts
    assert (first.labels.bincount(minlength=3) + second.labels.bincount(minlength=3)).tolist() == [
        labels.count(label) for label in range(3)
    ]


def test_the_seed_decides_and_the_global_generator_does_not():
    part = load("digits").train
    torch.manual_seed(1)
    before = torch.get_rng_state()
    first = split(part, 0.5, seed=7)[0].indices
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(2)
    assert torch.equal(split(part, 0.5, seed=7)[0].indices, first)
    assert not torch.equal(split(part, 0.5, seed=8)[0].indices, first)


@pytest.mark.parametrize(
    ("how", "words"),
    [
        (0.0, "leaves a part empty"),
        (1.0, "leaves a part empty"),
        (0.01, "leaves a part empty"),
        (True, "neither"),
        ((5, 6), "5 + 6 images are more than the 10 that there are"),
        ((5,), "neither"),
        ((0, 5), "neither"),
        ("half", "neither"),
    ],
)
def test_impossible_splits(how, words):
    with pytest.raises(InputError, match=words.replace("+", r"\+")):
        split(part_of([0, 1] * 5), how)


def test_given_indices_are_checked():
    part = part_of([0, 1] * 5)
    for first, second, words in [
        ([0, 1], [1, 2], "1 images are in both parts"),
        ([0, 10], [1], "index 10 is out of range"),
        ([0, 0], [1], "an index occurs twice"),
        ([], [1], "empty"),
        ([0.5], [1], "a non-empty list of integers"),
    ]:
        with pytest.raises(InputError, match=words):
            split_at(part, first, second)


def test_official_splits(tmp_path):
    np.savez(
        tmp_path / "nasbench201_dataset_splits.npz",
        cifar10__train=np.array([0, 3], np.uint32),
        cifar10__valid=np.array([1, 2], np.uint32),
        cifar100_test__xvalid=np.array([4], np.uint32),
        cifar100_test__xtest=np.array([5], np.uint32),
    )
    part = part_of([0, 1] * 5)
    train, valid = official_split(part, "cifar10", tmp_path)
    assert (train.indices.tolist(), valid.indices.tolist()) == ([0, 3], [1, 2])
    assert train.rule == {"split": "NAS-Bench-201 cifar10", "part": 0}
    assert official_split(part, "cifar100_test", tmp_path)[1].indices.tolist() == [5]
    with pytest.raises(InputError, match="has no split 'cifar11', expected one of cifar10, cifar100_test"):
        official_split(part, "cifar11", tmp_path)
