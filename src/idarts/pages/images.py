"""Small images inside pages, and the colours of more and less that all of them share."""

import base64
import io
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idarts.errors import InputError

THUMBNAIL = 96  # pixels, of the longer side at most
_EXACT = 48  # up to this size an image stays as it is, pixel by pixel
MORE, LESS = (38, 139, 210), (224, 112, 30)  # blue and orange; both stand out from a light and from a dark page


def data_url(pixels: NDArray[np.uint8]) -> str:
    """Pixels (height, width, RGBA) as a PNG in a URL that needs no file.

    >>> data_url(np.zeros((1, 1, 4), dtype=np.uint8))[:22]
    'data:image/png;base64,'
    """
    file = io.BytesIO()
    _pillow().fromarray(pixels).save(file, "PNG", optimize=True)
    return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"


def shaded(more: NDArray[np.bool_], strength: NDArray[np.float64]) -> NDArray[np.uint8]:
    """Pixels in the colour of more or of less, the more opaque the stronger.

    >>> shaded(np.array([[True, False]]), np.array([[1.0, 0.0]])).tolist()
    [[[38, 139, 210, 255], [224, 112, 30, 0]]]
    """
    pixels: NDArray[np.uint8] = np.empty((*more.shape, 4), dtype=np.uint8)
    pixels[..., :3] = np.where(more[..., None], MORE, LESS)
    pixels[..., 3] = np.round(255 * strength)
    return pixels


def thumbnail(image: NDArray[np.uint8]) -> str:
    """An image (channels, height, width) as a small picture in a URL; of unusual channels only the first is shown.

    >>> thumbnail(np.zeros((1, 8, 8), dtype=np.uint8))[:22], thumbnail(np.zeros((3, 200, 99), dtype=np.uint8))[:23]
    ('data:image/png;base64,', 'data:image/jpeg;base64,')
    """
    colours = np.moveaxis(image, 0, -1) if len(image) == 3 else np.repeat(image[0][..., None], 3, axis=-1)
    picture, file = _pillow().fromarray(np.ascontiguousarray(colours)), io.BytesIO()
    form = "png" if max(picture.size) <= _EXACT else "jpeg"
    picture.thumbnail((THUMBNAIL, THUMBNAIL))
    picture.save(file, form)
    return f"data:image/{form};base64,{base64.b64encode(file.getvalue()).decode()}"


def _pillow() -> Any:
    try:
        from PIL import Image  # noqa: PLC0415 (an extra)
    except ImportError:
        raise InputError("pictures in pages need Pillow: pip install 'idarts[report]'") from None
    return Image
