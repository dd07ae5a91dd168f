"""From arrays and tensors of any kind to checked uint8 images and int64 labels."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import interpolate

from idarts.data.raw import Layout
from idarts.data.record import Statistics
from idarts.errors import InputError

CHANNELS = (1, 3)  # these tell NCHW from NHWC; other counts need a layout
_CHUNK = 4096  # images converted at a time, so that float copies stay small


def as_images(x: Any, where: str, *, layout: Layout = "auto", scale: float | None = None) -> Tensor:
    """Images as uint8 (N, C, H, W): from (N, H, W), (N, H, W, C) or (N, C, H, W) of numpy or torch.

    Integers must lie in 0…255; floats in 0…1 or 0…255. `scale` is the factor to 0…255 (default: see `scale_of`).

    >>> as_images(np.ones((5, 8, 8, 3), dtype=np.float32), "example").shape
    torch.Size([5, 3, 8, 8])
    >>> as_images(np.full((5, 8, 8), np.nan), "x_train")
    Traceback (most recent call last):
    idarts.errors.InputError: x_train: image 0 holds NaN or infinite values; repair or remove it
    """
    pixels = _channels_last(_tensor(x, where), where, layout, isinstance(x, Tensor))
    _require_finite(pixels, where)
    if pixels.dtype != torch.uint8:
        factor = scale_of(x, where) if scale is None else scale
        pixels = torch.cat([_to_uint8(chunk, factor, where) for chunk in pixels.split(_CHUNK)])
    # In memory the order stays height, width, channel, as numpy and Pillow give it and as batches need it.
    return pixels.contiguous().permute(0, 3, 1, 2)


def scale_of(x: Any, where: str) -> float:
    """The factor that brings pixels to 0…255: 255 for floats in 0…1 and for booleans, else 1.

    >>> scale_of(np.array([0.0, 1.0]), "x"), scale_of(np.array([0, 1]), "x"), scale_of(np.array([0.0, 9.0]), "x")
    (255.0, 1.0, 1.0)
    """
    tensor = _tensor(x, where)
    if tensor.dtype == torch.bool:
        return 255.0
    return 255.0 if tensor.is_floating_point() and (tensor.numel() == 0 or float(tensor.max()) <= 1) else 1.0


def as_labels(y: Any, count: int, where: str, classes: int | None = None) -> Tensor:
    """Labels as int64 (N,), checked against the number of images and, if known, of classes.

    >>> as_labels(np.array([[1], [0]], dtype=np.uint8), 2, "y_train")
    tensor([1, 0])
    >>> as_labels([0, 7], 2, "y_test", classes=5)
    Traceback (most recent call last):
    idarts.errors.InputError: y_test: label 7 at index 1 is out of range, expected 0 to 4 (5 classes)
    """
    labels = _tensor(y, where)
    if labels.is_floating_point() or labels.is_complex() or labels.dtype == torch.bool:
        raise InputError(
            f"{where}: labels are {_kind(labels)}, expected integers from 0; convert them, e.g. .astype(int)"
        )
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1:
        hint = "; take the argmax of one-hot labels" if labels.ndim == 2 else ""
        raise InputError(f"{where}: labels have shape {tuple(labels.shape)}, expected ({count},){hint}")
    if len(labels) != count:
        raise InputError(f"{where}: {len(labels)} labels for {count} images; give one label per image")
    labels = labels.to(torch.int64)
    # If the number of classes is unknown, a label beyond the number of images must be a mistake.
    highest = classes if classes is not None else max(count, 2)
    wrong = ((labels < 0) | (labels >= highest)).nonzero()
    if len(wrong):
        index = int(wrong[0])
        known = f"{classes} classes" if classes is not None else f"no more classes than the {count} images"
        raise InputError(
            f"{where}: label {int(labels[index])} at index {index} is out of range, "
            f"expected 0 to {highest - 1} ({known})"
        )
    return labels


def require_classes(labels: Tensor, names: Sequence[str], where: str) -> None:
    """Refuse labels of a single class.

    >>> require_classes(torch.tensor([1, 1]), ["cat", "dog"], "train")
    Traceback (most recent call last):
    idarts.errors.InputError: train: all 2 images are of one class ('dog'); a search needs at least two
    """
    present = labels.unique()
    if len(present) < 2:
        name = names[int(present[0])]
        raise InputError(f"{where}: all {len(labels)} images are of one class ({name!r}); a search needs at least two")


def resize(images: Tensor, height: int, width: int | None = None) -> Tensor:
    """Images resized (bilinear, antialiased); to a square if no width is given.

    Arrays and files are both resized here, because Pillow's results differ by a level here and there.

    >>> resize(torch.full((2, 1, 8, 8), 7, dtype=torch.uint8), 16).unique()
    tensor([7], dtype=torch.uint8)
    """
    size = (height, height if width is None else width)
    if images.shape[-2:] == size:
        return images
    parts = []
    for chunk in images.split(_CHUNK):
        resized = interpolate(chunk.float(), size, mode="bilinear", antialias=True, align_corners=False)
        parts.append(resized.round_().clamp_(0, 255).to(torch.uint8).permute(0, 2, 3, 1).contiguous())
    return torch.cat(parts).permute(0, 3, 1, 2)


def statistics(images: Tensor) -> tuple[Statistics, Statistics]:
    """The exact mean and standard deviation of each channel on the scale 0…1, by counting the 256 values.

    >>> statistics(torch.tensor([0, 255], dtype=torch.uint8).reshape(2, 1, 1, 1))
    ((0.5,), (0.5,))
    """
    values = torch.arange(256, dtype=torch.float64) / 255
    means, stds = [], []
    for channel in range(images.shape[1]):
        counts = torch.bincount(images[:, channel].reshape(-1), minlength=256).to(torch.float64)
        share = counts / counts.sum()
        mean = float(share @ values)
        means.append(mean)
        stds.append(math.sqrt(float(share @ (values - mean) ** 2)) or 1.0)  # a constant channel needs no scale
    return tuple(means), tuple(stds)


def _tensor(x: Any, where: str) -> Tensor:
    if isinstance(x, Tensor):
        return x.detach().cpu()
    try:
        array: NDArray[Any] = np.asarray(x)
    except ValueError:
        raise InputError(f"{where}: rows of different lengths, expected one array of numbers") from None
    if array.dtype.kind not in "buif":
        raise InputError(f"{where}: the array is of type {array.dtype}, expected numbers")
    if array.dtype.kind in "ui" and array.dtype != np.uint8:
        array = array.astype(np.int64)  # torch cannot compute with wider unsigned types
    elif array.dtype.kind == "f" and array.dtype.itemsize not in (4, 8):
        array = array.astype(np.float32)
    array = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("="))
    return torch.from_numpy(array if array.flags.writeable else array.copy())


def _channels_last(x: Tensor, where: str, layout: Layout, torch_habit: bool) -> Tensor:
    """As (N, H, W, C). If both ends can be channels, tensors are taken as NCHW and arrays as NHWC."""
    if layout not in ("auto", "NCHW", "NHWC"):
        raise InputError(f"layout is {layout!r}, expected auto, NCHW or NHWC")
    if x.ndim not in (3, 4) or 0 in x.shape[1:]:
        raise InputError(
            f"{where}: images have shape {tuple(x.shape)}, expected (N, H, W), (N, H, W, C) or (N, C, H, W)"
        )
    if len(x) == 0:
        raise InputError(f"{where}: there are no images")
    if x.ndim == 3:
        return x.unsqueeze(-1)
    first, last = x.shape[1] in CHANNELS, x.shape[3] in CHANNELS
    if layout == "auto" and not (first or last):
        raise InputError(
            f"{where}: images have shape {tuple(x.shape)}, without an axis of 1 or 3 channels; "
            "convert them to grey or RGB, or give the layout ('NHWC' or 'NCHW')"
        )
    nchw = layout == "NCHW" or (layout == "auto" and first and (torch_habit or not last))
    return x.permute(0, 2, 3, 1) if nchw else x


def _require_finite(pixels: Tensor, where: str) -> None:
    if not pixels.is_floating_point():
        return
    for start in range(0, len(pixels), _CHUNK):
        bad = (~torch.isfinite(pixels[start : start + _CHUNK])).flatten(1).any(1).nonzero()
        if len(bad):
            raise InputError(f"{where}: image {start + int(bad[0])} holds NaN or infinite values; repair or remove it")


def _to_uint8(pixels: Tensor, scale: float, where: str) -> Tensor:
    scaled = pixels.to(torch.float64) * scale
    low, high = float(scaled.min()) / scale, float(scaled.max()) / scale
    if low < 0 or high * scale > 255:
        raise InputError(
            f"{where}: pixels range from {low:.4g} to {high:.4g}, expected {'0 to 1' if scale == 255 else '0 to 255'}"
            "; give raw images, not normalised ones, with at most 8 bits"
        )
    return scaled.round().to(torch.uint8)


def _kind(tensor: Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")
