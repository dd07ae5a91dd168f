"""Files that the other packages read and write: atomic writes, JSON, CSV, bounded decompression, CRC-32C."""

import csv
import errno
import io
import json
import os
import secrets
import shutil
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Protocol

from idarts.digests import finite, with_digest, without_digest
from idarts.errors import InputError, WriteError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

DEEPEST = 64  # levels of nested lists and objects in JSON; nothing that we write has more than ten
_SMALL = 1 << 28  # bytes that any file may decompress to
_RATIO = 100  # a larger file may decompress to this many times its size: images and numbers stay far below that
_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # a spreadsheet runs a cell that starts like this


class Readable(Protocol):
    """A stream of bytes, such as an open file or a decompressing one."""

    def read(self, size: int, /) -> bytes: ...


def write_whole(path: Path, content: bytes | str) -> None:
    """Write a file at once: a reader sees the old file or the new one, and an interrupted write changes nothing.

    The content is on the disk before the name is, and the name is when this returns, so a power cut changes nothing.
    Text becomes UTF-8.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_whole(Path(folder, "a.txt"), b"all of it")
    ...     Path(folder, "a.txt").read_bytes()
    b'all of it'
    """
    temporary = beside(path)
    try:
        with open_safely(temporary, "xb") as file:
            file.write(utf8(content) if isinstance(content, str) else content)
            sync(file)
        temporary.replace(path)
        sync_folder(path.parent)
    except OSError as error:
        raise WriteError(f"cannot write {path}: {error.strerror}") from None
    finally:
        with suppress(OSError):  # if the folder does not exist, the error above says so
            temporary.unlink(missing_ok=True)


def utf8(text: str) -> bytes:
    r"""Text as UTF-8. A byte of a file's name that is not UTF-8 becomes an escape; in JSON, it stays the same name.

    >>> utf8('"caf\udce9"'), json.loads(utf8('"caf\udce9"')) == "caf\udce9"
    (b'"caf\\udce9"', True)
    """
    return text.encode("utf-8", "backslashreplace")


