"""`idarts.ImageClassifier`: a fit with scikit-learn's interface. Only this module needs scikit-learn."""

import logging
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

try:
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.utils import check_random_state
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data
except ImportError as error:
    needs = "idarts.ImageClassifier needs scikit-learn 1.6 or later: pip install 'idarts[cli]'"
    raise ImportError(needs, name=error.name) from error

from idarts.data import load
from idarts.data.arrays import as_images
from idarts.fitting.run import Status, fit
from idarts.training import load as load_model
from idarts.training import probabilities, train

SMALLEST = 4  # pixels of a side that two halvings need

_diagnostics = logging.getLogger(__name__)


class ImageClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc] # scikit-learn has no types
    """A classifier of images whose network is searched and trained in some minutes by `idarts.fit`.

    `X` has the shape (n, height, width), (n, height, width, channels) or (n, channels, height, width), with 1 or 3
    channels. Rows of numbers, (n, features), count as square grey images, as those of scikit-learn's digits are;
    zeros fill the last row of pixels. Whole numbers from 0 to 255 and numbers from 0 to 1 are pixels as they are; all
    others are brought to that range by the smallest and largest number in the `X` of `fit`.

    Args:
        minutes: the time of a fit.
        architecture: train this architecture on all of `X`, without a search and a comparison; the settings then
            decide on the time. Any form that `idarts.arch.parse` reads.
        settings: further settings, of `idarts.fit` or, with an architecture, of `idarts.train`.
        random_state: the seed; with an architecture, a number makes `fit` repeatable bit for bit on one machine.
        out: the folder for the fit's runs, report and model, which the next fit replaces; by default none is kept.

    After `fit`, `classes_` has the labels, `network_` is the network as `idarts.load` returns it.

    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> quick = ImageClassifier(architecture="nas-bench-201:1462", settings={"epochs": 3, "depth": 1, "channels": 8})
    >>> quick.fit(X[:1000], y[:1000]).score(X[1000:], y[1000:]) > 0.5
    True
    """

    def __init__(
        self,
        minutes: float = 20.0,
        *,
        architecture: Any = None,
        settings: Mapping[str, Any] | None = None,
        random_state: Any = 0,
        out: "str | PathLike[str] | None" = None,
    ) -> None:
        self.minutes, self.architecture, self.settings = minutes, architecture, settings
        self.random_state, self.out = random_state, out

    def fit(self, X: Any, y: Any) -> Self:
        """Search and train on images and their labels, which may be of any kind: numbers or texts."""
        flat, y = validate_data(self, _flat(X), y)
        check_classification_targets(y)
        self.classes_, labels = np.unique(column_or_1d(y, warn=True), return_inverse=True)
        self.image_shape_ = _shape(X)
        self.range_ = _range(flat)
        seed = self.random_state
        seed = int(seed if isinstance(seed, int | np.integer) else check_random_state(seed).randint(2**31))
        settings = {"seed": seed, **(self.settings or {})}
        data = (self._pixels(flat), labels)
        with self._folder() as folder:
            if self.architecture is None:
                fit(data, minutes=self.minutes, out=folder, overwrite=True, on_status=_report, **settings)
            else:
                settings["batch"] = min(settings.get("batch", 64), len(labels))
                train(self.architecture, load(data, hold_out=0.0), out=folder, overwrite=True, **settings)
            self.network_ = load_model(folder)
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """The probability of each class for each image, in the order of `classes_`."""
        check_is_fitted(self)
        if _shape(X) not in ((), self.image_shape_):
            raise ValueError(f"X has images of shape {_shape(X)}, but fit had {self.image_shape_ or 'rows'}")
        flat = validate_data(self, _flat(X), reset=False)
        pixels = as_images(self._pixels(flat), "X")
        shares: NDArray[np.float64] = probabilities(self.network_, pixels).double().numpy()
        return shares

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of each image."""
        chosen = self.predict_proba(X).argmax(axis=1)
        labels: NDArray[Any] = self.classes_[chosen]
        return labels

    def _pixels(self, flat: NDArray[Any]) -> NDArray[np.uint8]:
        """Rows of numbers as images of bytes."""
        low, high = self.range_
        scaled = (flat.astype(np.float64) - low) * (255 / (high - low))
        pixels = scaled.clip(0, 255).round().astype(np.uint8)
        if self.image_shape_:
            return pixels.reshape(-1, *self.image_shape_)
        side = max(SMALLEST, math.isqrt(pixels.shape[1] - 1) + 1)
        square = np.zeros((len(pixels), side * side), np.uint8)
        square[:, : pixels.shape[1]] = pixels
        return square.reshape(-1, side, side)

    @contextmanager
    def _folder(self) -> Iterator[Path]:
        if self.out is not None:
            yield Path(self.out)
            return
        with TemporaryDirectory(prefix="idarts-") as folder:
            yield Path(folder, "fit")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.non_deterministic = self.architecture is None  # how much is done depends on the machine's speed
        return tags


def _shape(X: Any) -> tuple[int, ...]:
    """The shape of one image; empty for rows of numbers."""
    shape = getattr(X, "shape", None)
    dimensions = np.asarray(X).shape if shape is None else tuple(shape)
    return dimensions[1:] if len(dimensions) > 2 else ()


def _flat(X: Any) -> Any:
    """Images as rows of numbers, as scikit-learn's checks need them; anything else as it is."""
    return np.asarray(X).reshape(len(X), -1) if _shape(X) else X


def _range(flat: NDArray[Any]) -> tuple[float, float]:
    """The numbers that mean black and white."""
    low, high = float(flat.min()), float(flat.max())
    if low >= 0 and high <= 1 and flat.dtype.kind == "f":
        return 0.0, 1.0
    if low >= 0 and high <= 255 and (flat == flat.round()).all():
        return 0.0, 255.0
    return low, high if high > low else low + 1


def _report(status: Status) -> None:
    _diagnostics.debug("%s: %s, %.0f s left", status.part, status.text, status.left)
