"""A look at the data before anything is planned: classes, sizes, colours, copies, files that cannot be read."""

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from hashlib import blake2b, sha256
from pathlib import Path
from statistics import median
from typing import Any

import torch

from idarts.data import ImageData, Images, Part, load, take
from idarts.data.pictures import pillow
from idarts.data.raw import Raw
from idarts.data.sources import parted, read_source
from idarts.data.sources.folder import Listing
from idarts.errors import InputError

DECODED = 2000  # files that are decoded in full; of the others only the header is read
GREY = frozenset(["1", "L", "LA", "I", "I;16", "F"])  # Pillow's modes without colour


@dataclass(frozen=True)
class Look:
    """What is known about the data. `side` is the shorter side of the median image, as it is stored."""

    source: str
    classes: int
    train: int
    test: int
    fewest: int  # training images of the smallest class
    most: int  # and of the largest one
    side: int
    sizes: tuple[str, str]  # the smallest and the largest image
    channels: int  # of the arrays that a network gets
    grey: bool
    copies: int = 0  # training images that occur before in the training images
    shared: int = 0  # training images that are also test images; they are left out of the training
    unreadable: int = 0

    def lines(self) -> Iterator[str]:
        """The look in a few lines for a person.

        >>> print(*Look("folder:pets", 2, 160, 40, 80, 80, 224, ("200×180", "640×480"), 3, False).lines(), sep="\\n")
        folder:pets: 2 classes, 160 images to train on (80 in every class), 40 to test
        images of 200×180 to 640×480 pixels, in colour
        """
        same = self.fewest == self.most
        each = f"{self.fewest:,} in every class" if same else f"{self.fewest:,} to {self.most:,} in a class"
        train, test = f"{self.train:,} images to train on ({each})", f"{self.test:,} to test"
        yield f"{self.source}: {self.classes} classes, {train}, {test}"
        small, large = self.sizes
        size = small if small == large else f"{small} to {large}"
        yield f"images of {size} pixels, {'grey' if self.grey else 'in colour'}"
        for what, count in (
            ("left out because they cannot be read", self.unreadable),
            ("left out of the training because they are also test images", self.shared),
            ("training images that are copies of others", self.copies),
        ):
            if count:
                yield f"{what}: {count:,}"


@dataclass(frozen=True)
class Files:
    """What the files of a folder are like."""

    sides: tuple[tuple[int, int], ...]  # width and height
    modes: Counter[str]
    unreadable: int


def look(source: Any, root: "str | None" = None) -> tuple[Look, ImageData]:
    """Look at a data source; the data come with it, at the size that its source has by itself.

    >>> seen, data = look("digits")
    >>> seen.classes, seen.train, seen.test, seen.side, seen.grey
    (10, 1438, 359, 8, True)
    """
    data = load(source, root)
    files = look_at_files(source, root) if isinstance(source, str) and source.startswith("folder:") else None
    seen = look_at(data)
    if files is None:
        return seen, data
    sides = sorted(files.sides, key=lambda size: size[0] * size[1])
    return replace(
        seen,
        side=round(median(min(size) for size in sides)),
        sizes=("×".join(map(str, sides[0])), "×".join(map(str, sides[-1]))),
        grey=sum(count for mode, count in files.modes.items() if mode in GREY) > len(sides) / 2,
        unreadable=files.unreadable,
    ), data


def look_at(data: ImageData) -> Look:
    """The look at loaded data."""
    channels, height, width = data.train.shape
    counts = torch.bincount(data.train.labels, minlength=len(data.classes)).tolist()
    size = f"{width}×{height}"
    _require_test(data)
    return Look(
        source=data.source,
        classes=len(data.classes),
        train=len(data.train),
        test=len(data.test or ()),
        fewest=min(counts),
        most=max(counts),
        side=min(height, width),
        sizes=(size, size),
        channels=channels,
        grey=channels == 1,
        copies=len(data.train) - len(set(hashes(data.train))) if isinstance(data.train, Images) else 0,
        shared=len(shared_images(data)),
    )


