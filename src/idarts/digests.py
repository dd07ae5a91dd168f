"""Digests: a file holds a checksum of its own content, so that damage is noticed when the file is read.

JSON objects hold it under the key `digest`, binary files in the text `sha256:…`. A file without one was written by
0.1.0 or by hand, and is read as it is.
"""

import hashlib
import json
import math
import re
from collections.abc import Mapping
from typing import Any

from idarts.errors import InputError

KEY = "digest"
MARK, _LENGTH = "sha256:", 32
BLANK = MARK + "0" * _LENGTH  # to be put into a binary file before `sealed`
_FILLED = re.compile(rb"sha256:[0-9a-f]{%d}" % _LENGTH)


def digest(content: bytes) -> str:
    """Half of SHA-256 in hexadecimal: enough against accidents, short enough for a line of a log.

    >>> digest(b"")
    'sha256:e3b0c44298fc1c149afbf4c8996fb924'
    """
    return MARK + hashlib.sha256(content).hexdigest()[:_LENGTH]


def with_digest(data: Mapping[str, Any]) -> dict[str, Any]:
    """The same object with the digest of its content, which does not depend on order and layout. NaN becomes None.

    >>> with_digest({"loss": 0.5})
    {'loss': 0.5, 'digest': 'sha256:96cee10d92496ca05ceb6b01726f15a7'}
    """
    plain = json.loads(json.dumps(finite(dict(data))))  # as it will be read: text for keys, lists for tuples
    plain.pop(KEY, None)
    return {**plain, KEY: _of_object(plain)}


def without_digest(data: Any) -> Any:
    """The same data, checked, without its digest; data that has none stays as it is.

    >>> without_digest({"loss": 0.75, "digest": "sha256:96cee10d92496ca05ceb6b01726f15a7"})
    Traceback (most recent call last):
    idarts.errors.InputError: its content does not match its digest; if you edited it, delete the digest
    """
    if not isinstance(data, dict) or not data:
        return data
    last = next(reversed(data.values()))
    if KEY not in data and not (isinstance(last, str) and last.startswith(MARK)):  # else its name is damaged
        return data
    plain = {name: value for name, value in data.items() if name != KEY}
    if data.get(KEY) != _of_object(plain):
        raise InputError("its content does not match its digest; if you edited it, delete the digest")
    return plain


def _of_object(plain: dict[str, Any]) -> str:
    return digest(json.dumps(plain, sort_keys=True).encode())


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


def sealed(content: bytes) -> bytes:
    """Bytes that hold `BLANK` once, with the digest of these bytes in its place.

    >>> sealed(b"weights" + BLANK.encode())
    b'weightssha256:5617eb443164589c85abf1c9c57a475a'
    """
    if content.count(BLANK.encode()) != 1:
        raise ValueError(f"a file to be sealed must hold {BLANK} once")
    return content.replace(BLANK.encode(), digest(content).encode())


def is_intact(content: bytes) -> bool:
    """Whether the bytes match the digest in them; True if they hold none.

    >>> file = sealed(b"weights" + BLANK.encode())
    >>> is_intact(file), is_intact(file.replace(b"w", b"v")), is_intact(b"weights")
    (True, False, True)
    """
    written = _FILLED.search(content)
    if written is None:
        return True
    return digest(content.replace(written[0], BLANK.encode())) == written[0].decode()
