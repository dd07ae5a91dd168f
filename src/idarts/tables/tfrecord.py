"""NAS-Bench-101 as its authors publish it: a TFRecord file, read without TensorFlow.

A record is framed by its length and by masked CRC-32C sums of the length and of the content. The content is a JSON
list: fingerprint, epochs, adjacency matrix row by row, operations, and a ModelMetrics protobuf in base64. Of that
message, field 1 is an evaluation (before, halfway and after training), field 2 the number of parameters; of an
evaluation, field 2 is the training time and fields 3 to 5 are the accuracies in training, validation and test.
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
from idarts.tables.pickles import Progress

_BATCH = 4096
_LONGEST = 1 << 20  # bytes; official records have some hundred
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
    """The trainings in a file, each checked by its sums.

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
    """The contents of the next records, after their sums were found right."""
    heads: list[bytes] = []
    contents: list[bytes] = []
    sums: list[bytes] = []
    while len(contents) < _BATCH and (head := stream.read(_FRAME.size)):
        length = _FRAME.unpack(head)[0] if len(head) == _FRAME.size else _LONGEST + 1
        content = stream.read(length) if length <= _LONGEST else b""
        tail = stream.read(4)
        if len(content) != length or len(tail) != 4:
            raise InputError(f"{file}: record {number + len(contents)} is cut off or damaged; get the file again")
        heads.append(head)
        contents.append(content)
        sums.append(tail)
    for parts, stored in (([head[:8] for head in heads], [head[8:] for head in heads]), (contents, sums)):
        wrong = np.flatnonzero(masked_crc32c(parts) != np.frombuffer(b"".join(stored), "<u4"))
        if len(wrong):
            raise InputError(f"{file}: record {number + int(wrong[0])} has a wrong checksum; get the file again")
    return contents


def masked_crc32c(contents: Sequence[bytes]) -> NDArray[np.uint32]:
    """TFRecord's sums of many byte strings at once: byte by byte, all strings side by side.

    >>> [hex(value) for value in masked_crc32c([b"123456789", b""])]
    ['0xc78ab0e5', '0xa282ead8']
    """
    lengths = np.array([len(content) for content in contents], np.int64)
    order = np.argsort(-lengths, kind="stable")  # the longest first, so that those not yet done are a slice
    width = int(lengths.max(initial=0))
    padded = b"".join(contents[index].ljust(width, b"\0") for index in order)
    by_position = np.ascontiguousarray(np.frombuffer(padded, np.uint8).reshape(len(contents), width).T)
    left = np.searchsorted(-lengths[order], -np.arange(width), side="left")
    state = np.full(len(contents), 0xFFFFFFFF, np.uint32)
    for column, count in zip(by_position, left, strict=True):
        part = state[:count]
        state[:count] = _CRC[(part ^ column[:count]) & 0xFF] ^ (part >> 8)
    found = np.empty_like(state)
    found[order] = state ^ np.uint32(0xFFFFFFFF)
    turned: NDArray[np.uint32] = np.bitwise_or(found >> np.uint32(15), found << np.uint32(17))
    return turned + np.uint32(0xA282EAD8)


def _crc_table() -> NDArray[np.uint32]:
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, table >> 1 ^ np.uint32(0x82F63B78), table >> 1)
    return table


_CRC = _crc_table()


def _record(content: bytes, file: Path, number: int) -> Record:
    try:
        fingerprint, epochs, adjacency, ops, encoded = json.loads(content)
        message = _fields(b64decode(encoded, validate=True))
        evaluation = _fields(message[1][2])
        metrics = tuple(struct.unpack("<d", evaluation[field][0])[0] for field in (2, 3, 4, 5))
        return Record(bytes.fromhex(fingerprint), int(epochs), str(adjacency), str(ops), int(message[2][0]), metrics)
    except (ValueError, TypeError, LookupError, OverflowError, RecursionError, struct.error) as error:
        problem = f"is not one of NAS-Bench-101 ({type(error).__name__})"
        raise InputError(f"{file}: record {number} {problem}; get the file again") from None


def _fields(message: bytes) -> dict[int, list[Any]]:
    """A protobuf message by field number: numbers where they are varints, else their bytes."""
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
