"""Files that the other packages read and write: atomic writes, JSON, pickles by an allow-list, CRC-32C."""

import json
import math
import pickle
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeAlias

from idarts.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Names in a pickle, such as numpy.dtype, and the harmless functions that are called in their place.
Allowed: TypeAlias = Mapping[str, Callable[..., Any]]
_NUMBERS = frozenset(["b1", "u1", "i1", "i2", "i4", "i8", "f2", "f4", "f8"])  # numpy's plain kinds of numbers


def write_whole(path: Path, content: bytes) -> None:
    """Write a file at once: a reader sees the old file or the new one, and an interrupted write changes nothing.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_whole(Path(folder, "a.txt"), b"all of it")
    ...     Path(folder, "a.txt").read_bytes()
    b'all of it'
    """
    temporary = beside(path)
    try:
        with temporary.open("xb") as file:
            file.write(content)
        temporary.replace(path)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from None
    finally:
        with suppress(OSError):  # if the folder does not exist, the error above says so
            temporary.unlink(missing_ok=True)


def beside(path: Path) -> Path:
    """An unused name in the same folder. A file created there gets the user's default permissions, unlike `tempfile`'s.

    >>> beside(Path("runs/a.txt")).match("runs/.a.txt.*")
    True
    """
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}")


def load_json(text: str) -> Any:
    """`json.loads` with an InputError for every text that is not JSON.

    >>> load_json('{"schema": ')
    Traceback (most recent call last):
    idarts.errors.InputError: not JSON: Expecting value: line 1 column 12 (char 11)
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise InputError("not JSON that can be read: it is nested too deeply") from None
    except ValueError as error:  # also integers with thousands of digits
        raise InputError(f"not JSON: {error}") from None


def read_json(path: Path) -> Any:
    """The data in a JSON file.

    >>> read_json(Path("nothing.json"))
    Traceback (most recent call last):
    idarts.errors.InputError: nothing.json cannot be read: No such file or directory
    """
    try:
        return load_json(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from None
    except ValueError as error:  # an InputError is one, too
        raise InputError(f"{path} is {error if isinstance(error, InputError) else 'not text in UTF-8'}") from None


def dump_json(data: Any) -> bytes:
    r"""The bytes of a JSON file that people can read, too. Numbers that are not finite become null.

    >>> dump_json({"loss": float("nan")})
    b'{\n "loss": null\n}\n'
    """
    return (json.dumps(finite(data), indent=1, allow_nan=False) + "\n").encode()


def finite(data: Any) -> Any:
    """The same data with None for every number that is not finite, because JSON cannot write those.

    >>> finite({"loss": float("nan"), "losses": (1.0, float("inf"))})
    {'loss': None, 'losses': [1.0, None]}
    """
    if isinstance(data, dict):
        return {name: finite(value) for name, value in data.items()}
    if isinstance(data, list | tuple):
        return [finite(value) for value in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data


def unpickle(stream: IO[bytes], allowed: Allowed, encoding: str = "ASCII") -> Any:
    """The next pickle in a stream, read so that no code from it can run.

    A pickle may name any function and call it. Here every name must be in `allowed`, and stands for the harmless
    function there; nothing is imported, and any other name is refused. `unpickling` turns the errors into one line.

    >>> import io
    >>> unpickle(io.BytesIO(pickle.dumps({"labels": [3, 1]})), {})
    {'labels': [3, 1]}
    >>> unpickle(io.BytesIO(pickle.dumps(print)), {})
    Traceback (most recent call last):
    idarts.files.RefusedError: calls builtins.print
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
    except Exception as error:  # damaged bytes can raise anything, from the unpickler and from decompression
        if isinstance(error, OSError) and error.strerror:
            raise InputError(f"{file} cannot be read: {error.strerror}") from None
        problem = f"is incomplete or not the official file ({type(error).__name__})"
        raise InputError(f"{file} {problem}; get it again") from None


class RefusedError(Exception):
    """A pickle asks for something that is not allowed."""


class _Unpickler(pickle.Unpickler):
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
    """Text that a pickle may hold as bytes.

    >>> as_text(b"data"), as_text("data")
    ('data', 'data')
    """
    return value.decode("latin1") if isinstance(value, bytes) else str(value)


def _encode(text: Any, encoding: Any) -> bytes:
    """How Python 3 pickles bytes for Python 2."""
    if not isinstance(text, str) or as_text(encoding) != "latin1":
        raise RefusedError(f"uses the codec {encoding!r}")
    return text.encode("latin1")


NUMPY: Allowed = {"numpy.dtype": NumberType, "_codecs.encode": _encode}  # what all pickles with numpy's numbers name


def crc32c(contents: Sequence[bytes]) -> "NDArray[np.uint32]":
    """The CRC-32C (Castagnoli) checksums of many byte strings at once, computed side by side.

    >>> [hex(value) for value in crc32c([b"123456789", b""])]
    ['0xe3069283', '0x0']
    """
    import numpy as np  # noqa: PLC0415 (look-ups in tables do without numpy, which takes long to import)

    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, table >> 1 ^ np.uint32(0x82F63B78), table >> 1)
    lengths = np.array([len(content) for content in contents], np.int64)
    order = np.argsort(-lengths, kind="stable")  # the longest first: the strings that still go on are then a slice
    width = int(lengths.max(initial=0))
    padded = b"".join(contents[index].ljust(width, b"\0") for index in order)
    by_position = np.ascontiguousarray(np.frombuffer(padded, np.uint8).reshape(len(contents), width).T)
    counts = np.searchsorted(-lengths[order], -np.arange(width), side="left")
    state = np.full(len(contents), 0xFFFFFFFF, np.uint32)
    for column, count in zip(by_position, counts, strict=True):
        part = state[:count]
        state[:count] = table[(part ^ column[:count]) & 0xFF] ^ (part >> 8)
    checksums = np.empty_like(state)
    checksums[order] = state ^ np.uint32(0xFFFFFFFF)
    return checksums
