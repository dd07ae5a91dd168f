"""The card of a trained network, a model folder's `config.json`: all that is needed to build and use it again."""

import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from math import isfinite
from os import PathLike, fspath
from reprlib import repr as short
from typing import Any

import torch
from torch import nn

from idarts._version import __version__
from idarts.arch import Architecture, from_data, to_data
from idarts.data import ImageData
from idarts.errors import InputError
from idarts.spaces import Skeleton

FORMAT = "idarts-model-1"
COLOURS = {1: "grey", 3: "RGB"}  # channels → the colour mode that image files are converted to
_INPUT = "float32 (N, C, H, W): (pixels / 255 - mean) / std"


@dataclass(frozen=True)
class Card:
    """A network's architecture, skeleton, preprocessing and labels; `trained` holds facts for readers.

    `image` is height and width in pixels. `macro` is None for a user's own module, which only its author can build.

    >>> from idarts.arch import parse
    >>> from idarts.spaces import SPACES
    >>> skeleton = SPACES["darts"].resolve(depth=2, channels=4, classes=2)
    >>> card = Card(parse("DARTS_V2"), skeleton, 1, (32, 32), mean=(0.5,), std=(0.25,), labels=("cat", "dog"))
    >>> Card(parse("DARTS_V2"), skeleton, 3, (32, 32), mean=(0.5,), std=(0.25,), labels=("cat", "dog"))
    Traceback (most recent call last):
    idarts.errors.InputError: mean is (0.5,), expected one finite number for each of 3 channels
    """

    architecture: Architecture
    macro: Skeleton | None
    in_channels: int
    image: tuple[int, int]
    mean: tuple[float, ...]
    std: tuple[float, ...]
    labels: tuple[str, ...]
    trained: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not _is_count(self.in_channels):
            raise InputError(f"in_channels is {short(self.in_channels)}, expected a whole number of at least 1")
        if not _is_tuple(self.image) or len(self.image) != 2 or not all(map(_is_count, self.image)):
            raise InputError(f"image is {short(self.image)}, expected height and width in pixels")
        for name, values in (("mean", self.mean), ("std", self.std)):
            if not _is_tuple(values) or len(values) != self.in_channels or not all(map(_is_finite, values)):
                expected = f"one finite number for each of {self.in_channels} channels"
                raise InputError(f"{name} is {short(values)}, expected {expected}")
        if min(self.std) <= 0:
            raise InputError(f"std is {short(self.std)}, expected numbers above 0")
        if not _is_tuple(self.labels) or not self.labels or not all(isinstance(label, str) for label in self.labels):
            raise InputError(f"labels are {short(self.labels)}, expected the names of the classes")
        if self.macro is not None and len(self.labels) != self.macro.classes:
            raise InputError(f"there are {len(self.labels)} labels for {self.macro.classes} classes, expected one each")

    def to_data(self) -> dict[str, Any]:
        """The card as JSON types: the content of `config.json`."""
        return {
            "format": FORMAT,
            **self.network(),
            "auxiliary": False,
            "preprocessing": self.preprocessing(),
            "labels": list(self.labels),
            "trained": dict(self.trained),
            "versions": {"idarts": __version__, "python": platform.python_version(), "torch": torch.__version__},
        }

    def preprocessing(self) -> dict[str, Any]:
        """How an image becomes the network's input."""
        return {
            "image": list(self.image),
            "colour": COLOURS.get(self.in_channels),
            "resize": "bilinear",
            "mean": list(self.mean),
            "std": list(self.std),
            "input": _INPUT,
        }

    def network(self) -> dict[str, Any]:
        """The part of the card that decides which network the weights belong to."""
        skeleton = None if self.macro is None else asdict(self.macro)
        return {"architecture": to_data(self.architecture), "macro": skeleton, "in_channels": self.in_channels}


def card_for(
    data: ImageData, architecture: Architecture, macro: Skeleton | None, trained: Mapping[str, Any] | None = None
) -> Card:
    """The card of a network that was trained on this data.

    >>> from idarts.arch import parse
    >>> from idarts.data import load
    >>> from idarts.spaces import SPACES
    >>> card = card_for(load("digits"), parse("DARTS_V2"), SPACES["darts"].skeletons["cifar"])
    >>> card.in_channels, card.image, card.labels[:2]
    (1, (8, 8), ('0', '1'))
    """
    channels, height, width = data.train.shape
    return Card(architecture, macro, channels, (height, width), data.mean, data.std, data.classes, trained or {})


def card_of(net: nn.Module) -> Card:
    """The card of a loaded network.

    >>> card_of(nn.Identity())
    Traceback (most recent call last):
    idarts.errors.InputError: the network has no card, expected a network from idarts.load
    >>> card_of("runs/pets")
    Traceback (most recent call last):
    idarts.errors.InputError: 'runs/pets' is a path, expected a network; load it first: idarts.load('runs/pets')
    """
    if isinstance(net, str | PathLike):
        name = fspath(net)
        raise InputError(f"{name!r} is a path, expected a network; load it first: idarts.load({name!r})")
    card = getattr(net, "card", None)
    if not isinstance(card, Card):
        raise InputError("the network has no card, expected a network from idarts.load")
    return card


def card_from(data: Any) -> Card:
    """The card that `to_data` wrote; for anything else an InputError names the wrong key.

    >>> card_from({"format": "idarts-model-2"})
    Traceback (most recent call last):
    idarts.errors.InputError: format is 'idarts-model-2', expected 'idarts-model-1'
    """
    if not isinstance(data, Mapping):
        raise InputError(f"it is {short(data)}, expected an object with keys")
    if data.get("format") != FORMAT:
        raise InputError(f"format is {short(data.get('format'))}, expected {FORMAT!r}")
    keys = ("architecture", "macro", "in_channels", "preprocessing", "labels")
    architecture, skeleton, in_channels, preprocessing, labels = _values("it", data, keys)
    if data.get("auxiliary", False) is not False:
        raise InputError(
            f"auxiliary is {short(data['auxiliary'])}, expected false: a saved network has no auxiliary head"
        )
    image, mean, std = _values("preprocessing", preprocessing, ("image", "mean", "std"))
    trained = data.get("trained", {})
    if not isinstance(trained, Mapping):
        raise InputError(f"trained is {short(trained)}, expected an object with keys")
    macro = None if skeleton is None else _macro(skeleton)
    image, mean, std, labels = (
        tuple(value) if isinstance(value, list) else value for value in (image, mean, std, labels)
    )
    return Card(from_data(architecture), macro, in_channels, image, mean, std, labels, trained)


def _values(where: str, data: Any, keys: Sequence[str]) -> list[Any]:
    if not isinstance(data, Mapping):
        raise InputError(f"{where} is {short(data)}, expected an object with keys")
    for key in keys:
        if key not in data:
            raise InputError(f"{where} lacks the key {key!r}, expected {', '.join(keys)}")
    return [data[key] for key in keys]


def _macro(data: Any) -> Skeleton:
    names = [part.name for part in fields(Skeleton)]
    values = _values("macro", data, names)
    if len(data) > len(names) or not isinstance(data["large"], bool):
        raise InputError(f"macro is {short(dict(data))}, expected only {', '.join(names)}")
    return Skeleton(*values)


def _is_tuple(value: Any) -> bool:
    return isinstance(value, tuple)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _is_finite(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
