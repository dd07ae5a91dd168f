"""What a source gives: images and labels by part, not yet checked, and the options with which `load` reads them."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from torch import Tensor
from torch.utils.data import Dataset

from idarts.data.record import Statistics

Layout: TypeAlias = Literal["auto", "NCHW", "NHWC"]


@dataclass(frozen=True)
class Options:
    """How `load` reads images: its keywords of the same names."""

    image: int | None = None
    classes: tuple[str, ...] | None = None
    layout: Layout = "auto"
    unreadable: float = 0.05
    memory: int = 2**31


@dataclass(frozen=True)
class Raw:
    """`parts` maps train, valid or test to (images, labels), as arrays or tensors; a `Reader` has its own labels.

    `classes` are the names of the classes, and `statistics` is a published mean and standard deviation, if known.

    >>> Raw({"train": ([[[0, 255]]], [1])}).classes is None
    True
    """

    parts: Mapping[str, tuple[Any, Any]]
    classes: tuple[str, ...] | None = None
    statistics: tuple[Statistics, Statistics] | None = None


class Reader(ABC):
    """Images that must be read one by one: into memory if they fit, else during use."""

    may_skip = False  # whether unreadable images may be left out
    files: Sequence[Path] | None = None  # of the images that `read` or `open` returned, if each has one

    @abstractmethod
    def size(self, options: Options) -> int:
        """Bytes of all pixels."""

    @abstractmethod
    def read(self, options: Options) -> tuple[Tensor, Any]:
        """All images, uint8 (N, C, H, W), and their labels."""

    @abstractmethod
    def open(self, options: Options) -> tuple[Dataset[Tensor], Any]:
        """A Dataset of the images, uint8 (C, H, W), and their labels."""

    def is_random(self) -> bool:
        """Whether an image changes from one reading to the next, so that it must be read in every epoch."""
        return False
