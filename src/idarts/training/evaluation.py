"""Evaluate a network on labelled images. The results are JSON types."""

import platform
import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from os import PathLike
from typing import Any
from unicodedata import normalize

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from idarts._version import __version__
from idarts.arch import to_data
from idarts.data import Batches, ImageData, Part
from idarts.data import load as load_data
from idarts.data.loading import HOLD_OUT
from idarts.engine.intervals import wilson
from idarts.engine.ranks import all_sum
from idarts.errors import InputError
from idarts.training.card import Card, card_of
from idarts.training.choosing import choose
from idarts.training.metrics import BINS, calibration, class_scores, confusion, top_accuracy

MISTAKES = 24  # images that `examine` keeps


@dataclass(frozen=True, eq=False)
class Mistake:
    """An image that the network predicted wrongly, and its confidence."""

    image: Tensor  # uint8 (C, H, W)
    label: str
    predicted: str
    confidence: float


def data_for(
    card: Card, source: Any, root: "str | PathLike[str] | None" = None, hold_out: float = HOLD_OUT
) -> ImageData:
    """A data set in the form that the network of this card needs: image size, channels and classes must match.

    Classes are matched by name, whatever its case, or else by their order, with a warning.

    >>> from idarts.arch import parse
    >>> card = Card(parse("DARTS_V2"), None, 3, (8, 8), mean=(0.5,) * 3, std=(0.2,) * 3, labels=tuple("0123456789"))
    >>> data_for(card, "digits")
    Traceback (most recent call last):
    idarts.errors.InputError: digits has images of 1 channel, but the network needs 3; use data as in its training
    """
    height, width = card.image
    data = load_data(source, root, image=height if height == width else None, hold_out=hold_out)
    _require_shape(data, card)
    if len(data.classes) != len(card.labels):
        raise InputError(
            f"{data.source} has {len(data.classes)} classes, but the network knows {len(card.labels)}; "
            "use data with the classes of its training"
        )
    return data if data.classes == card.labels else _relabelled(card, data)


def _relabelled(card: Card, data: ImageData) -> ImageData:
    """The data with the network's labels. The case of a name changes its place in the order, but not its meaning."""
    names, known = ([normalize("NFC", label).casefold() for label in one] for one in (data.classes, card.labels))
    if len(set(known)) == len(known) and set(names) == set(known):
        places = torch.tensor([known.index(name) for name in names])

        def mapped(part: Part) -> Part:
            return replace(part, labels=places[part.labels])

        valid, test = data.valid and mapped(data.valid), data.test and mapped(data.test)
        return replace(data, train=mapped(data.train), valid=valid, test=test, classes=card.labels)
    first = next(pair for pair in zip(card.labels, data.classes, strict=True) if pair[0] != pair[1])
    warnings.warn(
        f"the classes of {data.source} have other names than the network's ({first[1]!r} for {first[0]!r}); "
        "they are matched by their order",
        UserWarning,
        stacklevel=3,
    )
    return data


def evaluate(
    net: nn.Module, data: ImageData, part: str = "test", *, batch: int = 250, bins: int = BINS
) -> dict[str, Any]:
    """Accuracy, top-5, loss, calibration, scores of every class and the confusion matrix of a loaded network.

    `test` has no image in it that the network was trained on, if the network has a record of its training; other parts
    say how many there are.

    Args:
        net: a network from `idarts.load`, or any with a `.card`. Its card says how images are normalised.
        data: what `idarts.data.load` or `data_for` returned, at the size that the network needs: `net.card.image`.
        part: `test`, `valid`, `train`, or `all` for every image of the data.
        batch: images that pass through the network at a time.
        bins: of confidence, for the calibration error.

    >>> from idarts.arch import parse
    >>> from idarts.training import card_for
    >>> data = load_data("digits")
    >>> net = nn.Sequential(nn.Flatten(), nn.Linear(64, 10))
    >>> _ = nn.init.zeros_(net[1].weight), nn.init.zeros_(net[1].bias)  # all classes are equally probable
    >>> net.card = card_for(data, parse({"schema": 1, "space": "choice", "choices": {"body": "linear"}}), None)
    >>> results = evaluate(net, data)
    >>> results["data"]["images"], round(results["loss"], 4)  # log 10
    (359, 2.3026)
    """
    return examine(net, data, part, batch=batch, bins=bins)[0]


