"""CIFAR-10 and CIFAR-100 from their official files, python or binary, or from an npz archive."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idarts.data.npz import from_npz
from idarts.data.pickles import read_pickle
from idarts.data.raw import Raw
from idarts.data.record import Statistics
from idarts.data.roots import locate
from idarts.errors import InputError

_PIXELS = 3 * 32 * 32


@dataclass(frozen=True)
class _Set:
    """How the official files of one of the two are called, and what they hold."""

    python: tuple[str, ...]  # folder, training files, test file
    binary: tuple[str, ...]
    label: str  # key of the labels in a python batch
    label_bytes: int  # before each image in a binary file; the last is the label
    meta: tuple[str, str, str]  # python file and key of the class names, binary file of them
    mean: Statistics
    std: Statistics


def _per_255(*values: float) -> Statistics:
    return tuple(value / 255 for value in values)


_BATCHES = tuple(f"data_batch_{i}" for i in range(1, 6))
SETS = {
    "cifar10": _Set(
        python=("cifar-10-batches-py", *_BATCHES, "test_batch"),
        binary=("cifar-10-batches-bin", *(f"{name}.bin" for name in _BATCHES), "test_batch.bin"),
        label="labels",
        label_bytes=1,
        meta=("batches.meta", "label_names", "batches.meta.txt"),
        mean=_per_255(125.3, 123.0, 113.9),
        std=_per_255(63.0, 62.1, 66.7),
    ),
    "cifar100": _Set(
        python=("cifar-100-python", "train", "test"),
        binary=("cifar-100-binary", "train.bin", "test.bin"),
        label="fine_labels",
        label_bytes=2,
        meta=("meta", "fine_label_names", "fine_label_names.txt"),
        mean=_per_255(129.3, 124.1, 112.4),
        std=_per_255(68.2, 65.4, 70.4),
    ),
}
_CIFAR10 = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")


def from_cifar(name: str, root: "str | Path | None") -> Raw:
    """The official data set `cifar10` or `cifar100`, from whichever form of it lies in the root, or is the root.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     from_cifar("cifar100", folder)
    Traceback (most recent call last):
    idarts.errors.InputError: cifar100 was not found in ...; expected there: cifar-100-python/ with train, test, or ...
    """
    files = SETS[name]
    expected = (
        f"{files.python[0]}/ with {', '.join(files.python[1:])}, or {files.binary[0]}/ with "
        f"{', '.join(files.binary[1:])} (both unpacked), or {name}.npz"
    )
    patterns = [files.python[0], files.binary[0], files.python[1], files.binary[1], f"{name}.npz", f"{name}[_.-]*.npz"]
    found = locate(patterns, root, name, expected)
    if found.suffix == ".npz":
        return _with_names(from_npz(found), name)
    folder = found if found.is_dir() else found.parent
    if found.name in files.python[:2]:
        raw = _read(folder, files.python[1:], lambda file: _python_batch(file, files.label))
        return _with_names(raw, name, _python_names(folder / files.meta[0], files.meta[1]))
    raw = _read(folder, files.binary[1:], lambda file: _binary_batch(file, files.label_bytes))
    return _with_names(raw, name, _text_names(folder / files.meta[2]))


def _read(folder: Path, files: Sequence[str], read: Callable[[Path], tuple[NDArray[Any], NDArray[Any]]]) -> Raw:
    missing = [file for file in files if not (folder / file).is_file()]
    if missing:
        raise InputError(f"{folder} lacks {', '.join(missing)}; unpack the official archive again")
    batches = [read(folder / file) for file in files]
    images, labels = ([batch[i] for batch in batches] for i in (0, 1))
    train = np.concatenate(images[:-1]), np.concatenate(labels[:-1])
    return Raw({"train": train, "test": (images[-1], labels[-1])})


def _python_batch(file: Path, label: str) -> tuple[NDArray[Any], NDArray[Any]]:
    content = read_pickle(file)
    data, labels = content.get("data"), content.get(label)
    if not isinstance(data, np.ndarray) or not isinstance(labels, list):
        raise InputError(f"{file} lacks the keys data and {label}; get the official file again")
    if data.dtype != np.uint8 or data.ndim != 2 or data.shape[1] != _PIXELS:
        raise InputError(f"{file}: data is {data.dtype} {data.shape}, expected uint8 (N, {_PIXELS}); get it again")
    return _pixels(data), np.asarray(labels)


def _binary_batch(file: Path, label_bytes: int) -> tuple[NDArray[Any], NDArray[Any]]:
    content, record = np.fromfile(file, np.uint8), label_bytes + _PIXELS
    if not len(content) or len(content) % record:
        raise InputError(f"{file} has {len(content)} bytes, expected a multiple of {record}; is it complete?")
    rows = content.reshape(-1, record)
    return _pixels(rows[:, label_bytes:]), rows[:, label_bytes - 1]


def _pixels(rows: NDArray[Any]) -> NDArray[Any]:
    """The files hold a red, a green and a blue plane per image; the package keeps channels last."""
    return np.ascontiguousarray(rows.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))


def _python_names(file: Path, key: str) -> tuple[str, ...] | None:
    names = read_pickle(file).get(key) if file.is_file() else None
    if not isinstance(names, list):
        return None
    return tuple(name.decode("latin1") if isinstance(name, bytes) else str(name) for name in names)


def _text_names(file: Path) -> tuple[str, ...] | None:
    return tuple(file.read_text(encoding="latin1").split()) or None if file.is_file() else None


def _with_names(raw: Raw, name: str, names: tuple[str, ...] | None = None) -> Raw:
    known = _CIFAR10 if name == "cifar10" else tuple(str(i) for i in range(100))
    return Raw(raw.parts, names or raw.classes or known)
