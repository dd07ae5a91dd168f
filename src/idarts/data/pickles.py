"""The pickles that CIFAR comes in, read so that nothing of theirs can run.

A pickle may name any function and call it. These name only numpy's array constructor, its dtype, and (when written by
Python 3) the encoder of bytes. Here each of the three is an inert stand-in of our own, and every other name is refused:
not even numpy sees the file before its bytes are known to be a plain uint8 or integer array.
"""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idarts.errors import InputError

_PLAIN = {"u1": np.uint8, "i1": np.int8, "i4": np.int32, "i8": np.int64}


def read_pickle(file: Path) -> dict[str, Any]:
    """The dictionary in a CIFAR batch or meta file: numbers, text, lists and arrays only.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "data_batch_1")
    ...     _ = file.write_bytes(pickle.dumps({b"data": np.arange(4, dtype=np.uint8), b"labels": [1]}, protocol=2))
    ...     read_pickle(file)
    {'data': array([0, 1, 2, 3], dtype=uint8), 'labels': [1]}
    """
    try:
        with file.open("rb") as stream:
            content = _Strict(stream, encoding="bytes").load()
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror or error}") from None
    except _RefusedError as error:
        raise InputError(f"{file} was refused: its pickle calls {error}; get the official file again") from None
    except Exception as error:  # damaged bytes make the unpickler raise anything
        raise InputError(f"{file} is no complete CIFAR batch ({type(error).__name__}); get the file again") from None
    if not isinstance(content, dict):
        raise InputError(f"{file} holds no dictionary, so it is no CIFAR batch; get the official file again")
    return {_text(key): value.array if isinstance(value, _Array) else value for key, value in content.items()}


class _RefusedError(Exception):
    """A pickle names something that is not on the list."""


class _Dtype:
    """Stands for numpy's dtype: a code such as 'u1'. Its state (byte order, alignment) is not looked at."""

    def __init__(self, code: Any, *_: Any) -> None:
        self.code = _text(code).lstrip("|<>=")

    def __setstate__(self, state: Any) -> None:
        self.big_endian = isinstance(state, tuple) and len(state) > 1 and _text(state[1]) == ">"


class _Array:
    """Stands for an array until its bytes come, which must be those of a plain one."""

    array: NDArray[Any]

    def __setstate__(self, state: Any) -> None:
        _, shape, dtype, by_column, raw = state
        if not isinstance(dtype, _Dtype) or dtype.code not in _PLAIN or not isinstance(raw, bytes):
            raise _RefusedError("for an array that is not of plain integers")
        kind = np.dtype(_PLAIN[dtype.code]).newbyteorder(">" if getattr(dtype, "big_endian", False) else "<")
        self.array = np.frombuffer(raw, kind).reshape(shape, order="F" if by_column else "C")


def _blank(*_: Any) -> _Array:
    return _Array()


def _latin(text: Any, encoding: Any) -> bytes:
    if not isinstance(text, str) or encoding not in ("latin1", b"latin1"):
        raise _RefusedError(f"the codec {encoding!r}")
    return text.encode("latin1")


_ALLOWED: dict[tuple[str, str], Any] = {
    ("numpy.core.multiarray", "_reconstruct"): _blank,
    ("numpy._core.multiarray", "_reconstruct"): _blank,
    ("numpy", "ndarray"): None,  # only ever an argument of the above
    ("numpy", "dtype"): _Dtype,
    ("_codecs", "encode"): _latin,
}


class _Strict(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _ALLOWED:
            raise _RefusedError(f"{module}.{name}")
        return _ALLOWED[module, name]


def _text(value: Any) -> str:
    return value.decode("latin1") if isinstance(value, bytes) else str(value)
