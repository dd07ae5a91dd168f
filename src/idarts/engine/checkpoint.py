"""Checkpoints: written to a temporary file, synced and renamed, so that each is complete. The last two are kept.

A file is torch's zip archive, followed by the SHA-256 of the archive: torch itself does not notice damaged numbers.
"""

import hashlib
import io
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import torch

from idarts.errors import InputError
from idarts.files import beside, open_safely, remove_strays, sync, sync_folder

KEPT = 2
_MARK = b"sha256:"  # before the digest at the end of a file
_TRAILER = len(_MARK) + 64
FORMAT = "idarts-{}-1"  # with the kind of the run


def save(folder: Path, number: int, state: dict[str, Any], kind: str = "search") -> Path:
    """Write the state of round `number`, and delete all but the last two checkpoints.

    A kill at any moment leaves the earlier files intact. A full disk raises an OSError and leaves no partial file.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{number:08d}.pt"
    temporary = beside(path)
    try:
        with open_safely(temporary, "xb") as file:
            _write({"format": FORMAT.format(kind), "number": number, "state": state}, file)
            sync(file)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    sync_folder(folder)
    numbered = _numbered(folder)
    place = numbered.index(path) + 1
    newer = numbered[place:]  # damaged ones, before which the run was resumed
    for old in [*newer, *numbered[:place][:-KEPT]]:
        old.unlink(missing_ok=True)
    remove_strays(folder)
    return path


def _write(content: dict[str, Any], file: IO[bytes]) -> None:
    """`torch.save`, which hides the error of a full disk behind its own: `enforce fail at inline_container`."""
    problems: list[OSError] = []
    checksum = hashlib.sha256()

    class Noting(io.RawIOBase):
        def write(self, data: Any) -> int:
            try:
                checksum.update(data)
                return file.write(data)
            except OSError as error:
                problems.append(error)
                raise

    sink: Any = Noting()  # torch needs no more of a file than this
    try:
        torch.save(content, sink)
    except RuntimeError:
        if problems:
            raise problems[0] from None
        raise
    file.write(_MARK + checksum.hexdigest().encode())


def load(path: Path, kind: str = "search") -> tuple[int, dict[str, Any]]:
    """The round and the state in one file. Only tensors and plain values are read; no code from the file runs."""
    try:
        with path.open("rb") as file:
            _require_intact(file)
            content = torch.load(file, map_location="cpu", weights_only=True)
    except OSError as error:
        raise InputError(f"the checkpoint {path} cannot be read: {error.strerror or error}") from error
    except MemoryError:
        raise InputError(f"there is not enough memory to read the checkpoint {path}") from None
    except Exception as error:  # torch raises many kinds for a file that is damaged or of another program
        raise InputError(f"the checkpoint {path} is damaged, or not written by idarts; use another one") from error
    if not isinstance(content, dict) or content.get("format") != FORMAT.format(kind):
        raise InputError(f"the checkpoint {path} is not one of a {kind} run by this version; use another one")
    return content["number"], content["state"]


def _require_intact(file: IO[bytes]) -> None:
    """Compare a file with the digest at its end; 0.1.0 wrote none, but every zip archive has checksums of its parts."""
    size = file.seek(0, io.SEEK_END)
    file.seek(max(0, size - _TRAILER))
    trailer, left = file.read(), size - _TRAILER
    file.seek(0)
    if not trailer.startswith(_MARK):
        with zipfile.ZipFile(file) as archive:
            if archive.testzip() is not None:
                raise ValueError("a part of it does not match its checksum")
    else:
        checksum = hashlib.sha256()
        while left > 0:
            part = file.read(min(left, 1 << 20))
            checksum.update(part)
            left -= len(part)
        if checksum.hexdigest().encode() != trailer.removeprefix(_MARK):
            raise ValueError("it does not match its digest")
    file.seek(0)


def newest_first(folder: Path) -> Iterator[Path]:
    """The checkpoints in a folder, the newest first."""
    return reversed(_numbered(folder))


def latest(folder: Path, kind: str = "search") -> tuple[int, dict[str, Any], list[str]] | None:
    """The newest checkpoint that can be read, and the problems of newer ones that cannot; None if there is none."""
    problems: list[str] = []
    for path in newest_first(folder):
        try:
            return *load(path, kind), problems
        except InputError as error:
            problems.append(str(error))
    if problems:
        raise InputError(f"no checkpoint in {folder} can be used: {problems[0]}")
    return None


def _numbered(folder: Path) -> list[Path]:
    return sorted(folder.glob("[0-9]*.pt"))
