"""Metrics of a classifier: accuracy, confusion matrix, calibration."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import one_hot

BINS = 15  # of confidence, as in Guo et al., "On Calibration of Modern Neural Networks"


@dataclass(frozen=True)
class Bin:
    """Images with a confidence above `low` up to `high`: their mean confidence, and their accuracy."""

    low: float
    high: float
    count: int
    confidence: float | None
    accuracy: float | None


@dataclass(frozen=True)
class ClassScore:
    """One class: `precision` is None where it was never predicted, `recall` where it has no images."""

    label: str
    images: int
    predicted: int
    precision: float | None
    recall: float | None
    f1: float | None


def confusion(labels: Tensor, predicted: Tensor, classes: int) -> Tensor:
    """The number of images of each class (rows) that were predicted as each class (columns).

    >>> confusion(torch.tensor([0, 0, 1]), torch.tensor([0, 1, 1]), 2).tolist()
    [[1, 1], [0, 1]]
    """
    return torch.bincount(labels * classes + predicted, minlength=classes * classes).reshape(classes, classes)


def top_accuracy(probabilities: Tensor, labels: Tensor, top: int) -> float:
    """The share of images whose class is among the `top` most probable ones; ties go to the first class.

    >>> top_accuracy(torch.tensor([[0.5, 0.3, 0.2], [0.5, 0.3, 0.2]]), torch.tensor([1, 2]), 2)
    0.5
    """
    ranked = probabilities.argsort(dim=1, descending=True, stable=True)[:, :top]
    return float((ranked == labels[:, None]).any(dim=1).double().mean())


def calibration(confidence: Tensor, right: Tensor, bins: int = BINS) -> tuple[float, list[Bin]]:
    """The expected calibration error, Σ (images in the bin / images) · |accuracy − confidence|, and the bins.

    >>> error, bins = calibration(torch.tensor([0.8, 0.8]), torch.tensor([True, False]), bins=5)
    >>> round(error, 6), [one.count for one in bins]
    (0.3, [0, 0, 0, 2, 0])
    """
    edges = torch.linspace(0, 1, bins + 1, dtype=torch.float32)  # in the precision of the confidences
    place = torch.bucketize(confidence.float(), edges[1:-1].contiguous())
    share = one_hot(place, bins).double()
    counts = share.sum(dim=0)
    sums = torch.stack([confidence.double(), right.double()]) @ share
    error = float((sums[1] - sums[0]).abs().sum() / len(confidence))
    rows = zip(edges[:-1].tolist(), edges[1:].tolist(), counts.tolist(), *(sums / counts).tolist(), strict=True)
    return error, [
        Bin(round(low, 6), round(high, 6), int(count), *((mean, hit) if count else (None, None)))
        for low, high, count, mean, hit in rows
    ]


def class_scores(matrix: Tensor, labels: "tuple[str, ...] | list[str]") -> list[ClassScore]:
    """Precision, recall and F1 of every class from the confusion matrix.

    >>> class_scores(torch.tensor([[1, 1], [0, 2]]), ("cat", "dog"))[0]
    ClassScore(label='cat', images=2, predicted=1, precision=1.0, recall=0.5, f1=0.6666666666666666)
    """
    rows = zip(labels, matrix.sum(dim=1).tolist(), matrix.sum(dim=0).tolist(), matrix.diag().tolist(), strict=True)
    return [
        ClassScore(
            label,
            images,
            predicted,
            precision=right / predicted if predicted else None,
            recall=right / images if images else None,
            f1=2 * right / (images + predicted) if images + predicted else None,
        )
        for label, images, predicted, right in rows
    ]
