"""Any torch `Dataset` of (image, label) pairs as ours."""

from collections.abc import Sized
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from torch.utils.data import Dataset, IterableDataset, Subset

from idarts.data.arrays import Layout, as_images, resize
from idarts.data.pictures import to_tensor
from idarts.errors import InputError


class DatasetImages(Dataset[Tensor]):
    """The images of a dataset of pairs, as uint8 (C, H, W)."""

    def __init__(self, dataset: Dataset[Any], where: str, size: int | None, layout: Layout = "auto") -> None:
        self.dataset, self.where, self.size, self.layout = dataset, where, size, layout
        self.shape: torch.Size | None = None
        self.shape = self[0].shape

    def __len__(self) -> int:
        return length(self.dataset, self.where)

    def __getitem__(self, index: int) -> Tensor:
        return self.pair(index)[0]

    def pair(self, index: int) -> tuple[Tensor, Any]:
        item, label = _pair(self.dataset, index, self.where)
        image = as_uint8(item, f"{self.where}[{index}]", self.size, self.layout)
        if self.shape is not None and image.shape != self.shape:
            raise InputError(
                f"{self.where}[{index}] has shape {tuple(image.shape)}, but the first image {tuple(self.shape)}; "
                "give image=SIZE to bring all to one size"
            )
        return image, _label(label)


def as_uint8(image: Any, where: str, size: int | None = None, layout: Layout = "auto") -> Tensor:
    """One image as uint8 (C, H, W): from Pillow, an array (H, W) or (H, W, C), or a tensor (H, W) or (C, H, W).

    >>> as_uint8(torch.zeros(1, 4, 4), "example").shape
    torch.Size([1, 4, 4])
    >>> as_uint8(torch.randn(3, 4, 4), "train[0]")
    Traceback (most recent call last):
    idarts.errors.InputError: train[0]: pixels range from ..., expected 0 to 1; give raw images, not normalised ones...
    """
    if isinstance(image, Image.Image):
        return to_tensor(image, size)
    if not isinstance(image, Tensor | np.ndarray):
        raise InputError(f"{where} is {type(image).__name__}, expected a Pillow image, an array or a tensor")
    is_float = image.is_floating_point() if isinstance(image, Tensor) else image.dtype.kind == "f"
    pixels = as_images(image[None], where, layout=layout, scale=255.0 if is_float else None)
    return (pixels if size is None else resize(pixels, size))[0]


def labels_of(dataset: Dataset[Any], where: str) -> Any:
    """The labels of a dataset: what it says itself (`targets`, as torchvision does), else by reading every item.

    >>> from torch.utils.data import TensorDataset
    >>> labels_of(TensorDataset(torch.zeros(3, 1, 2, 2), torch.tensor([2, 0, 1])), "train")
    [2, 0, 1]
    """
    known = _targets(dataset)
    if known is not None:
        return known
    return [_label(_pair(dataset, i, where)[1]) for i in range(length(dataset, where))]


def read_dataset(images: DatasetImages) -> tuple[Tensor, list[Any]]:
    """All images (N, C, H, W) and labels of a dataset in memory, each item read once."""
    shape = images[0].permute(1, 2, 0).shape
    pixels = torch.empty((len(images), *shape), dtype=torch.uint8)
    labels = []
    for index in range(len(images)):
        image, label = images.pair(index)
        pixels[index] = image.permute(1, 2, 0)
        labels.append(label)
    return pixels.permute(0, 3, 1, 2), labels


def is_random(images: DatasetImages, tries: int = 256) -> bool:
    """Whether reading an item twice gives two images: then its transforms are random and must run every epoch.

    So many tries find a transform that happens once in a hundred times, but for one case in a hundred.
    """
    return any(not torch.equal(images[i], images[i]) for i in range(min(tries, len(images))))


def length(dataset: Any, where: str) -> int:
    """How many items a dataset has; one without an end cannot be used.

    >>> length([1, 2], "train")
    2
    """
    if isinstance(dataset, IterableDataset) or not isinstance(dataset, Sized):
        raise InputError(f"{where}: a dataset without a length cannot be split or shuffled; give a map-style Dataset")
    if len(dataset) == 0:
        raise InputError(f"{where}: the dataset is empty")
    return len(dataset)


def _targets(dataset: Dataset[Any]) -> Any:
    if isinstance(dataset, Subset):
        whole = _targets(dataset.dataset)
        return None if whole is None else [_label(whole[i]) for i in dataset.indices]
    # torchvision applies target_transform on reading only, so then the list is not what comes out.
    return getattr(dataset, "targets", None) if getattr(dataset, "target_transform", None) is None else None


def _pair(dataset: Dataset[Any], index: int, where: str) -> tuple[Any, Any]:
    item = dataset[index]
    if not isinstance(item, tuple | list) or len(item) != 2:
        raise InputError(f"{where}[{index}] is {type(item).__name__}, expected a pair (image, label)")
    return item[0], item[1]


def _label(label: Any) -> Any:
    return label.item() if isinstance(label, Tensor) and label.numel() == 1 else label
