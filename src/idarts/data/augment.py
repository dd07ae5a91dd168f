"""Crop, flip, cutout and normalisation of a whole batch at once, with separate random draws for each image."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch import Tensor
from torch.nn.functional import pad

from idarts.errors import InputError

Draws: TypeAlias = Mapping[str, Tensor]  # one entry per image, along the last axis


@dataclass(frozen=True)
class Augment:
    """Changes to a training image; none by default. `CIFAR` is what the papers use in a search."""

    crop: int = 0  # black pixels added on every side before the original size is cut out at random
    flip: bool = False  # left and right, with probability 1/2
    cutout: int = 0  # side of a square that is set to the mean colour, with its centre anywhere in the image

    def __post_init__(self) -> None:
        for name in ("crop", "cutout"):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 0:
                raise InputError(f"Augment({name}={value!r}): expected a number of pixels, or 0 for none")


NONE = Augment()
CIFAR = Augment(crop=4, flip=True)


def draw(augment: Augment, count: int, height: int, width: int, generator: torch.Generator) -> dict[str, Tensor]:
    """The random choices for `count` images.

    >>> draws = draw(CIFAR, 3, 32, 32, torch.Generator().manual_seed(0))
    >>> {name: tuple(tensor.shape) for name, tensor in draws.items()}
    {'crop': (2, 3), 'flip': (3,)}
    """
    draws = {}
    if augment.crop:
        draws["crop"] = torch.randint(0, 2 * augment.crop + 1, (2, count), generator=generator)
    if augment.flip:
        draws["flip"] = torch.rand(count, generator=generator) < 0.5
    if augment.cutout:
        rows = torch.randint(0, height, (count,), generator=generator)
        columns = torch.randint(0, width, (count,), generator=generator)
        draws["cutout"] = torch.stack([rows, columns])
    return draws


def render(pixels: Tensor, augment: Augment, draws: Draws, scale: Tensor, shift: Tensor) -> Tensor:
    """From uint8 pixels (N, H, W, C) to the network's input (N, C, H, W), float, channels last in memory.

    The input is pixels · scale + shift per channel, in one pass. Cutout comes after it, so that 0 is the mean colour.

    >>> white = torch.full((1, 2, 2, 1), 255, dtype=torch.uint8)
    >>> render(white, NONE, {}, torch.tensor([1 / 255]), torch.tensor([-0.5])).unique()
    tensor([0.5000])
    """
    if "crop" in draws or "flip" in draws:
        pixels = _crop_and_flip(pixels, augment.crop, draws)
    x = torch.addcmul(shift, pixels, scale)
    if "cutout" in draws:
        x.masked_fill_(_square(draws["cutout"], augment.cutout, x.shape[1], x.shape[2]), 0.0)
    return x.permute(0, 3, 1, 2)


def _crop_and_flip(pixels: Tensor, padding: int, draws: Draws) -> Tensor:
    """One look-up for both: for every pixel of the result, its place in the padded image."""
    count, height, width, channels = pixels.shape
    rows = torch.arange(height, device=pixels.device).expand(count, -1)
    columns = torch.arange(width, device=pixels.device).expand(count, -1)
    if "flip" in draws:
        columns = torch.where(draws["flip"][:, None], width - 1 - columns, columns)
    if "crop" in draws:
        top, left = draws["crop"]
        rows, columns = rows + top[:, None], columns + left[:, None]
        pixels = pad(pixels, (0, 0, padding, padding, padding, padding))
    full_height, full_width = pixels.shape[1:3]
    first_rows = torch.arange(count, device=pixels.device)[:, None] * full_height + rows
    places = first_rows[:, :, None] * full_width + columns[:, None, :]
    return pixels.reshape(-1, channels).index_select(0, places.reshape(-1)).view(count, height, width, channels)


def _square(centres: Tensor, side: int, height: int, width: int) -> Tensor:
    """A mask of the squares, (N, H, W, 1), cut off at the border as in the published cutout."""
    rows, columns = centres - side // 2
    down = torch.arange(height, device=centres.device) - rows[:, None]
    across = torch.arange(width, device=centres.device) - columns[:, None]
    inside_down, inside_across = (down >= 0) & (down < side), (across >= 0) & (across < side)
    square: Tensor = inside_down[:, :, None, None] & inside_across[:, None, :, None]
    return square
