"""`load`: any source of images as one data set."""

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch.utils.data import Dataset

from idarts.data.arrays import statistics
from idarts.data.building import build
from idarts.data.raw import Layout, Options, Raw
from idarts.data.record import ImageData, Images
from idarts.data.sources import SOURCES, read_source, source_names
from idarts.data.splitting import split
from idarts.data.torch_datasets import dataset_of, from_datasets
from idarts.errors import InputError

HOLD_OUT = 0.2  # the share of the training images that become the test set, if a source has none


def load(
    source: Any = "digits",
    root: "str | os.PathLike[str] | None" = None,
    *,
    image: int | None = None,
    classes: Sequence[str] | None = None,
    layout: Layout = "auto",
    hold_out: float = HOLD_OUT,
    seed: int = 0,
    unreadable: float = 0.05,
    memory: int = 2**31,
) -> ImageData:
    """Images and labels from a source by name, or from Python.

    Names are those in `SOURCES`: `digits`, `cifar10`, `folder:PATH` and so on. From Python, `source` is `(x, y)`,
    `((x, y), (x_test, y_test))`, a torch `Dataset` of pairs (image, label), two of them, or your own function of a
    path and a root that returns one of these. Of a `DataLoader` only its dataset is
    used: idarts draws the batches itself, so that a run can resume.

    `root` is the folder of the files of named sources (default: IDARTS_DATA). `image` is the side to which images are
    resized (default: 32 for folders, else no change). `classes` are the names of the classes. If a source has no test
    images, the share `hold_out` of the training images becomes the test set, by `seed`; with 0 there is no test set.
    Unreadable files of a folder are left out, up to the share `unreadable`. A part of more than `memory` bytes is read
    during use, and so is a `Dataset` whose images change from one reading to the next.

    >>> digits = load("digits")
    >>> len(digits.train), len(digits.test), digits.train.shape, digits.classes[:3]
    (1438, 359, (1, 8, 8), ('0', '1', '2'))
    >>> load("cifar-10")
    Traceback (most recent call last):
    idarts.errors.InputError: there is no folder, file or data source 'cifar-10'; did you mean cifar10?
    """
    if image is not None and (type(image) is not int or image < 1):
        raise InputError(f"image={image!r}: expected the side of the images in pixels, e.g. 32")
    if not 0 <= hold_out < 1 or not 0 <= unreadable <= 1:
        raise InputError(f"hold_out={hold_out} and unreadable={unreadable}: expected shares between 0 and 1")
    options = Options(image, None if classes is None else tuple(map(str, classes)), layout, unreadable, memory)
    name, data = None, source
    if isinstance(source, str | os.PathLike):
        name = os.fspath(source)
        data = read_source(name, root)
    elif callable(source) and not isinstance(source, Dataset | type):
        name = SOURCES.name_of(source) or SOURCES.own(source)
        data = source("", root)
    kind, raw = _as_raw(data, options)
    return with_test(build(raw, name or kind, options), hold_out, seed)


def _as_raw(data: Any, options: Options) -> tuple[str, Raw]:
    """Raw parts from what a source returned, or a person gave; and what kind of data it is."""
    data = tuple(map(dataset_of, data)) if isinstance(data, tuple | list) and len(data) == 2 else dataset_of(data)
    if isinstance(data, Raw):
        return "raw", data
    if isinstance(data, Dataset):
        return f"dataset {type(data).__name__}", from_datasets({"train": data}, options)
    if isinstance(data, tuple | list) and len(data) == 2:
        first, second = data
        if isinstance(first, Dataset) and isinstance(second, Dataset):
            return f"dataset {type(first).__name__}", from_datasets({"train": first, "test": second}, options)
        if all(isinstance(pair, tuple | list) and len(pair) == 2 for pair in data):
            return "arrays", Raw({"train": (first[0], first[1]), "test": (second[0], second[1])})
        return "arrays", Raw({"train": (first, second)})
    raise InputError(
        f"data of type {type(data).__name__} cannot be used; give a name ({', '.join(source_names())}), a pair (x, y), "
        "((x, y), (x_test, y_test)), or one or two torch Datasets or DataLoaders"
    )


def with_test(data: ImageData, hold_out: float = HOLD_OUT, seed: int = 0) -> ImageData:
    """The data with a test set: its own, or some of the training images.

    >>> whole = load("digits", hold_out=0)
    >>> whole.test is None, len(with_test(whole).test)
    (True, 359)
    """
    if data.test is not None or not hold_out:
        return data
    counts = torch.bincount(data.train.labels, minlength=len(data.classes))
    if 1 in counts:
        name = data.classes[int((counts == 1).nonzero()[0, 0])]
        raise InputError(
            f"{data.source} has only one image of the class {name!r}, which cannot be both trained and tested on; "
            "add images, at least two of each class, or give a separate test set"
        )
    train, test = split(data.train, round(1 - hold_out, 12), seed=seed)
    if isinstance(train, Images):  # nothing may be known about the test images, not even their mean colour
        mean, std = statistics(train.images)
        train, test = replace(train, mean=mean, std=std), replace(test, mean=mean, std=std)
    valid = data.valid and replace(data.valid, mean=train.mean, std=train.std)
    return replace(data, train=train, test=test, valid=valid)
