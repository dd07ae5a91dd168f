"""Files that the other packages read and write: atomic writes and JSON."""

import json
import math
import secrets
from contextlib import suppress
from pathlib import Path
from typing import Any

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


def load_json(text: str) -> Any:
    """`json.loads` with an InputError for every text that is not JSON.

    >>> load_json('{"schema": ')
    Traceback (most recent call last):
    idarts.errors.InputError: not JSON: Expecting value: line 1 column 12 (char 11)
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise InputError("not JSON that can be read: it is nested too deeply") from None
    except ValueError as error:  # also integers with thousands of digits
        raise InputError(f"not JSON: {error}") from None


def dump_json(data: Any) -> bytes:
    r"""The bytes of a JSON file that people can read, too. Numbers that are not finite become null.

    >>> dump_json({"loss": float("nan")})
    b'{\n "loss": null\n}\n'
    """
    return (json.dumps(finite(data), indent=1, allow_nan=False) + "\n").encode()


def finite(data: Any) -> Any:
    """The same data with None for every number that is not finite, because JSON cannot write those.

    >>> finite({"loss": float("nan"), "losses": (1.0, float("inf"))})
    {'loss': None, 'losses': [1.0, None]}
    """
    if isinstance(data, dict):
        return {name: finite(value) for name, value in data.items()}
    if isinstance(data, list | tuple):
        return [finite(value) for value in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data