def _require_test(data: ImageData) -> None:
    if data.test is None or not len(data.test):
        raise InputError(f"{data.source} has no test images, which a fit needs to measure the networks; add some")


def look_at_files(source: str, root: "str | None" = None) -> Files:
    """Sizes, colour modes and damage of the image files in a folder."""
    raw: Raw = read_source(source, root)
    files = [file for reader, _ in raw.parts.values() if isinstance(reader, Listing) for file in reader.files]
    step = -(-len(files) // DECODED)

    def read(place: int) -> tuple[tuple[int, int], str] | None:
        try:
            with pillow().open(files[place]) as picture:
                size, mode = picture.size, picture.mode
                if place % step == 0:
                    picture.draft("RGB", (64, 64))
                    picture.load()
                return size, mode
        except Exception:  # damaged bytes make a decoder raise anything
            return None

    with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
        seen = list(pool.map(read, range(len(files))))
    good = [one for one in seen if one is not None]
    if not good:
        raise InputError(f"{source}: none of {len(files)} files can be read as an image")
    return Files(tuple(size for size, _ in good), Counter(mode for _, mode in good), len(seen) - len(good))


def hashes(part: Part) -> list[bytes]:
    """A hash of the pixels of every image in memory.

    >>> data = load("digits")
    >>> len(set(hashes(data.train))) == len(data.train)
    True
    """
    assert isinstance(part, Images)
    pixels = part.images.permute(0, 2, 3, 1).contiguous().numpy()
    return [blake2b(image.tobytes(), digest_size=16).digest() for image in pixels]


def digest_of(data: ImageData) -> str:
    """A digest of all images: a fit resumes only with the data that it began with.

    >>> digest_of(load("digits")) == digest_of(load("digits"))
    True
    """
    digest = sha256()
    for part in (data.train, data.test):
        if isinstance(part, Images):
            digest.update(b"".join(hashes(part)))
        digest.update(part.labels.numpy().tobytes() if part is not None else b"")
    return digest.hexdigest()


def shared_images(data: ImageData) -> list[int]:
    """Places of the training images that are also test images."""
    if not isinstance(data.train, Images) or not isinstance(data.test, Images):
        return []
    test = set(hashes(data.test))
    return [place for place, one in enumerate(hashes(data.train)) if one in test]


def without_test_images(data: ImageData) -> ImageData:
    """The data without the training and validation images that are also test images.

    >>> data = load("digits")
    >>> doubled = replace(data, test=take(data.train, torch.tensor([5]), {}))
    >>> len(data.train) - len(without_test_images(doubled).train)
    1
    """
    kept = replace(data, train=_without(data.train, shared_images(data)))
    if data.valid is None:
        return kept
    return replace(kept, valid=_without(data.valid, shared_images(replace(data, train=data.valid))))


def _without(part: Part, places: Sequence[int]) -> Part:
    if not places:
        return part
    keep = torch.ones(len(part), dtype=torch.bool)
    keep[torch.tensor(places)] = False
    return take(part, keep.nonzero()[:, 0], {"left_out": "images that are also test images"})


def named(data: "str | os.PathLike[str] | Any") -> Any:
    """A data source from what a person wrote: a folder of images and an .npz file need no prefix.

    >>> named("digits"), named("."), named((1, 2))
    ('digits', 'folder:.', (1, 2))
    >>> named("digit")
    Traceback (most recent call last):
    idarts.errors.InputError: there is no folder, file or data source 'digit'; did you mean digits?
    """
    if not isinstance(data, str | os.PathLike):
        return data
    text = os.fspath(data)
    path = Path(text).expanduser()
    if path.is_dir():
        return f"folder:{text}"
    source = f"npz:{text}" if path.is_file() and path.suffix == ".npz" else text
    if ":" not in source:  # with a colon it may be a user's own
        parted(source)  # an unknown one is refused before anything else is done
    return source
