"""The 1,797 handwritten digits of 8 × 8 pixels that come with scikit-learn."""

from importlib.util import find_spec
from pathlib import Path

import numpy as np

from idarts.data.raw import Raw
from idarts.data.sources import SOURCES, Root, Source
from idarts.errors import InputError


def _read(_path: str, _root: Root) -> Raw:
    """As `sklearn.datasets.load_digits` does, but without importing scikit-learn, which takes more than a second."""
    table = np.loadtxt(_folder() / "datasets" / "data" / "digits.csv.gz", delimiter=",")
    x, y = table[:, :-1].reshape(-1, 8, 8), table[:, -1].astype(int)
    return Raw({"train": ((x * (255 / 16)).round().astype("uint8"), y)}, tuple("0123456789"))


def _folder() -> Path:
    found = find_spec("sklearn")
    if found is None or found.origin is None:
        raise InputError("the data source digits needs scikit-learn: pip install 'idarts[cli]'")
    return Path(found.origin).parent


def _where() -> str:
    _folder()
    return "comes with scikit-learn"


SOURCES.add("digits", Source(_read, where=_where))
