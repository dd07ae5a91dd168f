"""The official pickles of NAS-Bench-201, .pbz2 and .pth, read by an allow-list.

They name containers, numpy's numbers and, where they hold weights, torch's tensors. The weights become None.
"""

import bz2
import io
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from idarts.files import read_bounded
from idarts.pickles import NUMPY, SMALL, Allowed, NumberType, RefusedError, unpickle, unpickling
from idarts.tables.registry import Progress

_TORCH_MAGIC = 0x1950A86A20F9469CFC6C  # the first of four pickles in a file of torch < 1.6


def read_pickle(file: Path, progress: Progress | None = None) -> Any:
    """The numbers, text and containers in a .pbz2 or .pth file.

    >>> import pickle, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "meta.pickle.pbz2")
    ...     _ = file.write_bytes(bz2.compress(pickle.dumps({"evaluated_indexes": {3}}, protocol=4)))
    ...     read_pickle(file)
    {'evaluated_indexes': {3}}
    """
    with unpickling(file):
        with _opened(file, progress) as source:  # as a whole: checksums are at the end
            stream = io.BytesIO(read_bounded(source, file.stat().st_size, SMALL))
        if file.suffix == ".pth" and not zipfile.is_zipfile(file):
            if unpickle(stream, _ALLOWED) != _TORCH_MAGIC:
                raise ValueError("not written by torch.save")
            unpickle(stream, _ALLOWED)  # torch's protocol
            unpickle(stream, _ALLOWED)  # the system that wrote the file
        return unpickle(stream, _ALLOWED)


@contextmanager
def _opened(file: Path, progress: Progress | None) -> Iterator[IO[bytes]]:
    """The bytes of the pickles, decompressed."""
    if file.suffix == ".pth" and zipfile.is_zipfile(file):
        with zipfile.ZipFile(file) as archive:
            name = next(name for name in archive.namelist() if name.endswith("/data.pkl"))
            with archive.open(name) as member:
                yield _buffered(member, archive.getinfo(name).file_size, progress)
    else:
        with file.open("rb", buffering=0) as raw:
            stream = _buffered(raw, file.stat().st_size, progress)
            yield bz2.BZ2File(stream) if file.suffix == ".pbz2" else stream


def _buffered(source: IO[bytes], size: int, progress: Progress | None) -> Any:
    return io.BufferedReader(_Reporting(source, size, progress), buffer_size=1 << 20)


class _Reporting(io.RawIOBase):
    """A stream that reports how much of it has been read."""

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


def _scalar(kind: Any, raw: Any = b"") -> Any:
    if not isinstance(kind, NumberType) or not isinstance(raw, bytes):
        raise RefusedError("holds a numpy scalar that is not a plain number")
    return np.frombuffer(raw, kind.dtype).item()


def _nothing(*_: Any) -> None:
    """Stands for the weights of a network."""


_ALLOWED: Allowed = {
    **NUMPY,
    "collections.OrderedDict": dict,
    "__builtin__.set": set,
    "builtins.set": set,
    "numpy.core.multiarray.scalar": _scalar,
    "numpy._core.multiarray.scalar": _scalar,
    "torch._utils._rebuild_tensor_v2": _nothing,
    "torch.storage._load_from_bytes": _nothing,
    "torch.FloatStorage": _nothing,
    "torch.LongStorage": _nothing,
}
