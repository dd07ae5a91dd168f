"""Columns of numbers in one .npz file, each read at its first use.

Reading does not need numpy, whose import alone takes longer than a look-up; only writing does. The file is mapped into
memory, so an open table does not change when its file is replaced.
"""

import io
import mmap
import struct
import sys
import warnings
import zipfile
import zlib
from array import array
from ast import literal_eval
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from idarts.digests import digest
from idarts.errors import InputError
from idarts.files import write_whole

if TYPE_CHECKING:
    from numpy.typing import NDArray

_CODES = {"|u1": "B", "<i4": "i", "<u4": "I", "<u8": "Q", "<f4": "f"}  # numpy's type → the type code of `array`
_HEADER = 1 << 16  # bytes before a column's numbers, at most
_LOCAL_HEADER = 30  # bytes before a zip member's name


class Columns:
    """The columns of a file by name, as arrays of the standard library.

    >>> import numpy, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_columns(Path(folder, "a.npz"), {"test": numpy.array([91.5, 94.25], numpy.float32)})
    ...     Columns(Path(folder, "a.npz"))["test"]
    array('f', [91.5, 94.25])
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        self._read: dict[str, array[Any]] = {}
        try:
            with file.open("rb") as stream, zipfile.ZipFile(stream) as archive:
                if archive.comment and archive.comment != _directory_digest(archive):
                    raise ValueError("its list of columns is damaged")
                self._members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
                self._bytes = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        except Exception as error:  # damaged bytes can raise anything in zipfile
            raise InputError(f"{file} cannot be read as a table ({error}); import it again") from None
        lengths = {name: self._length(name) for name in self._members}
        if len(set(lengths.values())) > 1:
            short, long = (choose(lengths, key=lengths.__getitem__) for choose in (min, max))
            counts = f"{lengths[short]} numbers in {short}, {lengths[long]} in {long}"
            raise InputError(f"{file} cannot be read as a table ({counts}); import it again")
        self._rows = next(iter(lengths.values()), 0)

    def __len__(self) -> int:
        return self._rows

    def __contains__(self, name: str) -> bool:
        return name in self._members

    def __getitem__(self, name: str) -> "array[Any]":
        if name not in self._read:
            with self._damage(name):
                self._read[name] = _numbers(self._content(self._members[name]))
        return self._read[name]

    def check(self) -> None:
        """Compare all columns with their checksums, without keeping them in memory."""
        for name, info in self._members.items():
            with self._damage(name):
                _numbers(self._content(info))

    @contextmanager
    def _damage(self, name: str) -> Iterator[None]:
        try:
            yield
        except (KeyError, TypeError, ValueError, SyntaxError, struct.error) as error:
            raise InputError(f"{self.file}: column {name} is damaged ({error}); import the table again") from None

    def _length(self, name: str) -> int:
        with self._damage(name):
            info = self._members[name]
            start = self._start(info)
            (length,) = _header(self._bytes[start : start + min(info.file_size, _HEADER)])[1]["shape"]
            return int(length)

    def _start(self, info: zipfile.ZipInfo) -> int:
        name, extra = struct.unpack_from("<HH", self._bytes, info.header_offset + _LOCAL_HEADER - 4)
        return int(info.header_offset + _LOCAL_HEADER + name + extra)

    def _content(self, info: zipfile.ZipInfo) -> bytes:
        start = self._start(info)
        content = self._bytes[start : start + info.file_size]
        if info.compress_type != zipfile.ZIP_STORED or zlib.crc32(content) != info.CRC:
            raise ValueError("its checksum is wrong")
        return content


def write_columns(file: Path, columns: "Mapping[str, NDArray[Any]]") -> None:
    """Write one-dimensional arrays in one atomic step, so that several processes can write the same file.

    >>> import numpy
    >>> write_columns(Path("no such folder/a.npz"), {"test": numpy.zeros(2, numpy.float32)})
    Traceback (most recent call last):
    idarts.errors.WriteError: cannot write no such folder/a.npz: No such file or directory
    """
    import numpy as np  # noqa: PLC0415 (see above)

    content = io.BytesIO()
    np.savez(content, allow_pickle=False, **columns)
    with zipfile.ZipFile(content, "a") as archive:
        archive.comment = _directory_digest(archive)
    write_whole(file, content.getvalue())


def _directory_digest(archive: zipfile.ZipFile) -> bytes:
    """A digest of the names, sizes and checksums of all columns, so that opening a table need not read them."""
    members = sorted((info.filename, info.file_size, info.CRC) for info in archive.infolist())
    return digest(repr(members).encode()).encode()


def warn_if_incomplete(rows: int, size: int, origin: Path) -> None:
    """Warn about files that hold only a part of a benchmark."""
    if rows < size:
        warnings.warn(f"{origin} holds {rows} of {size} cells; the others stay unknown", stacklevel=2)


def _header(content: bytes) -> tuple[int, Any]:
    """Where the numbers start, and numpy's description of them."""
    if content[:7] != b"\x93NUMPY\x01":
        raise ValueError("not an array of numpy")
    start = 10 + struct.unpack_from("<H", content, 8)[0]
    return start, literal_eval(content[10:start].decode("latin1").strip())


def _numbers(content: bytes) -> "array[Any]":
    start, header = _header(content)
    numbers = array(_CODES[header["descr"]], content[start:])
    if header["shape"] != (len(numbers),):
        raise ValueError(f"shape {header['shape']}")
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers
