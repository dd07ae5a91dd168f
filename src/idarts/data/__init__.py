"""Data sets for a search: load any source, split it, stream batches of it that can be resumed to the bit.

>>> from idarts.data import CIFAR, Batches, load, split
>>> data = load("digits")
>>> train, valid = split(data.train, 0.5, seed=0)
>>> x, y = next(Batches(train, 32, seed=0, augment=CIFAR))
>>> x.dtype, tuple(x.shape), y.dtype
(torch.float32, (32, 1, 8, 8), torch.int64)
"""

from idarts.data.augment import CIFAR, NONE, Augment
from idarts.data.batches import Batches
from idarts.data.loading import SOURCES, load
from idarts.data.record import ImageData, Images, LazyImages, Part, take
from idarts.data.splitting import official_split, split, split_at

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
    "load",
    "official_split",
    "split",
    "split_at",
    "take",
]
