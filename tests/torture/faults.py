"""Faults at every file operation: the n-th one fails, is cut short, or ends the process, as a power cut would.

The operations are those of `os` and of open files through which all writing goes: opening for writing, writing,
syncing, renaming, deleting, making folders. SQLite's tests work like this, too.
"""

import builtins
import errno
import io
import os
import shutil
from contextlib import contextmanager
from pathlib import Path

KINDS = ("io", "full", "short", "kill")


class KilledError(BaseException):
    """The process was killed: nothing after this is done, not even in `finally`."""


class Faults:
    """Counts the operations below a folder; at the chosen one something goes wrong."""

    def __init__(self, below, at=None, kind="kill"):
        self.below, self.at, self.kind, self.count, self.dead = str(below), at, kind, 0, False

    def happens(self, path):
        """To be called before an operation; True if only a part of it shall be done."""
        if self.dead:  # cleaning up after a kill does not happen
            raise KilledError
        if not str(path).startswith(self.below):
            return False
        self.count += 1
        if self.count != self.at:
            return False
        if self.kind == "kill":
            self.dead = True
            raise KilledError
        if self.kind == "short":
            return True
        code = errno.EIO if self.kind == "io" else errno.ENOSPC
        raise OSError(code, os.strerror(code), str(path))


class _Writer:
    """An open file whose writing can fail."""

    def __init__(self, file, path, faults):
        self._file, self._path, self._faults = file, path, faults

    def write(self, data):
        if self._faults.happens(self._path):
            self._file.write(data[: len(data) // 2])
            self._file.flush()
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self._path))
        return self._file.write(data)

    def __getattr__(self, name):
        return getattr(self._file, name)

    def __enter__(self):
        self._file.__enter__()
        return self

    def __exit__(self, *error):
        return self._file.__exit__(*error)

    def __iter__(self):
        return iter(self._file)


@contextmanager
def injected(faults):
    """Let faults happen in this block."""
    names = ("replace", "rename", "unlink", "mkdir", "rmdir", "fsync", "remove")
    plain = {name: getattr(os, name) for name in names} | {"open": builtins.open, "io": io.open}

    def operation(name):
        def call(path, *arguments, **options):
            place = os.readlink(f"/proc/self/fd/{path}") if isinstance(path, int) else path
            if faults.happens(place):
                raise OSError(errno.EIO, os.strerror(errno.EIO), str(place))
            return plain[name](path, *arguments, **options)

        return call

    def opened(path, mode="r", *arguments, **options):
        writes = isinstance(path, str | os.PathLike) and set(mode) & set("wxa+")
        if writes and faults.happens(path):
            raise OSError(errno.EIO, os.strerror(errno.EIO), str(path))
        file = plain["open"](path, mode, *arguments, **options)
        return _Writer(file, path, faults) if writes and str(path).startswith(faults.below) else file

    try:
        for name in names:
            setattr(os, name, operation(name))
        builtins.open = io.open = opened
        yield faults
    finally:
        for name in names:
            setattr(os, name, plain[name])
        builtins.open, io.open = plain["open"], plain["io"]


def fresh(source: Path, target: Path) -> Path:
    """A copy of a folder, or nothing where there is none to copy."""
    shutil.rmtree(target.parent, ignore_errors=True)
    target.parent.mkdir()
    if source.exists():
        shutil.copytree(source, target)
    return target
