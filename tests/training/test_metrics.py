"""Metrics against scikit-learn, against plain loops, and where the answer is known beforehand."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, confusion_matrix, precision_recall_fscore_support, top_k_accuracy_score

from idarts.training.metrics import calibration, class_scores, confusion, top_accuracy


def drawn(classes, images=200, seed=0):
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, classes, (images,), generator=generator)
    scores = torch.randn(images, classes, generator=generator)
    scores[torch.arange(images), labels] += 1
    return torch.softmax(scores, dim=1), labels


@pytest.mark.parametrize("classes", [2, 3, 10, 50])
def test_they_agree_with_scikit_learn(classes):
    probabilities, labels = drawn(classes)
    predicted = probabilities.argmax(dim=1)
    matrix = confusion(labels, predicted, classes)
    assert matrix.tolist() == confusion_matrix(labels, predicted, labels=range(classes)).tolist()
    assert float(matrix.diag().sum()) / len(labels) == accuracy_score(labels, predicted)
    if classes > 5:
        expected = top_k_accuracy_score(labels, probabilities, k=5, labels=range(classes))
        assert top_accuracy(probabilities, labels, 5) == pytest.approx(expected)
    precision, recall, f1, images = precision_recall_fscore_support(
        labels, predicted, labels=range(classes), zero_division=0
    )
    found = class_scores(matrix, [str(place) for place in range(classes)])
    assert [score.images for score in found] == images.tolist()
    assert [score.precision or 0 for score in found] == pytest.approx(precision.tolist())
    assert [score.recall or 0 for score in found] == pytest.approx(recall.tolist())
    assert [score.f1 or 0 for score in found] == pytest.approx(f1.tolist())


def test_classes_that_nobody_named_or_that_have_no_images():
    never, absent, plain = class_scores(torch.tensor([[0, 0, 2], [0, 0, 0], [0, 1, 3]]), ["never", "absent", "plain"])
    assert (never.precision, never.recall, never.f1) == (None, 0.0, 0.0)
    assert (absent.precision, absent.recall, absent.f1) == (0.0, None, 0.0)
    assert (plain.precision, plain.recall) == (3 / 5, 3 / 4)
    [nothing] = class_scores(torch.tensor([[0]]), ["nothing"])
    assert (nothing.precision, nothing.recall, nothing.f1) == (None, None, None)


def test_all_among_five_where_there_are_fewer_classes():
    probabilities, labels = drawn(3)
    assert top_accuracy(probabilities, labels, 5) == 1.0


def test_equal_probabilities_do_not_count_twice():
    same = torch.full((4, 10), 0.1)
    assert top_accuracy(same, torch.tensor([0, 4, 5, 9]), 5) == 0.5


def loop(confidence, right, bins):
    """The definition, image by image."""
    groups = [[] for _ in range(bins)]
    for sure, hit in zip(confidence, right, strict=True):
        place = next(place for place in range(bins) if sure <= (place + 1) / bins or place == bins - 1)
        groups[place].append((sure, hit))
    gaps = [abs(sum(hit for _, hit in group) - sum(sure for sure, _ in group)) for group in groups]
    return sum(gaps) / len(confidence), [len(group) for group in groups]


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.tuples(st.floats(2**-10, 1 - 2**-10, width=32), st.booleans()), min_size=1, max_size=60),
    st.integers(1, 20),
)
def test_calibration_is_its_definition(pairs, bins):
    # A value on the edge of two bins may fall into either by rounding; such draws say nothing.
    pairs = [(sure, hit) for sure, hit in pairs if abs(sure * bins - round(sure * bins)) > 1e-4] or [(0.0345, True)]
    confidence, right = zip(*pairs, strict=True)
    error, found = calibration(torch.tensor(confidence), torch.tensor(right), bins)
    expected, counts = loop(confidence, right, bins)
    assert error == pytest.approx(expected, abs=1e-6)
    assert [one.count for one in found] == counts
    assert all((one.accuracy is None) == (one.count == 0) for one in found)


def test_calibration_where_it_is_known():
    ones = torch.ones(10)
    assert calibration(ones, torch.ones(10, dtype=torch.bool))[0] == 0  # always sure, always right
    assert calibration(ones, torch.zeros(10, dtype=torch.bool))[0] == 1  # always sure, never right
    right = torch.arange(1000) % 4 != 0
    assert calibration(torch.full((1000,), 0.75), right)[0] == pytest.approx(0, abs=1e-6)  # as sure as it may be
    error, bins = calibration(torch.tensor([0.25, 0.5, 0.75, 1.0]), torch.tensor([True] * 4), 4)
    assert error == pytest.approx((0.75 + 0.5 + 0.25 + 0) / 4)
    assert [one.count for one in bins] == [1, 1, 1, 1]  # an edge belongs to the bin below it
    assert [one.confidence for one in bins] == pytest.approx([0.25, 0.5, 0.75, 1.0])
    assert math.isclose(bins[0].high, 0.25)
