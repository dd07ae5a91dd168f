"""Which images an evaluation uses. The split belongs to the training that recorded it, not to the data of today."""

import warnings
from dataclasses import dataclass

from torch import nn

from idarts.data import ImageData, Part, Split
from idarts.data.content import among, comparable, unseen, whole
from idarts.data.loading import with_test
from idarts.data.record import join
from idarts.errors import InputError, require_known

PARTS = ("test", "valid", "train", "all")


@dataclass(frozen=True)
class Chosen:
    """Images to evaluate on; None where a number is unknown, because the network has no record of its training."""

    part: str
    images: Part
    left_out: int | None = None  # images that were trained on, and therefore are no test images
    trained_on: int | None = None  # images among `images` that were trained on


def choose(net: nn.Module, data: ImageData, part: str = "test") -> Chosen:
    """The images of a part for a network, by the record of its training.

    `test` are all images that were never trained on, or those among the source's own test images; `train` and `valid`
    are the images of the record; `all` is everything. Without a record, the parts are those of the data.

    >>> from idarts.data import load
    >>> from idarts.data.content import used
    >>> few, net = load("digits", hold_out=0.5), nn.Identity()
    >>> net.split = used(few.train)
    >>> chosen = choose(net, load("digits"), "test")
    >>> len(chosen.images), chosen.left_out, len(few.train) + len(chosen.images)
    (898, 899, 1797)
    """
    require_known("part", part, PARTS)
    split: Split | None = getattr(net, "split", None)
    if split is None:
        return Chosen(part, whole(data) if part == "all" else _present(data, part, warn=part == "test"))
    if not comparable(data.train, split):
        warnings.warn(
            f"{data.source} is not the kind of data that the network was trained on ({split.kind}), so images that it "
            "was trained on cannot be recognised",
            UserWarning,
            stacklevel=3,
        )
        return Chosen(part, whole(data) if part == "all" else _present(data, part))
    if part == "all":
        images = whole(data)
        return Chosen(part, images, trained_on=len(images) - len(unseen(images, split, {})))
    if part == "test":
        return _test(data, split)
    images = among(whole(data), getattr(split, part), {"split": "by content", "part": part})
    if not len(images):
        raise InputError(f"{data.source} has no {part} images of the network's training; use --part test or all")
    return Chosen(part, images, trained_on=len(images))


def _test(data: ImageData, split: Split) -> Chosen:
    """The source's own test images, or everything if `load` has held some out; without what was trained on."""
    own = data.test is not None and not held_out(data)
    candidates = [part for part in ((data.test,) if own else (data.train, data.valid, data.test)) if part is not None]
    rule = {"split": "by content", "part": "test"}
    clean = [kept for part in candidates if len(kept := unseen(part, split, rule))]
    total = sum(map(len, candidates))
    if not clean:
        raise InputError(
            f"the network was trained on all {total:,} images of {data.source}{' (test)' if own else ''}; "
            "give --data with other images, or use --part all"
        )
    images = join(clean)
    return Chosen("test", images, left_out=total - len(images), trained_on=0)


def divided(net: nn.Module, data: ImageData, part: str) -> ImageData:
    """The data, with test images held out only if the part needs them: then a class may have a single image.

    >>> from idarts.data import load
    >>> divided(nn.Identity(), load("digits", hold_out=0), "all").test is None
    True
    """
    split: Split | None = getattr(net, "split", None)
    known = split is not None and comparable(data.train, split)
    return data if part == "all" or known else with_test(data)


def held_out(data: ImageData) -> bool:
    """Whether the test images were taken from the training images, because the source has none.

    >>> from idarts.data import load
    >>> held_out(load("digits"))
    True
    """
    return data.test is not None and "seed" in data.test.rule


def _present(data: ImageData, part: str, warn: bool = False) -> Part:
    """A part of the data as it is today."""
    images: Part | None = getattr(data, part)
    if images is None:
        others = " and ".join(name for name in PARTS[:-1] if getattr(data, name) is not None)
        raise InputError(f"{data.source} has no {part} images, only {others}")
    if warn and held_out(data) and data.train.files is not None:
        warnings.warn(
            f"the network has no record of its training images; if {data.source} has changed since, some of these "
            "test images may be among them",
            UserWarning,
            stacklevel=4,
        )
    return images
