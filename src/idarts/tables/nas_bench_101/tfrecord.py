"""NAS-Bench-101 as its authors publish it: a TFRecord file, read without TensorFlow.

A record has a length, a content, and the masked CRC-32C checksums of both. The content is a JSON list: fingerprint,
epochs, adjacency matrix row by row, operations, and a ModelMetrics protobuf in base64. In that message, field 1 is an
evaluation (before, halfway and after training) and field 2 the number of parameters. In an evaluation, field 2 is the
training time, and fields 3 to 5 are the accuracies in training, validation and test.
"""

import json
import struct
from base64 import b64decode
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from idarts.errors import InputError
from idarts.files import crc32c
from idarts.tables.registry import Progress

_BATCH = 4096
_LONGEST = 1 << 20  # bytes; official records have some hundreds
_FRAME = struct.Struct("<QI")
METRICS = ("train_time", "train", "valid", "test")  # fields 2 to 5 of an evaluation


class Record(NamedTuple):
    """One training of one cell."""

    fingerprint: bytes
    epochs: int
    adjacency: str
    ops: str
    params: int
    metrics: tuple[float, ...]  # after training: see METRICS


def read_records(file: Path, progress: Progress | None = None) -> Iterator[Record]:
    """The trainings in a file, with their checksums verified.

    >>> next(read_records(Path("nothing.tfrecord")))
    Traceback (most recent call last):
    idarts.errors.InputError: nothing.tfrecord cannot be read: No such file or directory
    """
    number = 0
    try:
        size = file.stat().st_size
        with file.open("rb") as stream:
            while batch := _framed(stream, file, number):
                for content in batch:
                    yield _record(content, file, number)
                    number += 1
                if progress:
                    progress(stream.tell(), size)
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror or error}") from None


def _framed(stream: BinaryIO, file: Path, number: int) -> list[bytes]:
    """The contents of the next records, with their checksums verified."""
    heads: list[bytes] = []
    contents: list[bytes] = []
    checksums: list[bytes] = []
    while len(contents) < _BATCH and (head := stream.read(_FRAME.size)):
        length = _FRAME.unpack(head)[0] if len(head) == _FRAME.size else _LONGEST + 1
        content = stream.read(length) if length <= _LONGEST else b""
        tail = stream.read(4)
        if len(content) != length or len(tail) != 4:
            raise InputError(f"{file}: record {number + len(contents)} is cut off or damaged; get the file again")
        heads.append(head)
        contents.append(content)
        checksums.append(tail)
    for parts, stored in (([head[:8] for head in heads], [head[8:] for head in heads]), (contents, checksums)):
        wrong = np.flatnonzero(_masked_crc32c(parts) != np.frombuffer(b"".join(stored), "<u4"))
        if len(wrong):
            raise InputError(f"{file}: record {number + int(wrong[0])} has a wrong checksum; get the file again")
    return contents


def _masked_crc32c(contents: Sequence[bytes]) -> NDArray[np.uint32]:
    checksums = crc32c(contents)
    rotated: NDArray[np.uint32] = np.bitwise_or(checksums >> np.uint32(15), checksums << np.uint32(17))
    return rotated + np.uint32(0xA282EAD8)


def _record(content: bytes, file: Path, number: int) -> Record:
    try:
        fingerprint, epochs, adjacency, ops, encoded = json.loads(content)
        message = _fields(b64decode(encoded, validate=True))
        evaluation = _fields(message[1][2])
        metrics = tuple(struct.unpack("<d", evaluation[field][0])[0] for field in (2, 3, 4, 5))
        return Record(bytes.fromhex(fingerprint), int(epochs), str(adjacency), str(ops), int(message[2][0]), metrics)
    except (ValueError, TypeError, LookupError, OverflowError, RecursionError, struct.error) as error:
        problem = f"is not a training of NAS-Bench-101 ({type(error).__name__})"
        raise InputError(f"{file}: record {number} {problem}; get the file again") from None


def _fields(message: bytes) -> dict[int, list[Any]]:
    """The fields of a protobuf message by number: varints as integers, all others as bytes."""
    fields: dict[int, list[Any]] = {}
    value: int | bytes
    place = 0
    while place < len(message):
        tag, place = _varint(message, place)
        kind = tag & 7
        if kind == 0:
            value, place = _varint(message, place)
        else:
            length = {1: 8, 5: 4}.get(kind)
            if kind == 2:
                length, place = _varint(message, place)
            if length is None or place + length > len(message):
                raise ValueError("a damaged message")
            value, place = message[place : place + length], place + length
        fields.setdefault(tag >> 3, []).append(value)
    return fields


def _varint(message: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while message[place] & 0x80:
        value |= (message[place] & 0x7F) << shift
        place, shift = place + 1, shift + 7
    return value | message[place] << shift, place + 1
