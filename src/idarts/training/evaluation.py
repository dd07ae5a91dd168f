"""A network on labelled images: everything that a person asks of it, as one record of JSON types."""

import platform
import warnings
from collections.abc import Mapping
from dataclasses import asdict, replace
from os import PathLike
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from idarts._version import __version__
from idarts.arch import to_data
from idarts.data import Batches, ImageData, Part
from idarts.data import load as load_data
from idarts.errors import InputError
from idarts.training.card import Card, card_of
from idarts.training.metrics import BINS, calibration, class_scores, confusion, top_accuracy

PARTS = ("test", "valid", "train")


def data_for(card: Card, source: Any, root: "str | PathLike[str] | None" = None) -> ImageData:
    """A data set as the network of this card takes it: images of its size, as many channels and classes.

    >>> from idarts.arch import parse
    >>> card = Card(parse("DARTS_V2"), None, 3, (8, 8), mean=(0.5,) * 3, std=(0.2,) * 3, labels=tuple("0123456789"))
    >>> data_for(card, "digits")
    Traceback (most recent call last):
    idarts.errors.InputError: digits has images of 1 channel, but the network takes 3; use data like those of training
    """
    height, width = card.image
    data = load_data(source, root, image=height if height == width else None)
    channels, *size = data.train.shape
    if channels != card.in_channels:
        said = f"{channels} channel{'s' if channels > 1 else ''}"
        raise InputError(
            f"{data.source} has images of {said}, but the network takes {card.in_channels}; "
            "use data like those of training"
        )
    if tuple(size) != card.image:
        raise InputError(f"{data.source} has images of {size[0]} × {size[1]}, but the network takes {height} × {width}")
    if len(data.classes) != len(card.labels):
        raise InputError(
            f"{data.source} has {len(data.classes)} classes, but the network knows {len(card.labels)}; "
            "use data with the classes of training"
        )
    if data.classes != card.labels:
        first = next(pair for pair in zip(card.labels, data.classes, strict=True) if pair[0] != pair[1])
        warnings.warn(
            f"the classes of {data.source} have other names than the network's ({first[1]!r} for {first[0]!r}); "
            "they are taken in their order",
            UserWarning,
            stacklevel=2,
        )
    return data


def evaluate(
    net: nn.Module, data: ImageData, part: str = "test", *, batch: int = 250, bins: int = BINS
) -> dict[str, Any]:
    """Accuracy, top-5, loss, calibration, every class and all confusions of a network that `idarts.load` gave.

    `part` is one of `PARTS`. Images are normalised by the network's own mean and standard deviation.

    >>> from idarts.arch import parse
    >>> from idarts.training import card_for
    >>> data = load_data("digits")
    >>> net = nn.Sequential(nn.Flatten(), nn.Linear(64, 10))
    >>> _ = nn.init.zeros_(net[1].weight), nn.init.zeros_(net[1].bias)  # knows nothing, and says so
    >>> net.card = card_for(data, parse({"schema": 1, "space": "choice", "choices": {"body": "linear"}}), None)
    >>> found = evaluate(net, data)
    >>> found["data"]["images"], round(found["loss"], 4)  # log 10
    (359, 2.3026)
    """
    card = card_of(net)
    logits, labels = _outputs(net, _part(data, part), card, batch)
    if logits.shape[1] != len(card.labels):
        raise InputError(f"the network gives {logits.shape[1]} outputs for {len(card.labels)} labels")
    probabilities = torch.softmax(logits, dim=1)
    confidence, predicted = probabilities.max(dim=1)
    matrix = confusion(labels, predicted, len(card.labels))
    error, found = calibration(confidence, predicted == labels, bins)
    return {
        "architecture": to_data(card.architecture),
        "data": {"source": data.source, "part": part, "images": len(labels), "image": list(card.image)},
        "accuracy": float((predicted == labels).double().mean()),
        "top5": top_accuracy(probabilities, labels, 5),
        "loss": float(cross_entropy(logits, labels)),
        "calibration": {"error": error, "bins": [asdict(one) for one in found]},
        "classes": [asdict(score) for score in class_scores(matrix, card.labels)],
        "confusion": matrix.tolist(),
        "versions": {"idarts": __version__, "python": platform.python_version(), "torch": torch.__version__},
    }


def confusions(evaluation: Mapping[str, Any], most: int = 10) -> list[tuple[str, str, int, float]]:
    """The most frequent mistakes: class, what it was taken for, how often, and in what share of its images.

    >>> classes = [{"label": "cat", "images": 4}, {"label": "dog", "images": 2}]
    >>> confusions({"classes": classes, "confusion": [[3, 1], [0, 2]]})
    [('cat', 'dog', 1, 0.25)]
    """
    classes = evaluation["classes"]
    wrong = [
        (true["label"], classes[column]["label"], count, count / true["images"])
        for row, (true, counts) in enumerate(zip(classes, evaluation["confusion"], strict=True))
        for column, count in enumerate(counts)
        if count and column != row
    ]
    return sorted(wrong, key=lambda found: (-found[2], -found[3]))[:most]


def _part(data: ImageData, part: str) -> Part:
    if part not in PARTS:
        raise InputError(f"unknown part {part!r}, expected one of {', '.join(PARTS)}")
    found: Part | None = getattr(data, part)
    if found is None:
        have = " and ".join(name for name in PARTS if getattr(data, name) is not None)
        raise InputError(f"{data.source} has no {part} images, only {have}")
    return found


@torch.no_grad()
def _outputs(net: nn.Module, part: Part, card: Card, batch: int) -> tuple[Tensor, Tensor]:
    """Logits, in double precision, and labels of all images, on the host."""
    device = next(net.parameters()).device
    part = replace(part, mean=card.mean, std=card.std)
    batches = Batches(part, batch, shuffle=False, drop_last=False, device=device)
    net.eval()
    pairs = [(net(images), labels) for images, labels in batches.one_epoch()]
    logits, labels = (torch.cat(column).cpu() for column in zip(*pairs, strict=True))
    return logits.double(), labels
