"""Predict the classes of image files, with the preprocessing of the network's training."""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from glob import glob, has_magic
from os import PathLike
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from idarts.data import Batches, Images
from idarts.data.arrays import resize
from idarts.data.pictures import ENDINGS, decoded, is_picture, pictures_in, to_tensor
from idarts.errors import InputError
from idarts.training.card import COLOURS, Card, card_of

BATCH = 64  # images that are read and classified together


@dataclass(frozen=True)
class Prediction:
    """The most probable classes of one file, in order, or the problem with the file."""

    file: Path
    classes: tuple[tuple[str, float], ...] = ()
    problem: str | None = None


def predict(net: nn.Module, files: "Iterable[str | PathLike[str]]", top: int = 5) -> Iterator[Prediction]:
    """Predict the `top` most probable classes of each image file.

    Args:
        net: a network from `idarts.load`, or any with a `.card`. Its card says how images are read.
        files: image files of any kind that Pillow reads.
        top: how many classes to return for each file.

    Yields:
        One `Prediction` for each file, in order. If a file cannot be read, its `problem` says why.

    >>> import tempfile
    >>> from PIL import Image
    >>> from idarts.arch import parse
    >>> net = nn.Sequential(nn.Flatten(), nn.Linear(12, 2))
    >>> _ = net[1].weight.data.zero_(), net[1].bias.data.copy_(torch.tensor([0.0, 9.0]))
    >>> net.card = Card(parse("DARTS_V2"), None, 3, (2, 2), (0.5,) * 3, (0.2,) * 3, labels=("cat", "dog"))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Image.new("RGB", (20, 10)).save(f"{folder}/dog.png")
    ...     [dog, nothing] = predict(net, [f"{folder}/dog.png", "nothing.png"], top=1)
    >>> dog.classes[0][0], nothing.problem
    ('dog', 'nothing.png does not exist')
    """
    card = card_of(net)
    if card.in_channels not in COLOURS:
        raise InputError(f"the network needs images of {card.in_channels} channels, which no image file has")
    if top < 1:
        raise InputError(f"top is {top}, expected at least 1")
    paths = [Path(file) for file in files]
    for start in range(0, len(paths), BATCH):
        yield from _batch(net, card, paths[start : start + BATCH], top)


def image_files(names: "Iterable[str | PathLike[str]]") -> list[Path]:
    """The files behind names of files, names of folders and patterns such as `photos/*.jpg` or `**/*.png`.

    A folder means all image files in it, in order; a pattern also means those in the folders that it matches. Each file
    comes once. A name that is none of these is kept: `predict` reports it.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     for name in ("b.png", "a.jpg", "notes.txt"):
    ...         Path(place, name).touch()
    ...     [file.name for file in image_files([place, f"{place}/*.png", "lost.png"])]
    ['a.jpg', 'b.png', 'lost.png']
    """
    files: list[Path] = []
    for name in names:
        if not os.path.lexists(name) and has_magic(os.fspath(name)):
            matched = map(Path, sorted(glob(os.fspath(name), recursive=True)))
            matches = [file for match in matched for file in _inside(match) if is_picture(file)]
            if not matches:
                raise InputError(f"no image file matches {os.fspath(name)}")
        else:
            matches = list(_inside(Path(name)))
            if not matches:
                raise InputError(f"the folder {name} holds no images ({', '.join(sorted(ENDINGS))})")
        files += matches
    return list(dict.fromkeys(files))


def _inside(path: Path) -> Iterable[Path]:
    return pictures_in(path) if path.is_dir() else [path]


def _batch(net: nn.Module, card: Card, files: Sequence[Path], top: int) -> Iterator[Prediction]:
    read = [_read(file, card) for file in files]
    good = [pixels for pixels in read if isinstance(pixels, Tensor)]
    rows = iter(probabilities(net, torch.stack(good)).tolist() if good else [])
    for file, pixels in zip(files, read, strict=True):
        if isinstance(pixels, str):
            yield Prediction(file, problem=pixels)
        else:
            ranked = sorted(zip(card.labels, next(rows), strict=True), key=lambda pair: -pair[1])
            yield Prediction(file, tuple(ranked[:top]))


@torch.no_grad()
def probabilities(net: nn.Module, pixels: Tensor) -> Tensor:
    """The probabilities of all classes for images in memory, uint8 (N, C, H, W), by the code that trains on batches.

    >>> from idarts.arch import parse
    >>> net = nn.Sequential(nn.Flatten(), nn.Linear(4, 2))
    >>> net.card = Card(parse("DARTS_V2"), None, 1, (2, 2), (0.5,), (0.2,), labels=("cat", "dog"))
    >>> probabilities(net, torch.zeros(3, 1, 2, 2, dtype=torch.uint8)).shape
    torch.Size([3, 2])
    """
    card, device = card_of(net), next(net.parameters()).device
    size = torch.Size(card.image)
    pixels = pixels if pixels.shape[2:] == size else resize(pixels, *card.image)
    part = Images(pixels, torch.zeros(len(pixels), dtype=torch.int64), card.mean, card.std)
    batches = Batches(part, BATCH, shuffle=False, drop_last=False, device=device)
    return torch.cat([torch.softmax(net(images).float(), dim=1).cpu() for images, _ in batches.one_epoch()])


def _read(file: Path, card: Card) -> Tensor | str:
    try:
        return read_image(file, card)
    except FileNotFoundError:
        return f"{file} does not exist"
    except Exception as error:  # a decoder may raise anything for damaged bytes
        why = " ".join(str(getattr(error, "strerror", None) or error).split())
        return f"{file} cannot be read as an image ({why or type(error).__name__})"


def read_image(file: Path, card: Card) -> Tensor:
    """An image file as uint8 (C, H, W) in the card's size and colour, read in the same way as `folder:` data.

    >>> import tempfile
    >>> from PIL import Image
    >>> from idarts.arch import parse
    >>> card = Card(parse("DARTS_V2"), None, 1, (4, 6), mean=(0.5,), std=(0.2,), labels=("cat", "dog"))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Image.new("RGBA", (20, 10), (0, 0, 0, 0)).save(f"{folder}/clear.png")
    ...     picture = read_image(Path(folder, "clear.png"), card)
    >>> tuple(picture.shape), picture.unique().tolist()
    ((1, 4, 6), [255])
    """
    from PIL import Image  # noqa: PLC0415 (only for image files)

    height, width = card.image
    with Image.open(file) as picture:
        rgb = to_tensor(decoded(picture, height, width), None)
    pixels = resize(rgb[None], height, width)[0]
    if card.in_channels == 3:
        return pixels
    grey = Image.fromarray(pixels.permute(1, 2, 0).numpy()).convert("L")
    return torch.from_numpy(np.array(grey, dtype=np.uint8))[None]
