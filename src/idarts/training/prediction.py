"""Classes of image files, by the preprocessing that the network was trained with."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageOps
from torch import Tensor, nn

from idarts.data import Batches, Images
from idarts.data.arrays import resize
from idarts.data.pictures import to_tensor
from idarts.errors import InputError
from idarts.training.card import COLOURS, Card, card_of

BATCH = 64  # images that are read and classified at a time


@dataclass(frozen=True)
class Prediction:
    """The most probable classes of one file, the first one first, or why there are none."""

    file: Path
    classes: tuple[tuple[str, float], ...] = ()
    problem: str | None = None


def predict(net: nn.Module, files: "Iterable[str | PathLike[str]]", top: int = 5) -> Iterator[Prediction]:
    """The `top` most probable classes of each image file, by a network that `idarts.load` gave.

    A file that cannot be read gives a prediction with a `problem`; the others go on.

    >>> list(predict(nn.Identity(), ["cat.png"]))
    Traceback (most recent call last):
    idarts.errors.InputError: the network has no card, expected one that idarts.load gave
    """
    card = card_of(net)
    if card.in_channels not in COLOURS:
        raise InputError(f"the network takes images of {card.in_channels} channels, which no image file has")
    if top < 1:
        raise InputError(f"top is {top}, expected at least 1")
    paths = [Path(file) for file in files]
    for start in range(0, len(paths), BATCH):
        yield from _batch(net, card, paths[start : start + BATCH], top)


def _batch(net: nn.Module, card: Card, files: Sequence[Path], top: int) -> Iterator[Prediction]:
    read = [_read(file, card) for file in files]
    good = [pixels for pixels in read if isinstance(pixels, Tensor)]
    found = iter(_probabilities(net, card, torch.stack(good)).tolist() if good else [])
    for file, pixels in zip(files, read, strict=True):
        if isinstance(pixels, str):
            yield Prediction(file, problem=pixels)
        else:
            ranked = sorted(zip(card.labels, next(found), strict=True), key=lambda pair: -pair[1])
            yield Prediction(file, tuple(ranked[:top]))


@torch.no_grad()
def _probabilities(net: nn.Module, card: Card, pixels: Tensor) -> Tensor:
    """Through the very code that training's batches come from."""
    part = Images(pixels, torch.zeros(len(pixels), dtype=torch.int64), card.mean, card.std)
    device = next(net.parameters()).device
    images, _ = next(Batches(part, len(pixels), shuffle=False, device=device))
    return torch.softmax(net(images).float(), dim=1).cpu()


def _read(file: Path, card: Card) -> Tensor | str:
    try:
        return read_image(file, card)
    except FileNotFoundError:
        return f"{file} is not there"
    except Exception as error:  # damaged bytes make a decoder raise anything
        why = " ".join(str(getattr(error, "strerror", None) or error).split())
        return f"{file} cannot be read as an image ({why or type(error).__name__})"


def read_image(file: Path, card: Card) -> Tensor:
    """An image file as uint8 (C, H, W) of the card's size and colour, read as `folder:` data are.

    >>> import tempfile
    >>> from idarts.arch import parse
    >>> card = Card(parse("DARTS_V2"), None, 1, (4, 6), mean=(0.5,), std=(0.2,), labels=("cat", "dog"))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Image.new("RGBA", (20, 10), (0, 0, 0, 0)).save(f"{folder}/clear.png")
    ...     picture = read_image(Path(folder, "clear.png"), card)
    >>> tuple(picture.shape), picture.unique().tolist()
    ((1, 4, 6), [255])
    """
    height, width = card.image
    with Image.open(file) as picture:
        picture.draft("RGB", (2 * width, 2 * height))  # large JPEGs are decoded at a fraction of their size
        rgb = to_tensor(ImageOps.exif_transpose(picture), None)
    found = resize(rgb[None], height, width)[0]
    if card.in_channels == 3:
        return found
    grey = Image.fromarray(found.permute(1, 2, 0).numpy()).convert("L")
    return torch.from_numpy(np.array(grey, dtype=np.uint8))[None]
