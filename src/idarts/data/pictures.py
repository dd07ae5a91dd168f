"""Single images of any kind as uint8 RGB of one size, with Pillow."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image, ImageOps
from torch import Tensor

from idarts.data.arrays import resize
from idarts.errors import InputError


def read_picture(file: Path, size: int) -> Tensor:
    """An image file as uint8 (3, size, size); raises whatever its decoder raises when it is damaged.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Image.new("L", (20, 10), 7).save(f"{folder}/grey.png")
    ...     picture = read_picture(Path(folder, "grey.png"), 8)
    >>> tuple(picture.shape), picture.unique().tolist()
    ((3, 8, 8), [7])
    """
    with Image.open(file) as picture:
        picture.draft("RGB", (2 * size, 2 * size))  # large JPEGs are decoded at a fraction of their size
        upright = ImageOps.exif_transpose(picture)  # phones store a turn beside the pixels
        return to_tensor(upright, size)


def to_tensor(picture: Image.Image, size: int | None) -> Tensor:
    """A Pillow image as uint8 (3, H, W), stretched to `size` × `size` where one is given.

    >>> to_tensor(Image.new("RGBA", (4, 4), (0, 0, 0, 0)), None).unique()  # what is transparent becomes white
    tensor([255], dtype=torch.uint8)
    """
    # Height, width, channel stays the order in memory.
    rgb = torch.from_numpy(np.array(_rgb(picture), dtype=np.uint8)).permute(2, 0, 1)
    return rgb if size is None else resize(rgb[None], size)[0]


def _rgb(picture: Image.Image) -> Image.Image:
    if picture.mode.startswith("I"):  # 16 bits per pixel: Pillow's own conversion would clip, not scale
        wide: Any = np.asarray(picture).astype(np.int64)
        if picture.mode == "I" and not (wide.min() >= 0 and 255 < wide.max() < 65536):
            raise InputError("an image of 32-bit integers has no agreed range")
        picture = Image.fromarray((wide >> 8).astype(np.uint8))
    elif picture.mode == "F":
        raise InputError("an image of floats has no agreed range")
    if picture.mode in ("RGBA", "LA", "PA", "La", "RGBa") or "transparency" in picture.info:
        over = picture.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", over.size, "white"), over).convert("RGB")
    return picture.convert("RGB")
