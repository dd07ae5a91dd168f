"""A folder of images with one sub-folder for each class."""

import os
import warnings
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch
from torch import Tensor
from torch.utils.data import Dataset

from idarts.data.pictures import ENDINGS, pictures_in, pillow, read_picture
from idarts.data.raw import Options, Raw, Reader
from idarts.data.sources import SOURCES, Root, Source
from idarts.errors import InputError

PARTS = {"train": ("train", "training"), "valid": ("val", "valid", "validation"), "test": ("test", "testing")}
SIZE = 32  # the side of the images unless `image` is given: the search spaces are made for it


class PictureFiles(Dataset[Tensor]):
    """Image files that are read during use."""

    def __init__(self, files: Sequence[Path], size: int) -> None:
        self.files, self.size = list(files), size

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> Tensor:
        try:
            return read_picture(self.files[index], self.size)
        except Exception as error:  # damaged bytes make a decoder raise anything
            raise InputError(f"{self.files[index]} cannot be read as an image ({error}); remove it") from None


class Listing(Reader):
    """The image files of one part, and the class of each."""

    may_skip = True

    def __init__(self, folder: Path, files: Sequence[Path], labels: Sequence[int], every_class: bool) -> None:
        self.folder, self.labels = folder, list(labels)
        self.every_class = every_class  # each class needs an image that can be read
        self.files: list[Path] = list(files)

    def size(self, options: Options) -> int:
        return len(self.files) * 3 * (options.image or SIZE) ** 2

    def read(self, options: Options) -> tuple[Tensor, Tensor]:
        size = options.image or SIZE
        images = torch.empty((len(self.files), size, size, 3), dtype=torch.uint8)
        failed: dict[int, str] = {}

        def read_one(index: int) -> None:
            try:
                images[index] = read_picture(self.files[index], size).permute(1, 2, 0)
            except Exception as error:  # damaged bytes make a decoder raise anything
                failed[index] = str(error) or type(error).__name__

        with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:  # Pillow decodes outside Python's lock
            list(pool.map(read_one, range(len(self.files))))
        good = self._keep_readable(failed, options.unreadable)
        kept = images if len(good) == len(images) else images[good]
        return kept.permute(0, 3, 1, 2), torch.tensor(self.labels)

    def open(self, options: Options) -> tuple[Dataset[Tensor], Tensor]:
        """Only the headers are read, to leave out files that are not images."""
        failed: dict[int, str] = {}
        for index, file in enumerate(self.files):
            try:
                with pillow().open(file):
                    pass
            except Exception as error:  # as above
                failed[index] = str(error) or type(error).__name__
        self._keep_readable(failed, options.unreadable)
        return PictureFiles(self.files, options.image or SIZE), torch.tensor(self.labels)

    def _keep_readable(self, failed: dict[int, str], unreadable: float) -> list[int]:
        """Keep the other files, and return their indices; an error if more than the share `unreadable` failed."""
        total = len(self.files)
        if failed:
            first = failed[min(failed)]
            names = ", ".join(str(self.files[i].relative_to(self.folder)) for i in sorted(failed)[:5])
            names += ", …" if len(failed) > 5 else ""
            problem = f"{self.folder}: {len(failed)} of {total} images cannot be read ({names}; the first: {first})"
            problem = problem.replace("\n", " ")
            if len(failed) > unreadable * total or len(failed) == total:
                raise InputError(f"{problem}, more than {unreadable:.0%}; repair or remove them")
            self._require_classes(failed)
            warnings.warn(f"{problem}; they are left out", UserWarning, stacklevel=2)
        good = [index for index in range(total) if index not in failed]
        self.files, self.labels = [self.files[index] for index in good], [self.labels[index] for index in good]
        return good

    def _require_classes(self, failed: dict[int, str]) -> None:
        kept = {label for index, label in enumerate(self.labels) if index not in failed}
        lost = next((index for index in sorted(failed) if self.labels[index] not in kept), None)
        if self.every_class and lost is not None:
            name, *_ = self.files[lost].relative_to(self.folder).parts
            why = failed[lost].replace("\n", " ")
            raise InputError(
                f"{self.folder / name} holds no image that can be read (the first: {why}); repair or convert them, or "
                "remove the folder"
            )


def list_folder(path: Path) -> Raw:
    """The image files by part. The classes are the sub-folders of the training images, in alphabetical order.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("cat/a.png", "cat/deep/b.JPG", "dog/c.png", "dog/notes.txt"):
    ...         file = Path(folder, name)
    ...         file.parent.mkdir(parents=True, exist_ok=True)
    ...         file.touch()
    ...     raw = list_folder(Path(folder))
    >>> raw.classes, raw.parts["train"][0].labels
    (('cat', 'dog'), [0, 0, 1])
    """
    if not path.is_dir():
        raise InputError(f"there is no folder {path}; give a folder with one sub-folder of images for each class")
    folders = {child.name.lower(): child for child in _folders(path)}
    named = {part: folders[name] for part, names in PARTS.items() for name in names if name in folders}
    parts = named if "train" in named else {"train": path}
    others = [child.name for child in _folders(path) if child not in named.values() and pictures_in(child)]
    if "train" in named and others:
        raise InputError(
            f"{path} has {named['train'].name}/ beside other folders of images such as {others[0]}/; "
            f"if all of them are classes, put them into {path / 'train'}/; if it is a part, move the others away"
        )
    full = {child.name: bool(pictures_in(child)) for child in _folders(parts["train"])}
    classes = tuple(name for name, holds_images in full.items() if holds_images)
    if len(classes) < 2:
        have = f"one sub-folder with images ({classes[0]})" if classes else "no sub-folder with images"
        raise InputError(
            f"{parts['train']} has {have}; put the images of each class into its sub-folder, at least two classes"
        )
    if len(classes) < len(full):
        empty = next(name for name, holds_images in full.items() if not holds_images)
        raise InputError(
            f"{parts['train'] / empty} holds no images ({', '.join(sorted(ENDINGS))}); add images of this class, or "
            "remove the folder"
        )
    return Raw({part: (_listing(folder, classes, part == "train"), None) for part, folder in parts.items()}, classes)


def _listing(path: Path, classes: Sequence[str], every_class: bool) -> Listing:
    images = {child.name: files for child in _folders(path) if (files := pictures_in(child))}
    unknown = sorted(set(images) - set(classes))
    if unknown:
        raise InputError(
            f"{path} has the class {unknown[0]!r}, which the training images lack; expected {', '.join(classes)}"
        )
    if not images:
        raise InputError(f"{path} holds no images; fill or remove it")
    pairs = [(file, label) for label, name in enumerate(classes) for file in images.get(name, [])]
    return Listing(path, [file for file, _ in pairs], [label for _, label in pairs], every_class)


def _folders(path: Path) -> list[Path]:
    return sorted(child for child in path.iterdir() if child.is_dir() and not child.name.startswith("."))


def _read(path: str, _root: Root) -> Raw:
    pillow()  # its absence is one error, not one for each file
    return list_folder(Path(path).expanduser())


SOURCES.add("folder", Source(_read, path="PATH"))