def examine(
    net: nn.Module, data: ImageData, part: str = "test", *, batch: int = 250, bins: int = BINS
) -> tuple[dict[str, Any], list[Mistake]]:
    """What `evaluate` returns, and the most confident mistakes, the most confident first.

    >>> from idarts.arch import parse
    >>> from idarts.training import card_for
    >>> data = load_data("digits")
    >>> net = nn.Sequential(nn.Flatten(), nn.Linear(64, 10))
    >>> nn.utils.vector_to_parameters(torch.zeros(650), net.parameters())  # all images are a 0
    >>> net.card = card_for(data, parse({"schema": 1, "space": "choice", "choices": {"body": "linear"}}), None)
    >>> _, mistakes = examine(net, data)
    >>> len(mistakes), mistakes[0].image.shape, mistakes[0].predicted
    (24, torch.Size([1, 8, 8]), '0')
    """
    card = card_of(net)
    _require_shape(data, card)
    chosen = choose(net, data, part)
    logits, labels, mistakes = _outputs(net, chosen.images, card, batch)
    if logits.shape[1] != len(card.labels):
        raise InputError(f"the network has {logits.shape[1]} outputs for {len(card.labels)} labels")
    probabilities = torch.softmax(logits, dim=1)
    confidence, predicted = probabilities.max(dim=1)
    matrix = confusion(labels, predicted, len(card.labels))
    error, filled = calibration(confidence, predicted == labels, bins)
    results = {
        "architecture": to_data(card.architecture),
        "data": {
            "source": data.source,
            "part": chosen.part,
            "images": len(labels),
            "image": list(card.image),
            "left_out": chosen.left_out,
            "trained_on": chosen.trained_on,
        },
        "accuracy": float((predicted == labels).double().mean()),
        "interval": list(wilson(int((predicted == labels).sum()), len(labels))),
        "top5": top_accuracy(probabilities, labels, 5),
        "loss": float(cross_entropy(logits, labels)),
        "calibration": {"error": error, "bins": [asdict(one) for one in filled]},
        "classes": [asdict(score) for score in class_scores(matrix, card.labels)],
        "confusion": matrix.tolist(),
        "versions": {"idarts": __version__, "python": platform.python_version(), "torch": torch.__version__},
    }
    return results, mistakes


def confusions(evaluation: Mapping[str, Any], most: int = 10) -> list[tuple[str, str, int, float]]:
    """The most frequent mistakes: class, predicted class, number of images, and their share of the class.

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
    return sorted(wrong, key=lambda mistake: (-mistake[2], -mistake[3]))[:most]


def _require_shape(data: ImageData, card: Card) -> None:
    """Images of another size would pass through most networks, and none of them could be recognised as trained on."""
    channels, *size = data.train.shape
    height, width = card.image
    if channels != card.in_channels:
        raise InputError(
            f"{data.source} has images of {channels} channel{'s' if channels > 1 else ''}, but the network needs "
            f"{card.in_channels}; use data as in its training"
        )
    if tuple(size) != card.image:
        hint = f"load it with load(…, image={height})" if height == width else "use data as in its training"
        sizes = f"{size[0]} × {size[1]}, but the network needs {height} × {width}"
        raise InputError(f"{data.source} has images of {sizes}; {hint}")


@torch.no_grad()
def _outputs(net: nn.Module, part: Part, card: Card, batch: int) -> tuple[Tensor, Tensor, list[Mistake]]:
    """Logits (in double precision) and labels of all images, on the CPU, and the worst mistakes."""
    device = next(net.parameters()).device
    part = replace(part, mean=card.mean, std=card.std)
    batches = Batches(part, batch, shuffle=False, drop_last=False, device=device)
    net.eval()
    pairs, worst = [], list[Mistake]()
    for images, labels in batches.one_epoch():
        pairs.append((net(images), labels))
        worst = sorted([*worst, *_mistakes(images, *pairs[-1], card)], key=lambda one: -one.confidence)[:MISTAKES]
    logits, labels = (torch.cat(column).cpu() for column in zip(*pairs, strict=True))
    return logits.double(), labels, worst


def _mistakes(images: Tensor, logits: Tensor, labels: Tensor, card: Card) -> list[Mistake]:
    """The most confident mistakes of a batch; its images are normalised, and become pixels again."""
    if logits.shape[1] != len(card.labels):
        return []  # an error later
    confidence, predicted = torch.softmax(logits.double(), dim=1).max(dim=1)
    wrong = torch.where(predicted == labels, -1.0, confidence).topk(min(MISTAKES, len(labels)))
    chosen = wrong.indices[wrong.values >= 0]
    mean, std = (torch.tensor(one, device=images.device).reshape(-1, 1, 1) for one in (card.mean, card.std))
    pixels = ((images[chosen].float() * std + mean) * 255).round().clamp(0, 255).to(torch.uint8).cpu()
    facts = zip(pixels, labels[chosen].tolist(), predicted[chosen].tolist(), confidence[chosen].tolist(), strict=True)
    return [Mistake(image, card.labels[true], card.labels[taken], sure) for image, true, taken, sure in facts]


@torch.no_grad()
def loss_and_accuracy(net: nn.Module, batches: Batches) -> tuple[float, float]:
    """Loss and accuracy of one pass, in evaluation mode and full precision; on several ranks, of all passes together.

    >>> test = Batches(load_data("digits").test, 100, shuffle=False, drop_last=False)
    >>> net = nn.Sequential(nn.Flatten(), nn.Linear(64, 10))
    >>> nn.utils.vector_to_parameters(torch.zeros(650), net.parameters())
    >>> round(loss_and_accuracy(net, test)[0], 4)  # log 10
    2.3026
    """
    net.eval()
    sums = []
    for images, labels in batches.one_epoch():
        logits = net(images)
        right = (logits.argmax(dim=1) == labels).sum()
        count = torch.full_like(right, len(labels))
        sums.append(torch.stack([cross_entropy(logits, labels, reduction="sum").double(), right.double(), count]))
    loss, right, count = all_sum(torch.stack(sums).sum(dim=0)).tolist()
    return loss / count, right / count
