"""Writing a file so that a reader finds either all of it or none of it."""

import os
import tempfile
from pathlib import Path

from idarts.errors import InputError


def write_whole(path: Path, content: bytes) -> None:
    """Write beside the target and rename: an interrupted write leaves the target as it was.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_whole(Path(folder, "a.txt"), b"all of it")
    ...     Path(folder, "a.txt").read_bytes()
    b'all of it'
    """
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from None
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.chmod(temporary, 0o644)  # mkstemp makes it private
        os.replace(temporary, path)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from None
    finally:
        Path(temporary).unlink(missing_ok=True)
