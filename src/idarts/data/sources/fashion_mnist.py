"""Fashion-MNIST from its official idx files (packed or not), Debian's package, torchvision's folder, or npz."""

import gzip
import io
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idarts.data.raw import Raw
from idarts.data.roots import locate
from idarts.data.sources import SOURCES, Root, Source
from idarts.data.sources.npz import from_npz
from idarts.errors import InputError
from idarts.files import read_bounded

CLASSES = ("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot")
DEBIAN = "/usr/share/datasets"  # the folder of the package dataset-fashion-mnist
_NAME = "fashion-mnist"
_AXES = 4  # of an array in an idx file, at most
_FOLDERS = ("", "fashion-mnist/", "fashion_mnist/", "FashionMNIST/raw/")
_FILES = {"train": "train", "test": "t10k"}
_EXPECTED = (
    "train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte, t10k-labels-idx1-ubyte "
    "(.gz or not), or fashion-mnist.npz; Debian's package dataset-fashion-mnist is used without a data root"
)


def _read(_path: str, root: Root) -> Raw:
    file = _locate(root)
    if file.suffix == ".npz":
        raw = from_npz(file)
        return Raw(raw.parts, raw.classes or CLASSES)
    return Raw({part: _pair(file.parent, prefix) for part, prefix in _FILES.items()}, CLASSES)


def _locate(root: Root = None) -> Path:
    images = [f"{folder}train-images-idx3-ubyte{end}" for folder in _FOLDERS for end in ("", ".gz")]
    archives = ["fashion-mnist.npz", "fashion_mnist.npz", "fashion[-_]mnist*.npz"]
    return locate([*images, *archives], root, _NAME, _EXPECTED, fallback=[DEBIAN])


def read_idx(file: Path) -> NDArray[Any]:
    """The array of bytes in an idx file, packed with gzip or not.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "labels").write_bytes(struct.pack(">BBBBI", 0, 0, 8, 1, 3) + bytes([7, 8, 9]))
    ...     read_idx(Path(folder, "labels"))
    array([7, 8, 9], dtype=uint8)
    """
    try:
        content = file.read_bytes()
        if content[:2] == b"\x1f\x8b":
            with gzip.open(io.BytesIO(content)) as stream:
                content = read_bounded(stream, len(content))
    except (OSError, EOFError, zlib.error, InputError) as error:
        raise InputError(f"{file} cannot be read ({error}); get the file again") from None
    if len(content) < 4 or content[:3] != b"\x00\x00\x08":
        raise InputError(f"{file} is not an idx file of bytes; get the official file again")
    header = 4 + 4 * content[3]
    if len(content) < header:
        raise InputError(f"{file} ends in its header; get the file again")
    if not 1 <= content[3] <= _AXES:
        raise InputError(f"{file} says that it has {content[3]} axes, expected 1 to {_AXES}; get the file again")
    shape = struct.unpack(f">{content[3]}I", content[4:header])
    expected = int(np.prod(shape, dtype=object))
    if len(content) - header != expected:
        raise InputError(
            f"{file} holds {len(content) - header} bytes of data, its header says {expected}; get it again"
        )
    return np.frombuffer(content, np.uint8, offset=header).reshape(shape)


def _pair(folder: Path, prefix: str) -> tuple[NDArray[Any], NDArray[Any]]:
    arrays = []
    for name in (f"{prefix}-images-idx3-ubyte", f"{prefix}-labels-idx1-ubyte"):
        file = next((path for path in (folder / name, folder / f"{name}.gz") if path.is_file()), None)
        if file is None:
            raise InputError(f"{folder} lacks {name} (.gz or not); get the official file")
        arrays.append(read_idx(file))
    return arrays[0], arrays[1]


SOURCES.add(_NAME, Source(_read, where=lambda: str(_locate())))
