"""A data set and its parts: what every source becomes."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import torch
from torch import Tensor
from torch.utils.data import ConcatDataset, Dataset, Subset

Statistics: TypeAlias = tuple[float, ...]  # one number per channel, on the scale 0…1


@dataclass(frozen=True, eq=False)
class Images:
    """A part of a data set in memory: train, valid or test."""

    images: Tensor  # uint8 (N, C, H, W)
    labels: Tensor  # int64 (N,)
    mean: Statistics
    std: Statistics
    indices: Tensor | None = None  # of its images in the part that it was taken from; None for a whole part
    rule: Mapping[str, Any] = field(default_factory=dict)  # how it was taken from that part, as JSON types
    files: tuple[Path, ...] | None = None  # the file of each image, if it has one

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Channels, height, width of one image."""
        _, channels, height, width = self.images.shape
        return channels, height, width


@dataclass(frozen=True, eq=False)
class LazyImages:
    """A part that is read during use. `dataset[i]` is an image, a uint8 tensor of `shape`."""

    dataset: Dataset[Tensor]
    labels: Tensor
    shape: tuple[int, int, int]
    mean: Statistics
    std: Statistics
    unreadable: float = 0.0  # share of the images that may be damaged; batches leave them out
    indices: Tensor | None = None
    rule: Mapping[str, Any] = field(default_factory=dict)
    files: tuple[Path, ...] | None = None

    def __len__(self) -> int:
        return len(self.labels)


Part: TypeAlias = Images | LazyImages
SomePart = TypeVar("SomePart", bound=Part)


@dataclass(frozen=True, eq=False)
class ImageData:
    """A data set. `valid` is None unless the source has its own validation images; `split` takes some from `train`."""

    train: Part
    test: Part | None
    classes: tuple[str, ...]
    source: str
    statistics: str  # where mean and std come from
    valid: Part | None = None

    @property
    def mean(self) -> Statistics:
        return self.train.mean

    @property
    def std(self) -> Statistics:
        return self.train.std

    def describe(self, **parts: Part) -> dict[str, Any]:
        """Everything that a run records about its data, as JSON types; `parts` are those that the run made.

        >>> from idarts.data import load, split
        >>> digits = load("digits")
        >>> train, valid = split(digits.train, 0.5, seed=3)
        >>> record = digits.describe(search=train, valid=valid)
        >>> record["source"], record["image"], record["parts"]["valid"]["size"], record["parts"]["valid"]["rule"]
        ('digits', [1, 8, 8], 719, {'split': 0.5, 'seed': 3, 'part': 1})
        """
        given = {"train": self.train, "valid": self.valid, "test": self.test}
        every = {name: part for name, part in {**given, **parts}.items() if part is not None}
        return {
            "source": self.source,
            "classes": list(self.classes),
            "image": list(self.train.shape),
            "mean": list(self.mean),
            "std": list(self.std),
            "statistics": self.statistics,
            "parts": {name: _describe_part(part, len(self.classes)) for name, part in every.items()},
        }


def take(part: SomePart, indices: Tensor, rule: Mapping[str, Any]) -> SomePart:
    """The images at `indices` as a new part.

    >>> from idarts.data import load
    >>> few = take(load("digits").train, torch.tensor([5, 7]), {"why": "an example"})
    >>> len(few), few.indices.tolist()
    (2, [5, 7])
    """
    labels = part.labels[indices]
    files = None if part.files is None else tuple(part.files[index] for index in indices.tolist())
    made = replace(part, labels=labels, indices=indices, rule=rule, files=files)
    if isinstance(made, Images):
        # Index in the order of the pixels in memory: one copy per image.
        return replace(made, images=made.images.permute(0, 2, 3, 1)[indices].permute(0, 3, 1, 2))
    return replace(made, dataset=Subset(made.dataset, indices.tolist()))


def join(parts: Sequence[SomePart]) -> SomePart:
    """The images of several parts of one data set as one part, normalised as the first.

    >>> from idarts.data import load
    >>> digits = load("digits")
    >>> len(join([digits.train, digits.test])), join([digits.train]) is digits.train
    (1797, True)
    """
    first = parts[0]
    if len(parts) == 1:
        return first
    labels = torch.cat([part.labels for part in parts])
    files = None if first.files is None else tuple(file for part in parts for file in part.files or ())
    made = replace(first, labels=labels, indices=None, rule={}, files=files)
    if isinstance(made, Images):
        pixels = [part.images.permute(0, 2, 3, 1) for part in parts if isinstance(part, Images)]
        return replace(made, images=torch.cat(pixels).permute(0, 3, 1, 2))
    return replace(made, dataset=ConcatDataset([part.dataset for part in parts if isinstance(part, LazyImages)]))


def _describe_part(part: Part, classes: int) -> dict[str, Any]:
    """The indices would be most of a run's record. Rule and seed give them again, and the digest proves it."""
    facts: dict[str, Any] = {
        "size": len(part),
        "per_class": torch.bincount(part.labels, minlength=classes).tolist(),
        "in_memory": isinstance(part, Images),
    }
    if part.indices is not None:
        digest = hashlib.sha256(part.indices.to(torch.int64).numpy().tobytes()).hexdigest()
        facts |= {"rule": dict(part.rule), "indices_sha256": digest}
    return facts
