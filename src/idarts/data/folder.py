"""Class sub-folders of images, as people keep them."""

import os
import warnings
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch
from PIL import Image
from torch import Tensor
from torch.utils.data import Dataset

from idarts.data.pictures import read_picture
from idarts.errors import InputError

ENDINGS = frozenset([".bmp", ".gif", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp"])
PARTS = {"train": ("train", "training"), "valid": ("val", "valid", "validation"), "test": ("test", "testing")}


class Listing:
    """The files of one part and the class of each."""

    def __init__(self, where: Path, files: Sequence[Path], labels: Sequence[int]) -> None:
        self.where, self.files, self.labels = where, list(files), list(labels)


class PictureFiles(Dataset[Tensor]):
    """Image files that are read when they are asked for."""

    def __init__(self, files: Sequence[Path], size: int) -> None:
        self.files, self.size = list(files), size

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> Tensor:
        try:
            return read_picture(self.files[index], self.size)
        except Exception as error:  # damaged bytes make a decoder raise anything
            raise InputError(f"{self.files[index]} cannot be read as an image ({error}); remove it") from None


def list_folder(path: Path) -> tuple[dict[str, Listing], tuple[str, ...]]:
    """The image files by part, and the names of the classes: the sub-folders of the training images, in order.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("cat/a.png", "cat/deep/b.JPG", "dog/c.png", "dog/notes.txt"):
    ...         file = Path(folder, name)
    ...         file.parent.mkdir(parents=True, exist_ok=True)
    ...         file.touch()
    ...     parts, classes = list_folder(Path(folder))
    >>> classes, parts["train"].labels
    (('cat', 'dog'), [0, 0, 1])
    """
    if not path.is_dir():
        raise InputError(f"{path} is no folder; give a folder with one sub-folder of images per class")
    folders = {child.name.lower(): child for child in _folders(path)}
    own = {part: folders[name] for part, names in PARTS.items() for name in names if name in folders}
    where = own if "train" in own else {"train": path}
    others = [child.name for child in _folders(path) if child not in own.values() and _images(child)]
    if "train" in own and others:
        raise InputError(
            f"{path} has {own['train'].name}/ beside other folders of images such as {others[0]}/; "
            "is it a part, or a class? move the parts, or the classes, into a folder of their own"
        )
    classes = tuple(child.name for child in _folders(where["train"]) if _images(child))
    if len(classes) < 2:
        have = f"one sub-folder with images ({classes[0]})" if classes else "no sub-folder with images"
        raise InputError(
            f"{where['train']} has {have}; put the images of each class into a sub-folder of its own, "
            "at least two classes"
        )
    return {part: _list_part(part_path, classes) for part, part_path in where.items()}, classes


def read_all(listing: Listing, size: int, unreadable: float) -> tuple[Tensor, Tensor]:
    """All images and labels in memory; files that cannot be read are left out up to the share `unreadable`."""
    images = torch.empty((len(listing.files), size, size, 3), dtype=torch.uint8)
    failed: dict[int, str] = {}

    def read(index: int) -> None:
        try:
            images[index] = read_picture(listing.files[index], size).permute(1, 2, 0)
        except Exception as error:  # damaged bytes make a decoder raise anything
            failed[index] = str(error) or type(error).__name__

    with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:  # Pillow decodes outside Python's lock
        list(pool.map(read, range(len(listing.files))))
    good = _without(listing, failed, unreadable)
    kept = images if len(good) == len(images) else images[good]
    return kept.permute(0, 3, 1, 2), torch.tensor(listing.labels)[good]


def open_all(listing: Listing, unreadable: float) -> Listing:
    """The listing without files that are no images; only their headers are read."""
    failed: dict[int, str] = {}
    for index, file in enumerate(listing.files):
        try:
            with Image.open(file):
                pass
        except Exception as error:  # as above
            failed[index] = str(error) or type(error).__name__
    good = _without(listing, failed, unreadable)
    return Listing(listing.where, [listing.files[i] for i in good], [listing.labels[i] for i in good])


def _without(listing: Listing, failed: dict[int, str], unreadable: float) -> list[int]:
    total = len(listing.files)
    if failed:
        first = min(failed)
        names = ", ".join(str(listing.files[i].relative_to(listing.where)) for i in sorted(failed)[:5])
        names += ", …" if len(failed) > 5 else ""
        what = f"{listing.where}: {len(failed)} of {total} images cannot be read ({names}; the first: {failed[first]})"
        what = what.replace("\n", " ")
        if len(failed) > unreadable * total or len(failed) == total:
            raise InputError(f"{what}; over {unreadable:.0%}: repair or remove them, or allow more of them")
        warnings.warn(f"{what}; they are left out", UserWarning, stacklevel=2)
    return [index for index in range(total) if index not in failed]


def _list_part(path: Path, classes: Sequence[str]) -> Listing:
    found = {child.name: files for child in _folders(path) if (files := _images(child))}
    strange = sorted(set(found) - set(classes))
    if strange:
        raise InputError(
            f"{path} has the class {strange[0]!r}, which the training images lack; expected {', '.join(classes)}"
        )
    if not found:
        raise InputError(f"{path} holds no images; fill or remove it")
    pairs = [(file, label) for label, name in enumerate(classes) for file in found.get(name, [])]
    return Listing(path, [file for file, _ in pairs], [label for _, label in pairs])


def _folders(path: Path) -> list[Path]:
    return sorted(child for child in path.iterdir() if child.is_dir() and not child.name.startswith("."))


def _images(path: Path) -> list[Path]:
    """By name in a fixed order, whatever the file system says first."""
    files = (file for file in path.rglob("*") if file.suffix.lower() in ENDINGS and not file.name.startswith("."))
    return sorted(file for file in files if file.is_file())