def sync(file: IO[Any]) -> None:
    """Wait until the content of an open file is on the disk."""
    file.flush()
    os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on the disk: a rename counts only then.

    >>> sync_folder(Path("/"))
    """
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # some network file systems cannot do this
            raise
    finally:
        os.close(handle)


def remove_strays(folder: Path, name: str = "*") -> None:
    """Delete what a kill left of writing the files (or the folder) of this name: see `beside`.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Path(folder, ".a.json.0123abcd").touch()
    ...     remove_strays(Path(folder))
    ...     list(Path(folder).iterdir())
    []
    """
    for stray in folder.glob(f".{name}.{'[0-9a-f]' * 8}"):
        if stray.is_dir() and not stray.is_symlink():
            shutil.rmtree(stray, ignore_errors=True)
        else:
            stray.unlink(missing_ok=True)


def make_parents(file: Path) -> Path:
    """The same file, whose folder now exists: for a file that a person names.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     make_parents(Path(folder, "new", "cell.svg")).parent.is_dir()
    True
    """
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot make the folder {file.parent}: {error.strerror}; name another one") from None
    return file


def beside(path: Path) -> Path:
    """An unused name in the same folder. A file created there gets the user's default permissions, unlike `tempfile`'s.

    >>> beside(Path("runs/a.txt")).match("runs/.a.txt.*")
    True
    """
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}")


def open_safely(path: Path, mode: str) -> IO[Any]:
    """`path.open(mode)` that never follows a link: in a stranger's folder it could point to any file of the user.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Path(folder, "log").symlink_to(Path(folder, "precious"))
    ...     open_safely(Path(folder, "log"), "a")
    Traceback (most recent call last):
    OSError: [Errno 40] Too many levels of symbolic links: ...
    """
    encoding = None if "b" in mode else "utf-8"
    return open(path, mode, encoding=encoding, opener=lambda name, flags: os.open(name, flags | os.O_NOFOLLOW, 0o666))


def read_bounded(stream: Readable, stored: int, least: int = _SMALL) -> bytes:
    """What a compressed stream holds. One that is far larger than the `stored` bytes it comes from is refused.

    >>> import zlib
    >>> read_bounded(io.BytesIO(b"0" * 1000), stored=5, least=100)
    Traceback (most recent call last):
    idarts.errors.InputError: 5 bytes decompress to more than 500; such a file is an attack, or damaged
    """
    most = largest(stored, least)
    content = stream.read(most + 1)
    if len(content) > most:
        raise InputError(f"{stored} bytes decompress to more than {most}; such a file is an attack, or damaged")
    return content


def largest(stored: int, least: int = _SMALL) -> int:
    """The number of bytes that so many stored bytes may decompress to.

    >>> largest(5), largest(10**9)
    (268435456, 100000000000)
    """
    return max(least, _RATIO * stored)


def load_json(text: str) -> Any:
    """`json.loads` with an InputError for every text that is not JSON, or nested too deeply.

    >>> load_json('{"schema": ')
    Traceback (most recent call last):
    idarts.errors.InputError: not JSON: Expecting value: line 1 column 12 (char 11)
    """
    try:
        data = json.loads(text)
    except RecursionError:
        raise InputError("not JSON that can be read: it is nested too deeply") from None
    except ValueError as error:  # also integers with thousands of digits
        raise InputError(f"not JSON: {error}") from None
    if text.count("[") + text.count("{") > DEEPEST:  # else it cannot be too deep
        _require_shallow(data)
    return data


def _require_shallow(data: Any) -> None:
    """Without recursion, level by level: everything that reads the data later may then recurse."""
    level = [data]
    for _ in range(DEEPEST):
        parts = (part.values() if isinstance(part, dict) else part for part in level if isinstance(part, dict | list))
        level = [inner for part in parts for inner in part if isinstance(inner, dict | list)]
        if not level:
            return
    raise InputError("not JSON that can be read: it is nested too deeply")


def read_json(path: Path) -> Any:
    """The data in a JSON file, checked against its digest if it holds one.

    >>> read_json(Path("nothing.json"))
    Traceback (most recent call last):
    idarts.errors.InputError: nothing.json cannot be read: No such file or directory
    """
    try:
        data = load_json(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from None
    except ValueError as error:  # an InputError is one, too
        raise InputError(f"{path} is {error if isinstance(error, InputError) else 'not text in UTF-8'}") from None
    try:
        return without_digest(data)
    except InputError as error:
        raise InputError(f"{path} is damaged: {error}") from None


def dump_json(data: Any) -> bytes:
    r"""The bytes of a JSON file that people can read, too. An object gets a digest; NaN and infinity become null.

    >>> dump_json({"loss": float("nan")})
    b'{\n "loss": null,\n "digest": "sha256:a5690bc132d9fe9e8ea075c296e963e5"\n}\n'
    """
    plain = with_digest(data) if isinstance(data, Mapping) else finite(data)
    return (json.dumps(plain, indent=1, allow_nan=False) + "\n").encode()


def safetensors_note(content: bytes) -> dict[str, Any]:
    """The texts that the writer of a safetensors file put into its header; the header must be valid.

    >>> safetensors_note(b"\\x02\\0\\0\\0\\0\\0\\0\\0{}")
    {}
    """
    header = load_json(content[8 : 8 + int.from_bytes(content[:8], "little")].decode())
    note: dict[str, Any] = header.get("__metadata__", {})
    return note


def csv_text(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> str:
    r"""Rows as CSV. A text that a spreadsheet would run as a formula gets an apostrophe before it; numbers stay.

    >>> csv_text(["name", "gain"], [{"name": "=HYPERLINK(1)", "gain": -0.5}, {"name": "-1"}])
    "name,gain\n'=HYPERLINK(1),-0.5\n-1,\n"
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([_defused(name) for name in columns])
    writer.writerows([_defused(row.get(name, "")) for name in columns] for row in rows)
    return text.getvalue()


def _defused(cell: Any) -> Any:
    if not isinstance(cell, str) or not cell.startswith(_FORMULA):
        return cell
    try:
        float(cell)
    except ValueError:
        return f"'{cell}"
    return cell


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
    order = np.argsort(-lengths, kind="stable")  # the longest first: the strings that have not ended are then a slice
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
