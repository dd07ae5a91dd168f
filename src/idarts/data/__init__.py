"""Image data: load any source, split it, and stream batches of it that resume bit for bit.

>>> from idarts.data import CIFAR, Batches, load, split
>>> data = load("digits")
>>> train, valid = split(data.train, 0.5, seed=0)
>>> x, y = next(Batches(train, 32, seed=0, augment=CIFAR))
>>> x.dtype, tuple(x.shape), y.dtype
(torch.float32, (32, 1, 8, 8), torch.int64)
"""

from idarts.data.augment import CIFAR, NONE, Augment
from idarts.data.batches import Batches
from idarts.data.content import Split, read_split
from idarts.data.digest import streams_digest, tensors_digest
from idarts.data.loading import load
from idarts.data.raw import Raw
from idarts.data.record import ImageData, Images, LazyImages, Part, take
from idarts.data.sources import SOURCES, Source, absolute, load_typed, short_name, source_names
from idarts.data.splitting import official_split, split, split_at
from idarts.data.torch_datasets import dataset_of

__all__ = [
    "CIFAR",
    "NONE",
    "SOURCES",
    "Augment",
    "Batches",
    "ImageData",
    "Images",
    "LazyImages",
    "Part",
    "Raw",
    "Source",
    "Split",
    "absolute",
    "dataset_of",
    "load",
    "load_typed",
    "official_split",
    "read_split",
    "short_name",
    "source_names",
    "split",
    "split_at",
    "streams_digest",
    "take",
    "tensors_digest",
]
