"""Checkpoints: written to a temporary file, synced and renamed, so that each is complete. The last two are kept."""

import io
import os
from pathlib import Path
from typing import IO, Any

import torch

from idarts.errors import InputError
from idarts.files import beside, open_safely

KEPT = 2
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
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    _sync(folder)
    numbered = _numbered(folder)
    place = numbered.index(path) + 1
    newer = numbered[place:]  # damaged ones, before which the run was resumed
    partial = folder.glob(".*.pt.*")  # left by a kill
    for old in [*newer, *numbered[:place][:-KEPT], *partial]:
        old.unlink(missing_ok=True)
    return path


def _write(content: dict[str, Any], file: IO[bytes]) -> None:
    """`torch.save`, which hides the error of a full disk behind one of its own: `enforce fail at inline_container`."""
    problems: list[OSError] = []

    class Noting(io.RawIOBase):
        def write(self, data: Any) -> int:
            try:
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


def load(path: Path, kind: str = "search") -> tuple[int, dict[str, Any]]:
    """The round and the state in one file. Only tensors and plain values are read; no code from the file runs."""
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except OSError as error:
        raise InputError(f"the checkpoint {path} cannot be read: {error.strerror or error}") from error
    except Exception as error:  # torch raises many kinds for a file that is damaged or of another program
        raise InputError(f"the checkpoint {path} is damaged, or not written by idarts; use another one") from error
    if not isinstance(content, dict) or content.get("format") != FORMAT.format(kind):
        raise InputError(f"the checkpoint {path} is not one of a {kind} run by this version; use another one")
    return content["number"], content["state"]


def latest(folder: Path, kind: str = "search") -> tuple[int, dict[str, Any], list[str]] | None:
    """The newest checkpoint that can be read, and the problems of newer ones that cannot; None if there is none."""
    problems: list[str] = []
    for path in reversed(_numbered(folder)):
        try:
            return *load(path, kind), problems
        except InputError as error:
            problems.append(str(error))
    if problems:
        raise InputError(f"no checkpoint in {folder} can be used: {problems[0]}")
    return None


def _numbered(folder: Path) -> list[Path]:
    return sorted(folder.glob("[0-9]*.pt"))


def _sync(folder: Path) -> None:
    """Make sure that the rename survives a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
