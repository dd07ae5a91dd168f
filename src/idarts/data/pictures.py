"""Single images of any kind as uint8 RGB of one size, with Pillow."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from idarts.data.arrays import resize
from idarts.errors import InputError

if TYPE_CHECKING:
    from PIL.Image import Image

MOST_PIXELS = 1 << 26  # of an image that must be decoded in full: a quarter of a gigabyte; a small file can claim more
_LARGE = 1 << 22  # pixels above which an image is reduced before it is resized, which takes twelve bytes a pixel
_REDUCTION = 12
_REDUCED = ("L", "RGB", "RGBA", "LA")  # modes whose mean is a colour

# Also of kinds that this Pillow may not read: such a file is then reported, and does not vanish.
_KINDS = "avif bmp gif heic heif jfif jpeg jpg pgm png ppm tif tiff webp"
ENDINGS = frozenset(f".{kind}" for kind in _KINDS.split())


def pictures_in(folder: Path) -> list[Path]:
    """The image files in a folder and its sub-folders, sorted by name, because the order of the file system varies.

    Hidden files and folders are left out: programs keep copies in them, such as thumbnails.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     for name in ("a.png", "b.txt", "deep/.c.png", ".thumbnails/a.png"):
    ...         Path(place, name).parent.mkdir(exist_ok=True)
    ...         Path(place, name).touch()
    ...     [file.name for file in pictures_in(Path(place))]
    ['a.png']
    """
    files = (file for file in folder.rglob("*") if is_picture(file) and not _is_hidden(file.relative_to(folder)))
    return sorted(file for file in files if file.is_file())


def is_picture(file: Path) -> bool:
    """Whether a file is an image by the ending of its name.

    >>> is_picture(Path("a.JPG")), is_picture(Path("Thumbs.db"))
    (True, False)
    """
    return file.suffix.lower() in ENDINGS


def _is_hidden(path: Path) -> bool:
    return any(name.startswith(".") for name in path.parts)


def pillow() -> Any:
    """Pillow's module `Image`, which is an extra.

    >>> pillow().new("L", (2, 1)).size
    (2, 1)
    """
    try:
        from PIL import Image  # noqa: PLC0415 (an extra)
    except ImportError:
        raise InputError("reading image files needs Pillow: pip install 'idarts[cli]'") from None
    return Image


def read_picture(file: Path, size: int) -> Tensor:
    """An image file as uint8 (3, size, size). A damaged file raises the error of its decoder.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pillow().new("L", (20, 10), 7).save(f"{folder}/grey.png")
    ...     picture = read_picture(Path(folder, "grey.png"), 8)
    >>> tuple(picture.shape), picture.unique().tolist()
    ((3, 8, 8), [7])
    """
    with pillow().open(file) as picture:
        return to_tensor(decoded(picture, size, size), size)


def decoded(picture: "Image", height: int, width: int) -> "Image":
    """The pixels of an opened image, upright, at least twice as large as they are needed, but not much larger.

    A large JPEG is decoded at a fraction of its size; any other large image is decoded, then reduced by a whole factor.

    >>> decoded(pillow().new("L", (9000, 3000)), 16, 16).size
    (750, 250)
    """
    from PIL import ImageOps  # noqa: PLC0415 (as above)

    picture.draft("RGB", (2 * width, 2 * height))
    columns, rows = picture.size
    if columns * rows > MOST_PIXELS:
        raise InputError(f"it has {columns} × {rows} pixels, more than {MOST_PIXELS:,}; make it smaller")
    upright = ImageOps.exif_transpose(picture)  # phones store a rotation beside the pixels
    factor = min(columns // (2 * width), rows // (2 * height), _REDUCTION)
    return upright.reduce(factor) if columns * rows > _LARGE and factor > 1 and upright.mode in _REDUCED else upright


def to_tensor(picture: "Image", size: int | None) -> Tensor:
    """A Pillow image as uint8 (3, H, W), stretched to `size` × `size` if that is given.

    >>> to_tensor(pillow().new("RGBA", (4, 4), (0, 0, 0, 0)), None).unique()  # transparent pixels become white
    tensor([255], dtype=torch.uint8)
    """
    # The order in memory stays height, width, channel.
    rgb = torch.from_numpy(np.array(_rgb(picture), dtype=np.uint8)).permute(2, 0, 1)
    return rgb if size is None else resize(rgb[None], size)[0]


def _rgb(picture: "Image") -> "Image":
    if picture.mode.startswith("I"):  # 16 bits per pixel: Pillow's conversion would clip, not scale
        wide: Any = np.asarray(picture).astype(np.int64)
        if picture.mode == "I" and not (wide.min() >= 0 and 255 < wide.max() < 65536):
            raise InputError("an image of 32-bit integers has no agreed range")
        picture = pillow().fromarray((wide >> 8).astype(np.uint8))
    elif picture.mode == "F":
        raise InputError("an image of floats has no agreed range")
    if picture.mode in ("RGBA", "LA", "PA", "La", "RGBa") or "transparency" in picture.info:
        over = picture.convert("RGBA")
        return pillow().alpha_composite(pillow().new("RGBA", over.size, "white"), over).convert("RGB")  # type: ignore[no-any-return]
    return picture.convert("RGB")
