"""Images in a numpy archive, under any of the usual keys."""

import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idarts.data.raw import Raw
from idarts.data.sources import SOURCES, Root, Source
from idarts.errors import InputError

_IMAGES, _LABELS = ("x", "images", "image", "data", "imgs"), ("y", "labels", "label", "targets", "target")
_PARTS = {"train": ("train", "training"), "valid": ("valid", "val", "validation"), "test": ("test", "testing")}
_NAMES = ("class_names", "classes", "label_names", "names")
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
    arrays = {key.lower(): value for key, value in read_npz(file).items()}
    parts = {part: pair for part, words in _PARTS.items() if (pair := _pair(arrays, words, file))}
    if "train" not in parts:
        plain = _pair(arrays, ("",), file)
        if plain is None:
            raise InputError(
                f"{file}: no training images among the keys {', '.join(arrays) or '(none)'}; expected {KEYS}"
            )
        parts["train"] = plain
    names = next((arrays[key] for key in _NAMES if key in arrays), None)
    return Raw(parts, None if names is None else tuple(str(name) for name in names.reshape(-1)))


def read_npz(file: Path) -> dict[str, NDArray[Any]]:
    """All arrays of an archive. Objects in it are refused, because they would have to be unpickled.

    >>> read_npz(Path("nothing.npz"))
    Traceback (most recent call last):
    idarts.errors.InputError: there is no file nothing.npz; give the path of an .npz archive
    """
    if not file.is_file():
        raise InputError(f"there is no file {file}; give the path of an .npz archive")
    if not zipfile.is_zipfile(file):
        raise InputError(f"{file} is not a complete .npz archive; save one with numpy.savez, keys {KEYS}")
    try:
        with np.load(file, allow_pickle=False) as archive:
            return {key: archive[key] for key in archive.files}
    except ValueError:
        raise InputError(f"{file} holds Python objects or damaged arrays; save plain arrays with numpy.savez") from None
    except (OSError, EOFError, KeyError, zipfile.BadZipFile, zlib.error) as error:
        raise InputError(f"{file} cannot be read as an .npz archive ({error}); is it complete?") from None


def _pair(arrays: dict[str, NDArray[Any]], words: tuple[str, ...], file: Path) -> tuple[Any, Any] | None:
    images = _first(arrays, _IMAGES, words)
    labels = _first(arrays, _LABELS, words)
    if (images is None) != (labels is None):
        raise InputError(
            f"{file}: {images or labels} has no {'images' if images is None else 'labels'} beside it; expected {KEYS}"
        )
    return None if images is None or labels is None else (arrays[images], arrays[labels])


def _first(arrays: dict[str, NDArray[Any]], kinds: tuple[str, ...], words: tuple[str, ...]) -> str | None:
    candidates = [
        f"{a}_{b}" if b else a for kind in kinds for word in words for a, b in ((kind, word), (word, kind)) if a
    ]
    return next((key for key in (*candidates, *(c.replace("_", "") for c in candidates)) if key in arrays), None)


def _read(path: str, _root: Root) -> Raw:
    return from_npz(Path(path).expanduser())


SOURCES.add("npz", Source(_read, path="PATH"))
