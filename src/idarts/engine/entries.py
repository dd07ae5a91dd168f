"""The JSON of a run, checked: objects such as its settings, and the entries of its log with a number and perhaps α."""

from pathlib import Path
from reprlib import repr as short
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idarts.digests import without_digest
from idarts.errors import InputError
from idarts.files import load_json

LARGEST = 1e30  # a larger number counts as infinite, because differences would overflow

Floats = NDArray[np.float64]


class NotJsonError(InputError):
    """A line is not JSON, e.g. because a kill cut it off."""


def read_object(file: Path, remedy: str) -> dict[str, Any]:
    """The object in a JSON file of a run; an InputError says what is wrong with it, and what to do."""
    try:
        return parse_object(file, file.read_bytes(), remedy)
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror}; {remedy}") from None


def parse_object(file: Path, content: bytes, remedy: str) -> dict[str, Any]:
    """As `read_object`, for content that was read already."""
    try:
        data = without_digest(load_json(content.decode()))
    except (InputError, UnicodeDecodeError) as error:
        raise InputError(f"{file} is damaged ({error}); {remedy}") from None
    if not isinstance(data, dict):
        raise InputError(f"{file} holds {short(data)}, expected an object with keys; {remedy}")
    return data


def parse_entry(where: str, text: bytes) -> dict[str, Any]:
    """The entry in a line of a log; a damaged one raises an InputError that says where it is.

    >>> parse_entry("line 3", b'{"number": 3}'), parse_entry("line 4", b'{"loss": 1}')
    Traceback (most recent call last):
    idarts.errors.InputError: line 4 is {'loss': 1}, expected an object with a round's number; delete that line
    """
    try:
        entry = without_digest(load_json(text.decode()))
    except (InputError, UnicodeDecodeError) as error:
        raise NotJsonError(f"{where} is damaged ({error}); delete that line") from None
    number = entry.get("number") if isinstance(entry, dict) else None
    if type(number) is not int or not 1 <= number < LARGEST:
        raise InputError(f"{where} is {short(entry)}, expected an object with a round's number; delete that line")
    return dict(entry)


def as_alpha(where: str, alpha: Any) -> dict[str, Floats]:
    """α as arrays, which take a tenth of the memory of lists.

    >>> as_alpha("line 3", {"cell": [[0, 1]]})
    {'cell': array([[0., 1.]])}
    """
    if alpha is None:
        return {}
    try:
        matrices = {name: np.array(rows, dtype=np.float64) for name, rows in alpha.items()}
    except (AttributeError, TypeError, ValueError, OverflowError):
        matrices = {"": np.empty(0)}
    if not all(matrix.ndim == 2 and matrix.size for matrix in matrices.values()):
        raise InputError(f"{where}: alpha is {short(alpha)}, expected a matrix for each group; delete that line")
    return matrices


def as_float(value: object) -> float:
    """A number as a float; NaN for anything else, and for a number that is not finite.

    >>> as_float(2), as_float(float("inf")), as_float("2"), as_float(10**400)
    (2.0, nan, nan, nan)
    """
    number = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < LARGEST
    return float(value) if number else np.nan  # type: ignore[arg-type] # a number, as checked above
