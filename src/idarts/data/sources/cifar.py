"""CIFAR-10 and CIFAR-100 from their official files, python or binary, or from an npz archive."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idarts.data.raw import Raw
from idarts.data.record import Statistics
from idarts.data.roots import locate
from idarts.data.sources import SOURCES, Root, Source
from idarts.data.sources.npz import from_npz
from idarts.errors import InputError
from idarts.pickles import NUMPY, Allowed, NumberType, RefusedError, as_text, unpickle, unpickling

_PIXELS = 3 * 32 * 32


@dataclass(frozen=True)
class _Set:
    """The names and contents of the official files of one of the two."""

    name: str
    python: tuple[str, ...]  # folder, training files, test file
    binary: tuple[str, ...]
    label: str  # key of the labels in a python batch
    label_bytes: int  # before each image in a binary file; the last is the label
    meta: tuple[str, str, str]  # python file and key of the class names, binary file of them
    classes: tuple[str, ...]  # if the files do not name them
    mean: Statistics  # on the scale 0…255
    std: Statistics

    @property
    def statistics(self) -> tuple[Statistics, Statistics]:
        return tuple(value / 255 for value in self.mean), tuple(value / 255 for value in self.std)


_BATCHES = tuple(f"data_batch_{i}" for i in range(1, 6))
_SETS = (
    _Set(
        name="cifar10",
        python=("cifar-10-batches-py", *_BATCHES, "test_batch"),
        binary=("cifar-10-batches-bin", *(f"{name}.bin" for name in _BATCHES), "test_batch.bin"),
        label="labels",
        label_bytes=1,
        meta=("batches.meta", "label_names", "batches.meta.txt"),
        classes=("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"),
        mean=(125.3, 123.0, 113.9),
        std=(63.0, 62.1, 66.7),
    ),
    _Set(
        name="cifar100",
        python=("cifar-100-python", "train", "test"),
        binary=("cifar-100-binary", "train.bin", "test.bin"),
        label="fine_labels",
        label_bytes=2,
        meta=("meta", "fine_label_names", "fine_label_names.txt"),
        classes=tuple(str(i) for i in range(100)),
        mean=(129.3, 124.1, 112.4),
        std=(68.2, 65.4, 70.4),
    ),
)


def _read(files: _Set, _path: str, root: Root) -> Raw:
    """The official data set, in whichever form the root has it, or is it."""
    file = _locate(files, root)
    if file.suffix == ".npz":
        raw = from_npz(file)
        return Raw(raw.parts, raw.classes or files.classes, files.statistics)
    folder = file if file.is_dir() else file.parent
    if file.name in files.python[:2]:
        parts = _parts(folder, files.python[1:], lambda batch: _python_batch(batch, files.label))
        names = _python_names(folder / files.meta[0], files.meta[1])
    else:
        parts = _parts(folder, files.binary[1:], lambda batch: _binary_batch(batch, files.label_bytes))
        names = _text_names(folder / files.meta[2])
    return Raw(parts, names or files.classes, files.statistics)


def _locate(files: _Set, root: Root = None) -> Path:
    expected = (
        f"{files.python[0]}/ with {', '.join(files.python[1:])}, or {files.binary[0]}/ with "
        f"{', '.join(files.binary[1:])} (both unpacked), or {files.name}.npz"
    )
    official = [files.python[0], files.binary[0], files.python[1], files.binary[1]]
    return locate([*official, f"{files.name}.npz", f"{files.name}[_.-]*.npz"], root, files.name, expected)


def _parts(
    folder: Path, files: Sequence[str], read: Callable[[Path], tuple[NDArray[Any], NDArray[Any]]]
) -> dict[str, tuple[Any, Any]]:
    missing = [file for file in files if not (folder / file).is_file()]
    if missing:
        raise InputError(f"{folder} lacks {', '.join(missing)}; unpack the official archive again")
    batches = [read(folder / file) for file in files]
    images, labels = ([batch[i] for batch in batches] for i in (0, 1))
    return {"train": (np.concatenate(images[:-1]), np.concatenate(labels[:-1])), "test": (images[-1], labels[-1])}


def _python_batch(file: Path, label: str) -> tuple[NDArray[Any], NDArray[Any]]:
    content = _read_pickle(file)
    data, labels = content.get("data"), content.get(label)
    if not isinstance(data, np.ndarray) or not isinstance(labels, list):
        raise InputError(f"{file} lacks the keys data and {label}; get the official file again")
    if not all(isinstance(one, int) for one in labels):  # lists in lists can stand for more than fits into memory
        raise InputError(f"{file}: {label} are not whole numbers; get the official file again")
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
    """The files hold a red, a green and a blue plane for each image; we keep channels last."""
    return np.ascontiguousarray(rows.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))


def _python_names(file: Path, key: str) -> tuple[str, ...] | None:
    names = _read_pickle(file).get(key) if file.is_file() else None
    with unpickling(file):
        return tuple(map(as_text, names)) if isinstance(names, list) else None


def _text_names(file: Path) -> tuple[str, ...] | None:
    return tuple(file.read_text(encoding="latin1").split()) or None if file.is_file() else None


def _read_pickle(file: Path) -> dict[str, Any]:
    """The dictionary in a batch or meta file: numbers, text, lists and arrays only."""
    with unpickling(file), file.open("rb") as stream:
        content = unpickle(stream, _ALLOWED, encoding="bytes")
        if not isinstance(content, dict):
            raise RefusedError("holds no dictionary, so it is not a CIFAR file")
        return {as_text(key): value.array if isinstance(value, _Array) else value for key, value in content.items()}


class _Array:
    """Stands for an array of numpy until its bytes come, which must be plain numbers."""

    array: NDArray[Any]

    def __init__(self, *_: Any) -> None:
        """numpy's function takes a class, a shape and a type; the state below has all that matters."""

    def __setstate__(self, state: Any) -> None:
        _, shape, kind, by_column, raw = state
        if not isinstance(kind, NumberType) or not isinstance(raw, bytes):
            raise RefusedError("holds an array that is not of plain numbers")
        self.array = np.frombuffer(raw, kind.dtype).reshape(shape, order="F" if by_column else "C")


_ALLOWED: Allowed = {
    **NUMPY,
    "numpy.core.multiarray._reconstruct": _Array,
    "numpy._core.multiarray._reconstruct": _Array,
    "numpy.ndarray": _Array,  # only ever an argument of the above
}
for _set in _SETS:
    SOURCES.add(_set.name, Source(partial(_read, _set), where=partial(lambda files: str(_locate(files)), _set)))
