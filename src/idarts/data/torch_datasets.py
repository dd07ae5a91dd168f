"""Any torch `Dataset` of pairs (image, label) as raw parts."""

import sys
from collections.abc import Mapping, Sized
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    Subset,
    SubsetRandomSampler,
    default_collate,
)

from idarts.data.arrays import as_images, resize
from idarts.data.pictures import to_tensor
from idarts.data.raw import Layout, Options, Raw, Reader
from idarts.errors import InputError

TRIES = 256  # readings of a pair of items that show a transform which happens once in a hundred times


def from_datasets(datasets: Mapping[str, Dataset[Any]], options: Options) -> Raw:
    """Raw parts that read the items of the datasets, and the classes that the training set names.

    >>> from torch.utils.data import TensorDataset
    >>> raw = from_datasets({"train": TensorDataset(torch.zeros(3, 1, 2, 2), torch.tensor([2, 0, 1]))}, Options())
    >>> raw.parts["train"][0].size(Options())
    12
    """
    for part, dataset in datasets.items():
        length(dataset, part)
    parts = {
        part: (DatasetImages(dataset, part, options.image, options.layout), None) for part, dataset in datasets.items()
    }
    return Raw(parts, tuple(map(str, getattr(datasets["train"], "classes", None) or ())) or None)


def dataset_of(data: Any) -> Any:
    """The Dataset inside a DataLoader, whose batch size and shuffling the settings replace; other data as it is.

    Batches must be drawn by idarts, so that a run can resume in the middle of an epoch. What a loader does beyond
    batching and shuffling would be lost, so it is refused.

    >>> from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler
    >>> pairs = TensorDataset(torch.zeros(3, 1, 2, 2), torch.tensor([2, 0, 1]))
    >>> dataset_of(DataLoader(pairs, batch_size=2, shuffle=True)) is pairs
    True
    >>> dataset_of(DataLoader(pairs, sampler=WeightedRandomSampler([1.0, 2.0, 3.0], 3)))
    Traceback (most recent call last):
    idarts.errors.InputError: a DataLoader with its own WeightedRandomSampler cannot be resumed; give its dataset
    """
    if not isinstance(data, DataLoader):
        return data
    if isinstance(data.dataset, IterableDataset):
        raise InputError("a DataLoader of an IterableDataset cannot be resumed; give a map-style Dataset")
    if data.collate_fn is not default_collate:
        raise InputError("a DataLoader with its own collate_fn cannot be resumed; give a Dataset of (image, label)")
    sampler = getattr(data.batch_sampler, "sampler", data.sampler)
    if data.batch_size is None or type(data.batch_sampler) is not BatchSampler:
        raise InputError("a DataLoader with its own batches cannot be resumed; give its dataset")
    if isinstance(sampler, SubsetRandomSampler):
        return Subset(data.dataset, list(sampler.indices))
    if type(sampler) not in (SequentialSampler, RandomSampler) or getattr(sampler, "_num_samples", None) is not None:
        raise InputError(f"a DataLoader with its own {type(sampler).__name__} cannot be resumed; give its dataset")
    return data.dataset


class DatasetImages(Dataset[Tensor], Reader):
    """The images of a dataset of pairs, as uint8 (C, H, W)."""

    def __init__(self, dataset: Dataset[Any], where: str, size: int | None, layout: Layout = "auto") -> None:
        self.dataset, self.where, self.side, self.layout = dataset, where, size, layout
        self.shape: torch.Size | None = None
        self.shape = self[0].shape

    def __len__(self) -> int:
        return length(self.dataset, self.where)

    def __getitem__(self, index: int) -> Tensor:
        return self.pair(index)[0]

    def size(self, _options: Options) -> int:
        return len(self) * self[0].numel()

    def is_random(self) -> bool:
        return any(not torch.equal(self[i], self[i]) for i in range(min(TRIES, len(self))))

    def read(self, _options: Options) -> tuple[Tensor, list[Any]]:
        """Every item is read once."""
        shape = self[0].permute(1, 2, 0).shape
        pixels = torch.empty((len(self), *shape), dtype=torch.uint8)
        labels = []
        for index in range(len(self)):
            image, label = self.pair(index)
            pixels[index] = image.permute(1, 2, 0)
            labels.append(label)
        return pixels.permute(0, 3, 1, 2), labels

    def open(self, _options: Options) -> tuple[Dataset[Tensor], Any]:
        return self, labels_of(self.dataset, self.where)

    def pair(self, index: int) -> tuple[Tensor, Any]:
        item, label = _pair(self.dataset, index, self.where)
        image = as_uint8(item, f"{self.where}[{index}]", self.side, self.layout)
        if self.shape is not None and image.shape != self.shape:
            raise InputError(
                f"{self.where}[{index}] has shape {tuple(image.shape)}, but the first image {tuple(self.shape)}; "
                "give image=SIZE to resize all of them"
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
    pillow = sys.modules.get("PIL.Image")  # there can be no image of Pillow before Pillow is imported
    if pillow is not None and isinstance(image, pillow.Image):
        return to_tensor(image, size)
    if not isinstance(image, Tensor | np.ndarray):
        raise InputError(f"{where} is {type(image).__name__}, expected a Pillow image, an array or a tensor")
    is_float = image.is_floating_point() if isinstance(image, Tensor) else image.dtype.kind == "f"
    pixels = as_images(image[None], where, layout=layout, scale=255.0 if is_float else None)
    return (pixels if size is None else resize(pixels, size))[0]


def labels_of(dataset: Dataset[Any], where: str) -> Any:
    """The labels of a dataset: its `targets`, as torchvision has them, else from reading every item.

    >>> from torch.utils.data import TensorDataset
    >>> labels_of(TensorDataset(torch.zeros(3, 1, 2, 2), torch.tensor([2, 0, 1])), "train")
    [2, 0, 1]
    """
    known = _targets(dataset)
    if known is not None:
        return known
    return [_label(_pair(dataset, i, where)[1]) for i in range(length(dataset, where))]


def length(dataset: Any, where: str) -> int:
    """The number of items in a dataset, which must be finite.

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
    # torchvision applies target_transform only on reading, so the list would be wrong.
    return getattr(dataset, "targets", None) if getattr(dataset, "target_transform", None) is None else None


def _pair(dataset: Dataset[Any], index: int, where: str) -> tuple[Any, Any]:
    item = dataset[index]
    if not isinstance(item, tuple | list) or len(item) != 2:
        raise InputError(f"{where}[{index}] is {type(item).__name__}, expected a pair (image, label)")
    return item[0], item[1]


def _label(label: Any) -> Any:
    return label.item() if isinstance(label, Tensor) and label.numel() == 1 else label
