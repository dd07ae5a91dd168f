"""The 1,797 handwritten digits of 8 × 8 pixels that come with scikit-learn."""

from importlib.util import find_spec

from idarts.data.raw import Raw
from idarts.data.sources import SOURCES, Root, Source
from idarts.errors import InputError


def _read(_path: str, _root: Root) -> Raw:
    _where()
    from sklearn.datasets import load_digits  # noqa: PLC0415 (takes a second, and is an extra)

    x, y = load_digits(return_X_y=True)
    return Raw({"train": ((x.reshape(-1, 8, 8) * (255 / 16)).round().astype("uint8"), y)}, tuple("0123456789"))


def _where() -> str:
    if find_spec("sklearn") is None:
        raise InputError("the data source digits needs scikit-learn: pip install 'idarts[cli]'")
    return "comes with scikit-learn"


SOURCES.add("digits", Source(_read, where=_where))
