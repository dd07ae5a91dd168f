"""`load`: any source of images as one record."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import Dataset

from idarts.data.arrays import Layout, as_images, as_labels, require_classes, resize, scale_of, statistics
from idarts.data.cifar import SETS, from_cifar
from idarts.data.folder import Listing, PictureFiles, list_folder, open_all, read_all
from idarts.data.idx import from_fashion_mnist
from idarts.data.npz import from_npz
from idarts.data.raw import Raw
from idarts.data.record import ImageData, Images, LazyImages, Part, Statistics
from idarts.data.splitting import split
from idarts.data.torch_datasets import DatasetImages, is_random, labels_of, length, read_dataset
from idarts.errors import InputError, nearest

SOURCES = ("digits", "cifar10", "cifar100", "fashion-mnist", "folder:PATH", "npz:PATH")
FOLDER_SIZE = 32  # of images from folders where none is asked for: what the search spaces are made for
MEMORY = 2**31  # bytes of pixels in one part up to which it is kept in memory
SAMPLE = 2000  # images from which the statistics of a lazy part are taken


@dataclass(frozen=True)
class _Options:
    image: int | None
    layout: Layout
    unreadable: float
    memory: int


def load(
    source: Any = "digits",
    root: "str | os.PathLike[str] | None" = None,
    *,
    image: int | None = None,
    classes: Sequence[str] | None = None,
    layout: Layout = "auto",
    hold_out: float = 0.2,
    seed: int = 0,
    unreadable: float = 0.05,
    memory: int = MEMORY,
) -> ImageData:
    """Images and labels from a named source (`SOURCES`) or from Python.

    From Python: `(x, y)`, `((x, y), (x_test, y_test))`, a torch `Dataset` of pairs (image, label), or two of them.

    `root` is the folder of files with known names (else the one in IDARTS_DATA); `image` the side to which images are
    resized (for folders 32, else as they are); `classes` are names. Where a source has no test images, the share
    `hold_out` of the training images becomes the test set, by `seed`; with 0 there is none. Files of a folder that
    cannot be read are left out up to the share `unreadable`. A part of more than `memory` bytes is read while it is
    used, and so is a `Dataset` whose images change from one reading to the next.

    >>> digits = load("digits")
    >>> len(digits.train), len(digits.test), digits.train.shape, digits.classes[:3]
    (1438, 359, (1, 8, 8), ('0', '1', '2'))
    >>> load("cifar-10")
    Traceback (most recent call last):
    idarts.errors.InputError: 'cifar-10' is no data source; did you mean cifar10?
    """
    if image is not None and (type(image) is not int or image < 1):
        raise InputError(f"image={image!r}: expected the side of the images in pixels, e.g. 32")
    if not 0 <= hold_out < 1 or not 0 <= unreadable <= 1:
        raise InputError(f"hold_out={hold_out} and unreadable={unreadable}: expected shares between 0 and 1")
    options = _Options(image, layout, unreadable, memory)
    if isinstance(source, str | os.PathLike):
        data = _from_name(os.fspath(source), root, options, classes)
    else:
        data = _from_python(source, options, classes)
    return _with_test(data, hold_out, seed)


def _from_name(source: str, root: Any, options: _Options, classes: Sequence[str] | None) -> ImageData:
    kind, colon, path = source.partition(":")
    if colon and kind in ("folder", "npz"):
        if not path.strip():
            raise InputError(f"{source!r} names no path; write {kind}:PATH")
        file = Path(path).expanduser()
        if kind == "folder":
            return _from_folder(file, source, options)
        return _finish(from_npz(file), source, options, classes)
    if source in SETS:
        published = SETS[source].mean, SETS[source].std
        return _finish(from_cifar(source, root), source, options, classes, published)
    readers: dict[str, Callable[[], Raw]] = {"digits": _digits, "fashion-mnist": lambda: from_fashion_mnist(root)}
    if source not in readers:
        raise InputError(f"{source!r} is no data source; {_suggestion(source)}")
    return _finish(readers[source](), source, options, classes)


def _suggestion(source: str) -> str:
    path = Path(source).expanduser()
    if source.strip() and path.is_dir():
        return f"for the folder of that name write folder:{source}"
    if path.is_file():
        return f"for the file of that name write npz:{source}"
    return nearest(source.lower(), SOURCES)


def _digits() -> Raw:
    from sklearn.datasets import load_digits  # noqa: PLC0415 (takes a second; other sources do without)

    x, y = load_digits(return_X_y=True)
    return Raw({"train": ((x.reshape(-1, 8, 8) * (255 / 16)).round().astype("uint8"), y)}, tuple("0123456789"))


def _from_python(source: Any, options: _Options, classes: Sequence[str] | None) -> ImageData:
    two = isinstance(source, tuple | list) and len(source) == 2
    if isinstance(source, Dataset):
        return _from_datasets({"train": source}, options, classes)
    if two and all(isinstance(one, Dataset) for one in source):
        return _from_datasets(dict(zip(("train", "test"), source, strict=True)), options, classes)
    if two and all(isinstance(one, tuple | list) and len(one) == 2 for one in source):
        pairs = dict(zip(("train", "test"), source, strict=True))
        return _finish(Raw({part: (x, y) for part, (x, y) in pairs.items()}), "arrays", options, classes)
    if two:
        return _finish(Raw({"train": (source[0], source[1])}), "arrays", options, classes)
    raise InputError(
        f"a {type(source).__name__} is no data source; give a name ({', '.join(SOURCES)}), a pair (x, y), "
        "((x, y), (x_test, y_test)), or one or two torch Datasets"
    )


def _finish(
    raw: Raw,
    source: str,
    options: _Options,
    classes: Sequence[str] | None,
    published: tuple[Statistics, Statistics] | None = None,
) -> ImageData:
    """Check every part, by the scale and the classes of the training images."""
    scale = scale_of(raw.parts["train"][0], f"{source}, train images")
    names = tuple(classes) if classes is not None else raw.classes
    pixels: dict[str, Tensor] = {}
    for part, (images, _) in raw.parts.items():
        checked = as_images(images, f"{source}, {part} images", layout=options.layout, scale=scale)
        pixels[part] = checked if options.image is None else resize(checked, options.image)
        if pixels[part].shape[1:] != pixels["train"].shape[1:]:
            raise InputError(
                f"{source}: {part} images have shape {tuple(pixels[part].shape[1:])}, training images "
                f"{tuple(pixels['train'].shape[1:])} (C, H, W); they must agree"
            )
    labels, names = _labels({part: pair[1] for part, pair in raw.parts.items()}, pixels, names, source)
    mean, std = published or statistics(pixels["train"])
    parts: dict[str, Part] = {part: Images(pixels[part], labels[part], mean, std) for part in pixels}
    return _record(parts, names, source, "published" if published else "training images")


def _labels(
    given: dict[str, Any], images: Any, names: tuple[str, ...] | None, source: str
) -> tuple[dict[str, Tensor], tuple[str, ...]]:
    train = as_labels(given["train"], len(images["train"]), f"{source}, train labels", len(names) if names else None)
    names = names or tuple(str(label) for label in range(int(train.max()) + 1))
    require_classes(train, names, source)
    checked = {
        part: as_labels(y, len(images[part]), f"{source}, {part} labels", len(names)) for part, y in given.items()
    }
    return checked, names


def _from_folder(path: Path, source: str, options: _Options) -> ImageData:
    listings, names = list_folder(path)
    size = options.image or FOLDER_SIZE
    if max(len(listing.files) for listing in listings.values()) * 3 * size * size > options.memory:
        return _lazy_folder(listings, names, source, size, options)
    read = {part: read_all(listing, size, options.unreadable) for part, listing in listings.items()}
    require_classes(read["train"][1], names, source)
    mean, std = statistics(read["train"][0])
    parts: dict[str, Part] = {part: Images(images, labels, mean, std) for part, (images, labels) in read.items()}
    return _record(parts, names, source, "training images")


def _lazy_folder(
    listings: dict[str, Listing], names: tuple[str, ...], source: str, size: int, options: _Options
) -> ImageData:
    opened = {part: open_all(listing, options.unreadable) for part, listing in listings.items()}
    datasets: dict[str, Dataset[Tensor]] = {part: PictureFiles(one.files, size) for part, one in opened.items()}
    labels = {part: torch.tensor(one.labels) for part, one in opened.items()}
    require_classes(labels["train"], names, source)
    return _lazy(datasets, labels, names, source, options.unreadable)


def _from_datasets(datasets: dict[str, Dataset[Any]], options: _Options, classes: Sequence[str] | None) -> ImageData:
    source = "dataset " + type(datasets["train"]).__name__
    known = getattr(datasets["train"], "classes", None)
    names = tuple(map(str, classes if classes is not None else known or ())) or None
    for part, dataset in datasets.items():
        length(dataset, part)
    images = {part: DatasetImages(dataset, part, options.image, options.layout) for part, dataset in datasets.items()}
    if all(len(one) * one[0].numel() <= options.memory for one in images.values()) and not is_random(images["train"]):
        raw = Raw({part: read_dataset(one) for part, one in images.items()}, names)
        return _finish(raw, source, replace(options, layout="NCHW"), classes)
    labels, names = _labels({part: labels_of(one, part) for part, one in datasets.items()}, images, names, source)
    return _lazy(dict(images), labels, names, source, unreadable=0.0)


def _lazy(
    datasets: "dict[str, Dataset[Tensor]]",
    labels: dict[str, Tensor],
    names: tuple[str, ...],
    source: str,
    unreadable: float,
) -> ImageData:
    sample = _sample(datasets["train"], len(labels["train"]), unreadable)
    channels, height, width = sample.shape[1:]
    mean, std = statistics(sample)
    parts: dict[str, Part] = {
        part: LazyImages(one, labels[part], (channels, height, width), mean, std, unreadable)
        for part, one in datasets.items()
    }
    return _record(parts, names, source, f"a sample of {len(sample)} training images")


def _sample(train: Dataset[Tensor], count: int, unreadable: float) -> Tensor:
    """Images at equal distances, for the statistics: a whole pass may take hours."""
    images, errors = [], []
    for index in range(0, count, -(-count // SAMPLE)):
        try:
            images.append(train[index])
        except InputError as error:
            errors.append(error)
    if len(errors) > unreadable * (len(images) + len(errors)):
        raise errors[0]
    return torch.stack(images)


def _record(parts: dict[str, Part], names: tuple[str, ...], source: str, statistics: str) -> ImageData:
    return ImageData(parts["train"], parts.get("test"), names, source, statistics, parts.get("valid"))


def _with_test(data: ImageData, hold_out: float, seed: int) -> ImageData:
    if data.test is not None or not hold_out:
        return data
    train, test = split(data.train, round(1 - hold_out, 12), seed=seed)
    if isinstance(train, Images):  # what is held out must not be known, not even by its mean colour
        mean, std = statistics(train.images)
        train, test = replace(train, mean=mean, std=std), replace(test, mean=mean, std=std)
    valid = data.valid and replace(data.valid, mean=train.mean, std=train.std)
    return replace(data, train=train, test=test, valid=valid)
