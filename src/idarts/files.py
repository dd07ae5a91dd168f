"""Writing a file so that a reader finds either all of it or none of it."""

import secrets
from contextlib import suppress
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
    temporary = beside(path)
    try:
        with temporary.open("xb") as file:
            file.write(content)
        temporary.replace(path)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from None
    finally:
        with suppress(OSError):  # a folder that is none was told of already
            temporary.unlink(missing_ok=True)


def beside(path: Path) -> Path:
    """A name in the same folder that nobody else takes. Unlike `tempfile`'s, what is made there has usual rights.

    >>> beside(Path("runs/a.txt")).match("runs/.a.txt.*")
    True
    """
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}")
