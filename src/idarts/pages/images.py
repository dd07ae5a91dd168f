"""Small images inside pages, and the colours of more and less that all of them share."""

import base64
import io

import numpy as np
from numpy.typing import NDArray
from PIL import Image

MORE, LESS = (38, 139, 210), (224, 112, 30)  # blue and orange; both stand out from a light and from a dark page


def data_url(pixels: NDArray[np.uint8]) -> str:
    """Pixels (height, width, RGBA) as a PNG in a URL that needs no file.

    >>> data_url(np.zeros((1, 1, 4), dtype=np.uint8))[:22]
    'data:image/png;base64,'
    """
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG", optimize=True)
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
