"""Tiny data sets written in the official formats, byte by byte as the originals are."""

import gzip
import pickle
import random
import struct
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch.utils.data import Dataset


def pixels(count: int, *shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (count, *shape), dtype=np.uint8)


def python2_pickle(content: dict) -> bytes:
    """As Python 2 wrote it: protocol 2, text as byte strings, arrays through numpy.core.multiarray."""

    def text(value: bytes) -> bytes:
        return b"T" + struct.pack("<I", len(value)) + value

    def entry(value) -> bytes:
        if isinstance(value, np.ndarray):
            shape = b"".join(b"J" + struct.pack("<i", n) for n in value.shape)
            return (
                b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(K\x00tU\x01btR"
                b"(K\x01(" + shape + b"tcnumpy\ndtype\n(U\x02u1K\x00K\x01tR"
                b"(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89" + text(value.tobytes()) + b"tb"
            )
        if isinstance(value, list):
            return b"](" + b"".join(entry(item) for item in value) + b"e"
        return b"J" + struct.pack("<i", value) if isinstance(value, int) else text(value.encode())

    body = b"".join(text(key.encode()) + entry(value) for key, value in content.items())
    return b"\x80\x02}(" + body + b"u."


def planes(images: np.ndarray) -> np.ndarray:
    """CIFAR's rows: 1,024 red, 1,024 green, 1,024 blue."""
    return images.transpose(0, 3, 1, 2).reshape(len(images), -1)


def cifar10_python(root: Path, per_batch: int = 4) -> tuple[np.ndarray, np.ndarray]:
    folder = root / "cifar-10-batches-py"
    folder.mkdir(parents=True)
    x, y = pixels(6 * per_batch, 32, 32, 3), np.arange(6 * per_batch) % 10
    for i, name in enumerate([*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"]):
        here = slice(i * per_batch, (i + 1) * per_batch)
        batch = {"batch_label": name, "data": planes(x[here]), "labels": y[here].tolist()}
        (folder / name).write_bytes(python2_pickle(batch))
    names = [f"class {i}" for i in range(10)]
    (folder / "batches.meta").write_bytes(python2_pickle({"label_names": names, "num_vis": 3072}))
    return x, y


def cifar10_binary(root: Path, per_batch: int = 4) -> tuple[np.ndarray, np.ndarray]:
    folder = root / "cifar-10-batches-bin"
    folder.mkdir(parents=True)
    x, y = pixels(6 * per_batch, 32, 32, 3), (np.arange(6 * per_batch) % 10).astype(np.uint8)
    records = np.concatenate([y[:, None], planes(x)], axis=1)
    for i, name in enumerate([*(f"data_batch_{i}.bin" for i in range(1, 6)), "test_batch.bin"]):
        (folder / name).write_bytes(records[i * per_batch : (i + 1) * per_batch].tobytes())
    return x, y


def cifar100_python(root: Path) -> tuple[np.ndarray, np.ndarray]:
    folder = root / "cifar-100-python"
    folder.mkdir(parents=True)
    x, y = pixels(12, 32, 32, 3), np.arange(12) * 9 % 100
    for name, here in (("train", slice(0, 8)), ("test", slice(8, 12))):
        batch = {"data": planes(x[here]), "coarse_labels": [0] * len(y[here]), "fine_labels": y[here].tolist()}
        (folder / name).write_bytes(pickle.dumps({key.encode(): value for key, value in batch.items()}, protocol=2))
    names = [f"fine {i}" for i in range(100)]
    (folder / "meta").write_bytes(python2_pickle({"fine_label_names": names}))
    return x, y


def cifar100_binary(root: Path) -> tuple[np.ndarray, np.ndarray]:
    folder = root / "cifar-100-binary"
    folder.mkdir(parents=True)
    x, y = pixels(12, 32, 32, 3), (np.arange(12) * 9 % 100).astype(np.uint8)
    records = np.concatenate([np.full((12, 1), 3, np.uint8), y[:, None], planes(x)], axis=1)
    (folder / "train.bin").write_bytes(records[:8].tobytes())
    (folder / "test.bin").write_bytes(records[8:].tobytes())
    (folder / "fine_label_names.txt").write_text("\n".join(f"fine{i}" for i in range(100)))
    return x, y


def idx(array: np.ndarray) -> bytes:
    return struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape) + array.tobytes()


def fashion_mnist(folder: Path, packed: bool) -> tuple[np.ndarray, np.ndarray]:
    folder.mkdir(parents=True, exist_ok=True)
    x, y = pixels(30, 28, 28), (np.arange(30) % 10).astype(np.uint8)
    for prefix, here in (("train", slice(0, 20)), ("t10k", slice(20, 30))):
        for name, array in (("images-idx3", x[here]), ("labels-idx1", y[here])):
            content = idx(array)
            file = folder / f"{prefix}-{name}-ubyte{'.gz' if packed else ''}"
            file.write_bytes(gzip.compress(content) if packed else content)
    return x, y


def image_folder(
    root: Path, classes: tuple[str, ...] = ("cat", "dog"), per_class: int = 5, ending: str = "png"
) -> Path:
    for label, name in enumerate(classes):
        (root / name).mkdir(parents=True)
        for i in range(per_class):
            colour = (50 * label, 10 * i, 200)
            Image.new("RGB", (12 + i, 9 + label), colour).save(root / name / f"{i}.{ending}")
    return root


class Pictures(Dataset):
    """As torchvision's: Pillow images, `classes`, `targets`."""

    classes = ("cat", "dog")

    def __init__(self, count=10):
        self.pixels, self.targets = pixels(count, 8, 8, 3), [i % 2 for i in range(count)]

    def __len__(self):
        return len(self.targets)

    def __getitem__(self, index):
        return Image.fromarray(self.pixels[index]), self.targets[index]


class Jittered(Pictures):
    """With a random transform, on all three generators people use."""

    def __getitem__(self, index):
        rolled = np.roll(self.pixels[index], (int(torch.randint(8, ())), np.random.randint(8)), (0, 1))
        return Image.fromarray(np.roll(rolled, random.randrange(8), 0)), self.targets[index]
