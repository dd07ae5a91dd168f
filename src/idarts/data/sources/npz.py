"""Images in a numpy archive, under any of the usual keys."""

import io
import math
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idarts.data.raw import Raw
from idarts.data.sources import SOURCES, Root, Source
from idarts.errors import InputError
from idarts.files import largest

_IMAGES, _LABELS = ("x", "images", "image", "data", "imgs"), ("y", "labels", "label", "targets", "target")
_PARTS = {"train": ("train", "training"), "valid": ("valid", "val", "validation"), "test": ("test", "testing")}
_NAMES = ("class_names", "classes", "label_names", "names")
_HEADER = 1 << 16  # bytes that hold an array's header, and that are read at a time
KEYS = "x_train, y_train, x_test, y_test (or train_images, train_labels, …; x, y without a test set; class_names)"


def from_npz(path: "str | Path") -> Raw:
    """The arrays of an archive by part. Keys: `KEYS`, and the same with `val` or `valid`; case does not matter.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.savez(f"{folder}/a.npz", train_images=np.zeros((4, 8, 8)), train_labels=np.arange(4))
    ...     sorted(from_npz(f"{folder}/a.npz").parts)
    ['train']
    """
    file = Path(path)
    with open_npz(file) as stored:
        arrays = {key.lower(): read for key, read in stored.items()}
        keys = {part: pair for part, words in _PARTS.items() if (pair := _pair(arrays, words, file))}
        if "train" not in keys:
            plain = _pair(arrays, ("",), file)
            if plain is None:
                known = ", ".join(arrays) or "(none)"
                raise InputError(f"{file}: no training images among the keys {known}; expected {KEYS}")
            keys["train"] = plain
        named = next((key for key in _NAMES if key in arrays), None)
        parts = {part: (arrays[images](), arrays[labels]()) for part, (images, labels) in keys.items()}
        names = None if named is None else arrays[named]().reshape(-1)
    return Raw(parts, None if names is None else tuple(map(str, names)))


@contextmanager
def open_npz(file: Path) -> Iterator[dict[str, Callable[[], NDArray[Any]]]]:
    """Functions that read the arrays of an archive, by key; one line for everything that reading can raise.

    >>> with open_npz(Path("nothing.npz")) as arrays:
    ...     arrays["x"]()
    Traceback (most recent call last):
    idarts.errors.InputError: there is no file nothing.npz; give the path of an .npz archive
    """
    if not file.is_file():
        raise InputError(f"there is no file {file}; give the path of an .npz archive")
    if not zipfile.is_zipfile(file):
        raise InputError(f"{file} is not a complete .npz archive; save one with numpy.savez, keys {KEYS}")
    try:
        with zipfile.ZipFile(file) as archive:
            members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
            yield {key: partial(_array, archive, info, file) for key, info in members.items()}
    except InputError:
        raise
    except Exception as error:  # damaged bytes can raise anything, from zipfile and from its decoders
        reason = " ".join(str(error).split()) or type(error).__name__
        raise InputError(f"{file} cannot be read as an .npz archive ({reason}); is it complete?") from None


def _array(archive: zipfile.ZipFile, info: zipfile.ZipInfo, file: Path) -> NDArray[Any]:
    """One array. Objects are refused, because they would have to be unpickled; so is one that is not as large as said.

    numpy reserves memory for any shape that a header names, so the header is compared with the size of the member.
    """
    where = f"{file}: {info.filename.removesuffix('.npy')}"
    if info.file_size > largest(info.compress_size):
        raise InputError(f"{where} decompresses to {info.file_size:,} bytes; such a file is an attack, or damaged")
    try:
        with archive.open(info) as stream:
            start = stream.read(min(info.file_size, _HEADER))
            header = io.BytesIO(start)
            version = np.lib.format.read_magic(header)
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, by_column, kind = read(header)
            if kind.hasobject or math.prod(shape) * kind.itemsize != info.file_size - header.tell():
                raise ValueError("objects, or another size")
            content = bytearray(start[header.tell() :])
            while part := stream.read(_HEADER):
                content += part
            return np.frombuffer(content, kind).reshape(shape, order="F" if by_column else "C")
    except (ValueError, TypeError, SyntaxError):
        raise InputError(
            f"{where} holds Python objects or damaged arrays; save plain arrays with numpy.savez"
        ) from None


def _pair(arrays: Mapping[str, object], words: tuple[str, ...], file: Path) -> tuple[str, str] | None:
    images = _first(arrays, _IMAGES, words)
    labels = _first(arrays, _LABELS, words)
    if (images is None) != (labels is None):
        raise InputError(
            f"{file}: {images or labels} has no {'images' if images is None else 'labels'} beside it; expected {KEYS}"
        )
    return None if images is None or labels is None else (images, labels)


def _first(arrays: Mapping[str, object], kinds: tuple[str, ...], words: tuple[str, ...]) -> str | None:
    candidates = [
        f"{a}_{b}" if b else a for kind in kinds for word in words for a, b in ((kind, word), (word, kind)) if a
    ]
    return next((key for key in (*candidates, *(c.replace("_", "") for c in candidates)) if key in arrays), None)


def _read(path: str, _root: Root) -> Raw:
    return from_npz(Path(path).expanduser())


SOURCES.add("npz", Source(_read, path="PATH"))
