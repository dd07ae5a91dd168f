"""Which images a run used, by their content: an image that was trained on never counts in a test.

A digest is the first 8 bytes of SHA-256: of a file's bytes for images from a folder, so that renamed and moved files
are recognised, and of the pixels for images from arrays, at the size that the network sees. The probability that some
two of a million different images have the same digest is 1 in 37 million.
"""

import hashlib
import os
import warnings
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from idarts.data.record import ImageData, Images, Part, SomePart, Statistics, join, take
from idarts.digests import BLANK, is_intact, sealed
from idarts.errors import InputError
from idarts.files import safetensors_note

Digests = NDArray[np.int64]
Labels = NDArray[np.int32]
FORMAT = "idarts-split-1"
_NONE: Digests = np.empty(0, np.int64)
_PARTS = ("train", "valid", "test", "before")


def digests(part: Part) -> Digests | None:
    """One number for the content of each image; None for a `Dataset` that computes its images during use.

    >>> from idarts.data import load
    >>> digits = load("digits").train
    >>> few = take(digits, torch.tensor([5, 6]), {})
    >>> len(np.unique(digests(digits))), np.array_equal(digests(few), digests(digits)[5:7])
    (1438, True)
    """
    if part.files is not None:
        with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:  # SHA-256 runs outside Python's lock
            return np.array(list(pool.map(_file_digest, part.files)), np.int64)
    if not isinstance(part, Images):
        return None
    pixels = part.images.permute(0, 2, 3, 1).contiguous().numpy()
    return np.array([_digest(image.tobytes()) for image in pixels], np.int64)


@dataclass(frozen=True, eq=False)
class Split:
    """The images of a run, as digests in the order of its parts, and how it normalised them.

    `train` and `valid` were used by the run itself, `before` by the search that its architecture comes from.
    """

    kind: str  # what the digests are of: files or pixels
    train: Digests
    valid: Digests
    test: Digests
    before: Digests
    mean: Statistics
    std: Statistics
    labels: Labels  # of train, valid and test, one after the other; older records have none

    @property
    def seen(self) -> Digests:
        """All images that are no test images."""
        return np.concatenate([self.train, self.valid, self.before])

    def same_images(self, other: "Split") -> bool:
        """Whether another record has the same images in the same order."""
        return all(np.array_equal(getattr(self, name), getattr(other, name)) for name in ("train", "valid", "test"))

    def to_bytes(self) -> bytes:
        """The content of a file: 12 bytes an image."""
        from safetensors.numpy import save  # noqa: PLC0415 (only files need it)

        numbers = {"mean": np.array(self.mean, np.float64), "std": np.array(self.std, np.float64)}
        parts = {name: getattr(self, name) for name in _PARTS}
        # A single note, because safetensors writes several in any order.
        return sealed(save({**parts, **numbers, "labels": self.labels}, {"idarts": f"{FORMAT} {self.kind} {BLANK}"}))


def read_split(file: Path) -> Split | None:
    """The record that `Split.to_bytes` wrote; None if there is no file.

    >>> read_split(Path("nothing")) is None
    True
    """
    from safetensors import SafetensorError  # noqa: PLC0415 (only files need it)
    from safetensors.numpy import load  # noqa: PLC0415 (only files need it)

    if not os.path.isfile(file):  # also False for a text that is no path
        return None
    try:
        content = file.read_bytes()
        if not is_intact(content):
            raise InputError("its content does not match its digest")
        arrays = load(content)
        note = safetensors_note(content)
        form, kind, *_ = f"{note['idarts']} ".split(" ")
        if form != FORMAT or kind not in ("files", "pixels"):
            raise InputError(f"format {note['idarts']!r}, expected {FORMAT!r}")
        parts: dict[str, Any] = {name: arrays[name] for name in _PARTS}
        if any(part.dtype != np.int64 or part.ndim != 1 for part in parts.values()):
            raise InputError("parts that are not lists of digests")
        labels = arrays.get("labels", np.empty(0, np.int32))
        if labels.dtype != np.int32 or labels.shape not in ((0,), (sum(len(parts[name]) for name in _PARTS[:3]),)):
            raise InputError("labels of other images")
        mean, std = (tuple(map(float, arrays[name])) for name in ("mean", "std"))
        return Split(kind, **parts, mean=mean, std=std, labels=labels)
    except (SafetensorError, OSError, InputError, AttributeError, KeyError, TypeError, UnicodeDecodeError) as error:
        raise InputError(
            f"{file} is damaged ({error}); without it, the test images are not known; restore it, or use another run"
        ) from None


def used(train: Part, valid: Part | None = None, before: Split | None = None) -> Split | None:
    """The record of a run that uses these parts; `before` is the record of the search that it builds on.

    It warns of equal images with different labels.

    >>> from idarts.data import load
    >>> digits = load("digits")
    >>> len(used(digits.train, digits.test).seen)
    1797
    """
    trained = digests(train)
    if trained is None:
        return None
    kind, validated = kind_of(train), _known(None if valid is None else digests(valid))
    old = before.seen if before is not None and before.kind == kind else _NONE
    parts = [train] if valid is None or not len(validated) else [train, valid]
    labels = np.concatenate([_labels(part) for part in parts])
    _warn_of_contradictions(parts, np.concatenate([trained, validated]), labels)
    return Split(kind, trained, validated, _NONE, np.unique(old), train.mean, train.std, labels)


