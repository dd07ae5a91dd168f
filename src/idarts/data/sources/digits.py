"""The 1,797 handwritten digits of 8 × 8 pixels that come with scikit-learn."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from idarts.data.raw import Raw
from idarts.data.sources import SOURCES, Root, Source
from idarts.errors import InputError


def _read(_path: str, _root: Root) -> Raw:
    x, y = _arrays(_folder() / "datasets" / "data" / "digits.csv.gz")
    return Raw({"train": ((x.reshape(-1, 8, 8) * (255 / 16)).round().astype("uint8"), y)}, tuple("0123456789"))


def _arrays(file: Path) -> tuple[Any, Any]:
    """Pixels and classes from scikit-learn's own file: to import scikit-learn takes more than a second."""
    if not file.is_file():  # another version may keep it elsewhere
        from sklearn.datasets import load_digits  # noqa: PLC0415 (slow, and an extra)

        x, y = load_digits(return_X_y=True)
        return x, y
    table = np.loadtxt(file, delimiter=",")
    return table[:, :-1], table[:, -1].astype(int)


def _folder() -> Path:
    spec = find_spec("sklearn")
    if spec is None or spec.origin is None:
        raise InputError("the data source digits needs scikit-learn: pip install 'idarts[cli]'")
    return Path(spec.origin).parent


def _where() -> str:
    _folder()
    return "comes with scikit-learn"


SOURCES.add("digits", Source(_read, where=_where))
