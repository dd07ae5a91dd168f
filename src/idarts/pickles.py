"""Pickles of strangers, read by an allow-list: no code from them runs, and a small one costs little.

Python's own unpickler is used in its form in Python. The one in C reserves gigabytes for a single large number in the
memo, and crashes on a tuple of a million levels, which it hashes by recursion.
"""

import pickle
import struct
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, ClassVar, TypeAlias

from idarts.errors import InputError

# Names in a pickle, such as numpy.dtype, and the harmless functions that are called in their place.
Allowed: TypeAlias = Mapping[str, Callable[..., Any]]
SMALL = 1 << 24  # bytes that any compressed pickle may have: in memory each can become sixty
_NUMBERS = frozenset(["b1", "u1", "i1", "i2", "i4", "i8", "f2", "f4", "f8"])  # numpy's plain kinds of numbers
_TUPLE = 256  # parts of a tuple, with those of the tuples in it: hashing walks all of them
# What no official file uses: byte arrays of a stated length, sets as keys, code of extensions, buffers from outside.
_UNUSED = ("BYTEARRAY8", "FROZENSET", "EXT1", "EXT2", "EXT4", "NEXT_BUFFER", "READONLY_BUFFER")


def unpickle(stream: IO[bytes], allowed: Allowed, encoding: str = "ASCII") -> Any:
    """The next pickle in a stream, read so that no code from it can run.

    A pickle may name any function and call it. Here every name must be in `allowed`, and stands for the harmless
    function there; nothing is imported, and any other name is refused. `unpickling` turns the errors into one line.

    >>> import io
    >>> unpickle(io.BytesIO(pickle.dumps({"labels": [3, 1]})), {})
    {'labels': [3, 1]}
    >>> unpickle(io.BytesIO(pickle.dumps(len)), {})
    Traceback (most recent call last):
    idarts.pickles.RefusedError: calls builtins.len
    """
    return _Unpickler(stream, allowed, encoding).load()


@contextmanager
def unpickling(file: Path) -> Iterator[None]:
    """One InputError for everything that reading a file's pickles can raise.

    >>> with unpickling(Path("batch")):
    ...     unpickle(Path("batch").open("rb"), {})
    Traceback (most recent call last):
    idarts.errors.InputError: batch cannot be read: No such file or directory
    """
    try:
        yield
    except RefusedError as error:
        raise InputError(f"{file} was refused: its pickle {error}; get the official file again") from None
    except InputError as error:  # of decompression
        raise InputError(f"{file} was refused: {error}; get the official file again") from None
    except Exception as error:  # damaged bytes can raise anything, from the unpickler and from decompression
        if isinstance(error, OSError) and error.strerror:
            raise InputError(f"{file} cannot be read: {error.strerror}") from None
        problem = f"is incomplete or not the official file ({type(error).__name__})"
        raise InputError(f"{file} {problem}; get it again") from None


class RefusedError(Exception):
    """A pickle asks for something that is not allowed."""


class _Unpickler(pickle._Unpickler):
    dispatch: ClassVar[dict[int, Callable[[Any], None]]] = dict(pickle._Unpickler.dispatch)

    def __init__(self, stream: IO[bytes], allowed: Allowed, encoding: str) -> None:
        super().__init__(stream, encoding=encoding)
        self._allowed = allowed

    def find_class(self, module: str, name: str) -> Any:
        full_name = f"{module}.{name}"
        if full_name not in self._allowed:
            raise RefusedError(f"calls {full_name}")
        stand_in = self._allowed[full_name]
        # A new function every time, because a pickle can also set attributes of what it names.
        return lambda *arguments: stand_in(*arguments)  # noqa: PLW0108 (the stand-in itself must stay unchanged)

    def persistent_load(self, pid: Any) -> None:
        """torch stores weights this way; we do not read them."""


def _in_small_tuples(load: Callable[[Any], None]) -> Callable[[Any], None]:
    """An operation that makes a tuple, with a bound on its size. Tuples can be keys, and hashing walks all levels."""

    def checked(unpickler: Any) -> None:
        load(unpickler)
        if _parts(unpickler.stack[-1]) > _TUPLE:
            raise RefusedError(f"holds a tuple of more than {_TUPLE} parts")

    return checked


def _parts(made: tuple[Any, ...]) -> int:
    """All parts of a tuple, those of inner tuples included; the inner ones were checked when they were made."""
    return len(made) + sum(_parts(part) for part in made if type(part) is tuple)


def _whole_frame(unpickler: Any) -> None:
    """A frame that is cut off is an error here, too, as in C."""
    (size,) = struct.unpack("<Q", unpickler.read(8))
    unpickler._unframer.load_frame(size)
    if unpickler._unframer.current_frame.getbuffer().nbytes < size:
        raise EOFError


_Unpickler.dispatch[pickle.FRAME[0]] = _whole_frame
for _name in ("TUPLE", "TUPLE1", "TUPLE2", "TUPLE3"):
    _code = getattr(pickle, _name)[0]
    _Unpickler.dispatch[_code] = _in_small_tuples(_Unpickler.dispatch[_code])
for _name in _UNUSED:
    del _Unpickler.dispatch[getattr(pickle, _name)[0]]


class NumberType:
    """Stands for numpy's dtype in a pickle. `dtype` is its name, such as '<f8'; only plain numbers are allowed.

    >>> NumberType("f8").dtype
    '<f8'
    """

    def __init__(self, code: Any, *_: Any) -> None:
        self._code, self._order = as_text(code).lstrip("|<>="), "<"

    def __setstate__(self, state: Any) -> None:
        big_endian = isinstance(state, tuple) and len(state) > 1 and as_text(state[1]) == ">"
        self._order = ">" if big_endian else "<"

    @property
    def dtype(self) -> str:
        if self._code not in _NUMBERS:
            raise RefusedError(f"holds numpy data of type {self._code!r}, expected plain numbers")
        return self._order + self._code


def as_text(value: Any) -> str:
    """Text that a pickle may hold as bytes. Anything else is refused: lists in lists can stand for endless text.

    >>> as_text(b"data"), as_text("data")
    ('data', 'data')
    """
    if not isinstance(value, str | bytes):
        raise RefusedError(f"holds a {type(value).__name__} in the place of text")
    return value.decode("latin1") if isinstance(value, bytes) else value


def _encode(text: Any, encoding: Any) -> bytes:
    """How Python 3 pickles bytes for Python 2."""
    if not isinstance(text, str) or as_text(encoding) != "latin1":
        raise RefusedError(f"uses the codec {encoding!r}")
    return text.encode("latin1")


NUMPY: Allowed = {"numpy.dtype": NumberType, "_codecs.encode": _encode}  # what all pickles with numpy's numbers name