def _warn_of_contradictions(parts: Sequence[Part], known: Digests, labels: Labels) -> None:
    order = np.lexsort((labels, known))
    one, other = order[:-1], order[1:]
    both = (known[one] == known[other]) & (labels[one] != labels[other])
    if not both.any():
        return
    pair = [int(places[both][0]) for places in (one, other)]
    files = [file for part in parts for file in part.files or ()]
    names = [str(files[place]) if files else f"one of class {labels[place]}" for place in pair]
    count = len(np.unique(known[one][both]))
    warnings.warn(
        f"equal images in different classes: {count:,}, such as {' and '.join(names)}; correct their labels",
        UserWarning,
        stacklevel=3,
    )


def clean(data: ImageData, split: Split) -> tuple[ImageData, Split]:
    """The data without the test images that the run has seen, and the record with the test images that are left.

    >>> from idarts.data import load
    >>> x = np.arange(60, dtype=np.uint8).reshape(60, 1, 1).repeat(8, 1).repeat(8, 2)
    >>> data = load(((x[:50], np.arange(50) % 2), (x[40:], np.arange(20) % 2)))
    >>> cleaned, split = clean(data, used(data.train))
    >>> len(data.test), len(cleaned.test), len(split.test)
    (20, 10, 10)
    """
    tested = None if data.test is None else digests(data.test)
    if data.test is None or tested is None or not comparable(data.test, split):
        return data, split
    seen, labels = np.isin(tested, split.seen), _labels(data.test)
    if seen.any():
        rule = {**data.test.rule, "left out, as trained on": int(seen.sum())}
        kept = take(data.test, torch.from_numpy((~seen).nonzero()[0]), rule)
        data = replace(data, test=kept if len(kept) else None)
    return data, replace(split, test=tested[~seen], labels=np.concatenate([split.labels, labels[~seen]]))


def restore(data: ImageData, split: Split) -> ImageData:
    """The data with the parts of a record, image by image, even if images were added, renamed or moved since.

    Of equal images in different classes, each gets the one with its label.

    >>> from idarts.data import load
    >>> digits = load("digits")
    >>> _, split = clean(digits, used(digits.train))
    >>> again = restore(load("digits", seed=5), split)
    >>> torch.equal(again.train.images, digits.train.images), torch.equal(again.test.labels, digits.test.labels)
    (True, True)
    """
    pool = whole(data)
    known = digests(pool)
    if known is None or not comparable(pool, split):
        raise InputError(f"{data.source} is another kind of data than that of the run; resume with the same data")
    places = {digest: place for place, digest in enumerate(known.tolist())}
    labelled = dict(zip(zip(known.tolist(), pool.labels.tolist(), strict=True), range(len(known)), strict=True))
    labels = iter(split.labels.tolist())
    parts: dict[str, Part | None] = {}
    for name in ("train", "valid", "test"):
        wanted = getattr(split, name).tolist()
        missing = sum(digest not in places for digest in wanted)
        if missing:
            raise InputError(
                f"{data.source}: {missing} of the {len(wanted)} {name} images of the run are gone or changed; "
                "put them back, or start again with --overwrite (overwrite=True in Python)"
            )
        chosen = [labelled.get((digest, next(labels, None)), places[digest]) for digest in wanted]
        order = torch.tensor(chosen, dtype=torch.int64)
        part = take(pool, order, {"split": "by content", "part": name})
        parts[name] = replace(part, mean=split.mean, std=split.std) if wanted else None
    train = parts["train"]
    if train is None:
        raise InputError(
            "the record of the run's images is empty; start again with --overwrite (overwrite=True in Python)"
        )
    return replace(data, train=train, valid=parts["valid"], test=parts["test"])


def comparable(part: Part, split: Split) -> bool:
    """Whether the images of a part can be found in a record: both are of files, or both of pixels."""
    return kind_of(part) == split.kind and (part.files is not None or isinstance(part, Images))


def unseen(part: SomePart, split: Split, rule: Mapping[str, Any]) -> SomePart:
    """The images of a part that were neither trained nor validated on."""
    seen = np.isin(_known(digests(part)), split.seen)
    return take(part, torch.from_numpy((~seen).nonzero()[0]), rule) if seen.any() else part


def among(part: SomePart, wanted: Digests, rule: Mapping[str, Any]) -> SomePart:
    """The images of a part whose digests are among the wanted ones."""
    return take(part, torch.from_numpy(np.isin(_known(digests(part)), wanted).nonzero()[0]), rule)


def whole(data: ImageData) -> Part:
    """All images of a data set as one part.

    >>> from idarts.data import load
    >>> len(whole(load("digits")))
    1797
    """
    return join([part for part in (data.train, data.valid, data.test) if part is not None])


def kind_of(part: Part) -> str:
    """What a part's digests are of."""
    return "pixels" if part.files is None else "files"


def _known(values: Digests | None) -> Digests:
    return _NONE if values is None else values


def _labels(part: Part) -> Labels:
    return part.labels.numpy().astype(np.int32)


def _digest(content: bytes) -> int:
    return int.from_bytes(hashlib.sha256(content).digest()[:8], "big", signed=True)


def _file_digest(file: Path) -> int:
    try:
        return _digest(file.read_bytes())
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror}; restore or remove it") from None
