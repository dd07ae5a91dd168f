"""The official pickles of NAS-Bench-201, read so that nothing of theirs can run.

A pickle may name any function and call it. The official files name containers, numpy's numbers and, where they hold
weights, torch's tensors. Here every one of these names stands for a plain container or for an inert function of our own
(weights become None), and any other name is refused before it is looked up.
"""

import bz2
import io
import pickle
import struct
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from idarts.errors import InputError

Progress = Callable[[int, int], None]  # done, of how many
_TORCH_MAGIC = 0x1950A86A20F9469CFC6C  # the first of four pickles in a file that torch < 1.6 wrote
_NUMBERS = {"f8": "d", "f4": "f", "f2": "e", "i8": "q", "i4": "i", "i2": "h", "u1": "B", "b1": "?"}


def read_pickle(file: Path, progress: Progress | None = None) -> Any:
    """What a .pbz2 or .pth file holds: numbers, text and containers only.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "meta.pickle.pbz2")
    ...     _ = file.write_bytes(bz2.compress(pickle.dumps({"evaluated_indexes": {3}}, protocol=4)))
    ...     read_pickle(file)
    {'evaluated_indexes': {3}}
    """
    try:
        with _opened(file, progress) as stream:
            if file.suffix == ".pth" and not zipfile.is_zipfile(file):
                if _Strict(stream).load() != _TORCH_MAGIC:
                    raise ValueError("not written by torch.save")
                _Strict(stream).load()  # torch's protocol, then the system that wrote the file
                _Strict(stream).load()
            content = _Strict(stream).load()
            while stream.read(1 << 20):  # checksums stand at the end
                pass
            return content
    except _RefusedError as error:
        raise InputError(f"{file} was refused: its pickle calls {error}; get the official file again") from None
    except Exception as error:  # damaged bytes make the unpickler raise anything
        raise InputError(f"{file} is not complete or not official ({type(error).__name__}); get it again") from None


@contextmanager
def _opened(file: Path, progress: Progress | None) -> Iterator[IO[bytes]]:
    """The pickle's bytes, unpacked. The unpickler may look ahead in a buffered stream, and puts back what it must."""
    if file.suffix == ".pth" and zipfile.is_zipfile(file):
        with zipfile.ZipFile(file) as archive:
            name = next(name for name in archive.namelist() if name.endswith("/data.pkl"))
            with archive.open(name) as member:
                yield _watched(member, archive.getinfo(name).file_size, progress)
    else:
        with file.open("rb", buffering=0) as raw:
            stream = _watched(raw, file.stat().st_size, progress)
            yield bz2.BZ2File(stream) if file.suffix == ".pbz2" else stream


def _watched(source: IO[bytes], size: int, progress: Progress | None) -> Any:
    return io.BufferedReader(_Watched(source, size, progress), buffer_size=1 << 20)


class _Watched(io.RawIOBase):
    """Tells how far a stream has been read."""

    def __init__(self, source: IO[bytes], size: int, progress: Progress | None) -> None:
        self.source, self.size, self.progress = source, size, progress
        self.done = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        content = self.source.read(len(buffer))
        buffer[: len(content)] = content
        self.done += len(content)
        if self.progress:
            self.progress(self.done, self.size)
        return len(content)


class _RefusedError(Exception):
    """A pickle names something that is not on the list."""


class _Dtype:
    """Stands for numpy's dtype: a code such as 'f8' and the order of its bytes."""

    def __init__(self, code: Any) -> None:
        self.code, self.order = str(code).lstrip("|<>="), "<"

    def __setstate__(self, state: Any) -> None:
        self.order = ">" if isinstance(state, tuple) and ">" in state[1:2] else "<"


def _dtype(code: Any, *_: Any) -> _Dtype:
    return _Dtype(code)


def _scalar(dtype: Any, raw: Any = b"") -> Any:
    if not isinstance(dtype, _Dtype) or dtype.code not in _NUMBERS or not isinstance(raw, bytes):
        raise _RefusedError("numpy for something that is no plain number")
    return struct.unpack(dtype.order + _NUMBERS[dtype.code], raw)[0]


def _latin(text: Any, encoding: Any) -> bytes:
    if not isinstance(text, str) or encoding != "latin1":
        raise _RefusedError("a codec other than latin1")
    return text.encode("latin1")


def _nothing(*_: Any) -> None:
    """Stands for a network's weights."""


_ALLOWED: dict[tuple[str, str], Any] = {
    ("collections", "OrderedDict"): dict,
    ("__builtin__", "set"): set,
    ("builtins", "set"): set,
    ("numpy.core.multiarray", "scalar"): _scalar,
    ("numpy._core.multiarray", "scalar"): _scalar,
    ("numpy", "dtype"): _dtype,
    ("_codecs", "encode"): _latin,
    ("torch._utils", "_rebuild_tensor_v2"): _nothing,
    ("torch.storage", "_load_from_bytes"): _nothing,
    ("torch", "FloatStorage"): _nothing,
    ("torch", "LongStorage"): _nothing,
}


class _Strict(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _ALLOWED:
            raise _RefusedError(f"{module}.{name}")
        return _ALLOWED[module, name]

    def persistent_load(self, pid: Any) -> None:
        """Where torch keeps a tensor's storage."""
