"""Folders that one process at a time works in: a run's, a sweep's, an experiment's."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from idarts.errors import InputError
from idarts.files import open_safely, remove_strays

LOCK = ".lock"


def require_own(path: Path, record: str, kind: str) -> None:
    """Refuse a folder that holds other files; it must be new, empty, or contain the file `record`."""
    if path.is_dir() and not (path / record).exists() and any(not file.name.startswith(".") for file in path.iterdir()):
        raise InputError(f"{path} exists and holds no {kind}; name a new folder with --out")


@contextmanager
def locked(path: Path, kind: str) -> Iterator[None]:
    """Create a folder if needed and lock it for this process. The lock ends with the process, even if it is killed.

    Temporary files that an earlier process left here are deleted.
    """
    with _opened(path, "a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.seek(0)
            process = lock.read().strip() or "unknown"
            raise InputError(
                f"{path} is in use by another {kind} (process {process}); wait for it, or choose another with --out"
            ) from None
        try:
            lock.truncate(0)
            lock.write(str(os.getpid()))
            lock.flush()
            remove_strays(path)
        except OSError as error:
            with suppress(OSError):  # what could not be written is written again here
                lock.close()
            raise _refused(path, error) from None
        yield


def _opened(path: Path, mode: str) -> IO[str]:
    try:
        path.mkdir(parents=True, exist_ok=True)
        return open_safely(path / LOCK, mode)
    except OSError as error:
        raise _refused(path, error) from None


def _refused(path: Path, error: OSError) -> InputError:
    return InputError(f"the folder {path} cannot be written: {error.strerror}; choose another with --out")


def holder_is_alive(path: Path) -> bool:
    """Whether the process that locked a folder last runs on this machine. Takes no lock: it must not disturb a run.

    >>> holder_is_alive(Path("no-such-run"))
    False
    """
    if not (path / LOCK).is_file():
        return False
    try:
        os.kill(int((path / LOCK).read_text()[:20]), 0)
    except PermissionError:  # another user's process
        return True
    except (OSError, ValueError, OverflowError):
        return False
    return True


def wait_until_free(path: Path, seconds: float) -> bool:
    """Wait until no process works in a folder, at most so many seconds; whether it is free.

    >>> wait_until_free(Path("no-such-run"), seconds=0.0)
    True
    """
    end = time.monotonic() + seconds
    while path.is_dir():
        with _opened(path, "a") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return True
            except OSError:
                if time.monotonic() >= end:
                    return False
        time.sleep(0.2)
    return True
