"""From the raw parts of a source to a checked data set."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import Dataset

from idarts.data.arrays import as_images, as_labels, require_classes, resize, scale_of, statistics
from idarts.data.raw import Options, Raw, Reader
from idarts.data.record import ImageData, Images, LazyImages, Part
from idarts.errors import InputError

SAMPLE = 2000  # images from which the statistics of a lazy part are taken


def build(raw: Raw, source: str, options: Options) -> ImageData:
    """The data set of a source. Images that do not fit in memory, or that change, are read during use.

    >>> import numpy as np
    >>> build(Raw({"train": (np.zeros((4, 8, 8)), [0, 1, 0, 1])}), "example", Options()).train.shape
    (1, 8, 8)
    """
    if options.classes is not None:
        raw = replace(raw, classes=options.classes)
    readers = {part: images for part, (images, _) in raw.parts.items() if isinstance(images, Reader)}
    if not readers:
        return _in_memory(raw, source, options)
    if any(reader.size(options) > options.memory for reader in readers.values()) or readers["train"].is_random():
        return _with_files(_lazy(readers, raw.classes, source, options), readers)
    arrays = {part: reader.read(options) for part, reader in readers.items()}
    data = _in_memory(replace(raw, parts=arrays), source, replace(options, layout="NCHW"))
    return _with_files(data, readers)


def _in_memory(raw: Raw, source: str, options: Options) -> ImageData:
    """All parts must fit the scale, the shape and the classes of the training images."""
    scale = scale_of(raw.parts["train"][0], f"{source}, train images")
    pixels: dict[str, Tensor] = {}
    for part, (images, _) in raw.parts.items():
        checked = as_images(images, f"{source}, {part} images", layout=options.layout, scale=scale)
        pixels[part] = checked if options.image is None else resize(checked, options.image)
        if pixels[part].shape[1:] != pixels["train"].shape[1:]:
            raise InputError(
                f"{source}: {part} images have shape {tuple(pixels[part].shape[1:])}, training images "
                f"{tuple(pixels['train'].shape[1:])} (C, H, W); they must agree"
            )
    sizes = {part: len(images) for part, images in pixels.items()}
    labels, names = _labels({part: labels for part, (_, labels) in raw.parts.items()}, sizes, raw.classes, source)
    mean, std = raw.statistics or statistics(pixels["train"])
    parts: dict[str, Part] = {part: Images(pixels[part], labels[part], mean, std) for part in pixels}
    return _data(parts, names, source, "published" if raw.statistics else "training images")


def _lazy(readers: Mapping[str, Reader], names: tuple[str, ...] | None, source: str, options: Options) -> ImageData:
    opened = {part: reader.open(options) for part, reader in readers.items()}
    sizes = {part: len(dataset) for part, (dataset, _) in opened.items()}  # type: ignore[arg-type] # ours have a length
    labels, names = _labels({part: labels for part, (_, labels) in opened.items()}, sizes, names, source)
    unreadable = options.unreadable if readers["train"].may_skip else 0.0
    sample = _sample(opened["train"][0], sizes["train"], unreadable)
    channels, height, width = sample.shape[1:]
    mean, std = statistics(sample)
    parts: dict[str, Part] = {
        part: LazyImages(dataset, labels[part], (channels, height, width), mean, std, unreadable)
        for part, (dataset, _) in opened.items()
    }
    return _data(parts, names, source, f"a sample of {len(sample)} training images")


def _with_files(data: ImageData, readers: Mapping[str, Reader]) -> ImageData:
    files = {part: tuple(reader.files) for part, reader in readers.items() if reader.files is not None}
    return replace(data, **{part: replace(getattr(data, part), files=known) for part, known in files.items()})


def _labels(
    given: Mapping[str, Any], sizes: Mapping[str, int], names: tuple[str, ...] | None, source: str
) -> tuple[dict[str, Tensor], tuple[str, ...]]:
    """Checked labels by part, and the names of the classes: numbers, if there are none."""
    train = as_labels(given["train"], sizes["train"], f"{source}, train labels", len(names) if names else None)
    names = names or tuple(str(label) for label in range(int(train.max()) + 1))
    require_classes(train, names, source)
    labels = {part: as_labels(y, sizes[part], f"{source}, {part} labels", len(names)) for part, y in given.items()}
    return labels, names


def _sample(train: Dataset[Tensor], count: int, unreadable: float) -> Tensor:
    """Images at equal distances, for the statistics: reading all of them may take hours."""
    images, errors = [], []
    for index in range(0, count, -(-count // SAMPLE)):
        try:
            images.append(train[index])
        except InputError as error:
            errors.append(error)
    if len(errors) > unreadable * (len(images) + len(errors)):
        raise errors[0]
    return torch.stack(images)


def _data(parts: Mapping[str, Part], names: tuple[str, ...], source: str, statistics: str) -> ImageData:
    return ImageData(parts["train"], parts.get("test"), names, source, statistics, parts.get("valid"))
