"""TensorBoard's event files, written without TensorBoard: records with checksums, in each a small protobuf message."""

import os
import struct
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, BinaryIO, Self

from idarts.errors import InputError

NAME = "events.out.tfevents.{}.idarts"  # TensorBoard looks for `tfevents`, and reads a folder's files by name

# What stands before the slash is a group of charts; fields that have no place here go to `run`.
TAGS = {
    "train_loss": "loss/train",
    "valid_loss": "loss/valid",
    "train_accuracy": "accuracy/train",
    "valid_accuracy": "accuracy/valid",
    "entropy": "alpha/entropy",
    "margin": "alpha/margin",
    "norm": "hypergradient/norm",
    "implicit_share": "hypergradient/implicit_share",
    "contraction": "hypergradient/contraction",
    "step": "hypergradient/step",
}


class EventWriter:
    """Scalars into a folder's event file, which begins with the first of them. A folder has one writer at a time.

    A later writer adds a file of its own, and takes back what earlier ones wrote at its first step and after: a run
    that is resumed from a checkpoint has every step once.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, EventWriter(folder) as writer:
    ...     writer.scalar("loss/train", 2.3, step=1)
    ...     len(list(Path(folder).glob("*tfevents*")))
    1
    """

    def __init__(self, folder: "str | os.PathLike[str]") -> None:
        self.folder = Path(folder)
        self.file: BinaryIO | None = None

    def scalar(self, tag: str, value: float, step: int) -> None:
        """One number at one step. Steps must not fall."""
        self.scalars({tag: value}, step)

    def scalars(self, values: Mapping[str, float], step: int) -> None:
        """Several numbers at one step, in one record."""
        if step < 0:
            raise InputError(f"step is {step}, expected a whole number of at least 0")
        summary = b"".join(_part(1, _part(1, tag.encode()) + b"\x15" + _float(value)) for tag, value in values.items())
        try:
            self.file = self.file or _begin(self.folder, step)
            self.file.write(_record(_event(step, _part(5, summary))))
        except OSError as error:
            raise InputError(f"no events can be written to {self.folder}: {error.strerror}") from None

    def close(self) -> None:
        """Nothing is written that was not written before; a scalar after this begins another file."""
        if self.file:
            self.file.close()
        self.file = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@contextmanager
def watch_events(folder: "str | os.PathLike[str]") -> Iterator[Callable[[Any, object], None]]:
    """What a run calls after every round: all the record's numbers become scalars, their step is the round's number.

    >>> import tempfile
    >>> from dataclasses import make_dataclass
    >>> found = make_dataclass("Round", ["number", "valid_loss"])(1, 2.4)
    >>> with tempfile.TemporaryDirectory() as folder, watch_events(folder) as watch:
    ...     watch(found, None)
    ...     b"loss/valid" in next(Path(folder).iterdir()).read_bytes()
    True
    """
    with EventWriter(folder) as writer:

        def watch(found: Any, _work: object) -> None:
            values = {name: value for name, value in asdict(found).items() if name != "number"}
            numbers = {name: value for name, value in values.items() if isinstance(value, int | float)}
            writer.scalars({TAGS.get(name, f"run/{name}"): value for name, value in numbers.items()}, found.number)

        yield watch


def _begin(folder: Path, step: int) -> BinaryIO:
    """A new file, after earlier ones have been cut before `step`."""
    folder.mkdir(parents=True, exist_ok=True)
    earlier = sorted(folder.glob(NAME.format("*")))
    for path in earlier:
        _cut(path, step)
    file = (folder / NAME.format(time.time_ns())).open("xb", buffering=0)  # whole records: a kill loses none
    file.write(_record(_event(0, _part(3, b"brain.Event:2"))))
    if earlier:  # SessionLog.START: a TensorBoard that has read later steps already forgets them
        file.write(_record(_event(step, _part(7, b"\x08\x01"))))
    return file


def _cut(path: Path, step: int) -> None:
    """Take back a file's records from `step` on, and one that a kill cut short; a file with none left goes."""
    data = path.read_bytes()
    end = first = 0
    while (length := _length(data, end)) is not None and (not end or _step(data, end + 12) < step):
        end += length + 16
        first = first or end
    if end > first:
        os.truncate(path, end)
    else:
        path.unlink()


def _length(data: bytes, start: int) -> int | None:
    """Of the message in the record that begins at `start`; None if there is no whole record."""
    header = data[start : start + 8]
    if len(header) < 8 or data[start + 8 : start + 12] != _checksum(header):
        return None
    length: int = struct.unpack("<Q", header)[0]
    return length if start + length + 16 <= len(data) else None


def _step(data: bytes, start: int) -> int:
    """Of the message that begins at `start`: after the time, nine bytes, and its own key, one byte."""
    step, shift, place = 0, 0, start + 10
    while True:
        step |= (data[place] & 127) << shift
        if data[place] < 128:
            return step
        shift, place = shift + 7, place + 1


def _record(message: bytes) -> bytes:
    """TFRecord's frame: length and message, each with its checksum."""
    length = struct.pack("<Q", len(message))
    return length + _checksum(length) + message + _checksum(message)


def _event(step: int, content: bytes) -> bytes:
    return b"\x09" + struct.pack("<d", time.time()) + b"\x10" + _varint(step) + content


def _part(field: int, content: bytes) -> bytes:
    """A protobuf field of bytes: text, or a message."""
    return bytes([field << 3 | 2]) + _varint(len(content)) + content


def _varint(number: int) -> bytes:
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes([*found, number])


def _float(value: float) -> bytes:
    try:
        return struct.pack("<f", value)
    except OverflowError:  # too large for 32 bits
        return struct.pack("<f", float("inf") if value > 0 else float("-inf"))


def _shifted(crc: int) -> int:
    for _ in range(8):
        crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc


_CRC = [_shifted(byte) for byte in range(256)]


def _checksum(data: bytes) -> bytes:
    """CRC32C (Castagnoli), masked as TFRecord has it."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _CRC[(crc ^ byte) & 0xFF] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)
