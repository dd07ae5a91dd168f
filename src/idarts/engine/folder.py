"""A run's folder: `config.json`, `metrics.jsonl` (a line a round), events, `checkpoints/`, at last `result.json`."""

import fcntl
import json
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from idarts.errors import InputError

LOCK = ".lock"
# What runs, and the commands that look at them, leave in a folder; the settings go last.
MADE = (
    f"checkpoints/{'[0-9]' * 8}.pt",
    "events.out.tfevents.*.idarts",
    "metrics.jsonl",
    "result.json",
    *(f"model/{name}" for name in ("config.json", "model.safetensors", "model.onnx", "model.pt2")),
    *(f"{place}evaluation.{kind}" for place in ("", "model/") for kind in ("json", "html")),
    "report.html",
    "config.json",
)


def named(*parts: object) -> str:
    """A folder's name for a run, of what it is about.

    >>> named("darts", "idarts", "folder:/pets/cats", 3)
    'darts-idarts-pets-cats-3'
    """
    words = [str(part).removeprefix("folder:").removeprefix("npz:").strip("/.") for part in parts]
    return "-".join(words).replace("/", "-").replace(":", "-")


@contextmanager
def claimed(out: Path, resume: bool, overwrite: bool) -> Iterator[None]:
    """The folder, for this process alone; what is in it stays, and an existing run needs a word to be there."""
    there = _is_run(out)
    if resume and not there:
        raise InputError(f"{out} holds no run to resume; leave out --resume to begin one")
    if there and not resume and not overwrite:
        raise InputError(f"{out} holds a run already; continue it with --resume, or replace it with --overwrite")
    if out.exists() and not there and (not out.is_dir() or any(not p.name.startswith(".") for p in out.iterdir())):
        raise InputError(f"{out} is there and is no run; name a new folder with --out")
    with locked(out, "run"):
        yield


def _is_run(out: Path) -> bool:
    """Whether a folder's settings are those of a run; where they are broken, the lock beside them says so."""
    try:
        found = json.loads((out / "config.json").read_text())
    except OSError:
        return False
    except ValueError:
        return (out / LOCK).exists()
    return isinstance(found, dict) and "checkpoint_rounds" in found


def require_own(out: Path, record: str, kind: str) -> None:
    """Refuse a folder with other things in it: it is new, empty, or holds what its `record` tells."""
    if out.is_dir() and not (out / record).exists() and any(found.name != LOCK for found in out.iterdir()):
        raise InputError(f"{out} is there and holds no {kind}; name a new folder with --out")


@contextmanager
def locked(out: Path, kind: str) -> Iterator[None]:
    """A folder, made where it is missing, for this process alone: a lock that ends with it, however it ends."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        lock = (out / LOCK).open("a+")
    except OSError as error:
        raise InputError(f"the folder {out} cannot be written: {error.strerror}; name another one with --out") from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.seek(0)
            who = lock.read().strip() or "unknown"
            raise InputError(
                f"{out} is in use by another {kind} (process {who}); wait for it, or name another folder with --out"
            ) from None
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        yield


def clear(out: Path) -> None:
    """Take away what a run has left in its folder, and nothing else."""
    for pattern in MADE:
        for path in out.glob(pattern):
            path.unlink(missing_ok=True)


def read_config(out: Path) -> dict[str, Any]:
    """The settings that a run began with."""
    try:
        found = json.loads((out / "config.json").read_text())
    except (OSError, ValueError) as error:
        raise InputError(f"{out}/config.json cannot be read ({error}); begin anew with --overwrite") from error
    return found if isinstance(found, dict) else {}


def read_log(out: Path) -> list[dict[str, Any]]:
    """The rounds on record; a last line that a kill cut short does not count."""
    path = out / "metrics.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    rounds = []
    for line in lines:
        try:
            rounds.append(json.loads(line))
        except json.JSONDecodeError:
            break
    return rounds


def as_json(data: dict[str, Any]) -> bytes:
    """What a file of the folder holds, for people to read, too."""
    return (json.dumps(finite(data), indent=1, allow_nan=False) + "\n").encode()


def finite(data: Any) -> Any:
    """The same data with null for numbers that are not finite: JSON has no other word for them.

    >>> finite({"loss": float("nan"), "losses": (1.0, float("inf"))})
    {'loss': None, 'losses': [1.0, None]}
    """
    if isinstance(data, dict):
        return {name: finite(value) for name, value in data.items()}
    if isinstance(data, list | tuple):
        return [finite(value) for value in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data
