"""Checkpoints that are whole or not there: written aside, synced, renamed; the last two are kept."""

import os
from pathlib import Path
from typing import Any

import torch

from idarts.errors import InputError

KEPT = 2
FORMAT = "idarts-{}-1"  # of what kind the run is


def save(folder: Path, number: int, state: dict[str, Any], kind: str = "search") -> Path:
    """Write the state of round `number`, and forget all but the last two.

    A kill at any moment leaves the files that were there; a full disk raises an OSError and leaves nothing behind.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{number:08d}.pt"
    aside = folder / f".{path.name}.{os.getpid()}"
    try:
        with aside.open("wb") as file:
            torch.save({"format": FORMAT.format(kind), "number": number, "state": state}, file)
            file.flush()
            os.fsync(file.fileno())
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)
    _sync(folder)
    numbered = _numbered(folder)
    newer = numbered[numbered.index(path) + 1 :]  # of a future that was gone back from: they could not be read
    for old in [*newer, *numbered[: numbered.index(path) + 1][:-KEPT], *folder.glob(".*.pt.*")]:
        old.unlink(missing_ok=True)  # the last ones: what a kill left half-written
    return path


def load(path: Path, kind: str = "search") -> tuple[int, dict[str, Any]]:
    """The round and state of one file; only tensors and plain values are read, nothing is run."""
    try:
        found = torch.load(path, map_location="cpu", weights_only=True)
    except OSError as error:
        raise InputError(f"the checkpoint {path} cannot be read: {error.strerror or error}") from error
    except Exception as error:  # torch raises many kinds for a damaged or foreign file
        raise InputError(f"the checkpoint {path} is damaged, or not one of ours; use another one") from error
    if not isinstance(found, dict) or found.get("format") != FORMAT.format(kind):
        raise InputError(f"the checkpoint {path} is not one of a {kind} run by this version; use another one")
    return found["number"], found["state"]


def latest(folder: Path, kind: str = "search") -> tuple[int, dict[str, Any], list[str]] | None:
    """The newest checkpoint that can be read, with a word about each newer one that cannot; None if there is none."""
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
    """Make the rename itself last through a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
