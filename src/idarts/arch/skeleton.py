"""The skeleton around the cells of a network: how many, how wide, for what images."""

from dataclasses import dataclass, fields, replace
from typing import Any

from idarts.errors import InputError


@dataclass(frozen=True)
class Skeleton:
    """`depth` counts cells, or cells per stage, as the space has it; `channels` is the width of the first cells.

    `image` is the side of the images for which multiply-adds are counted. `large` asks for a stem for large images, in
    a space that has one.

    >>> Skeleton(depth=0, channels=16, classes=10, image=32)
    Traceback (most recent call last):
    idarts.errors.InputError: depth is 0, expected a whole number of at least 1
    """

    depth: int
    channels: int
    classes: int
    image: int
    large: bool = False

    def __post_init__(self) -> None:
        for name in ("depth", "channels", "classes", "image"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise InputError(f"{name} is {value!r}, expected a whole number of at least 1")

    def changed(self, **changes: int | None) -> "Skeleton":
        """The same skeleton with other parts; None leaves a part as it is.

        >>> Skeleton(depth=5, channels=16, classes=10, image=32).changed(classes=100, depth=None).classes
        100
        """
        unknown = set(changes) - {field.name for field in fields(self)}
        if unknown:
            raise InputError(f"unknown part {min(unknown)!r} of a skeleton, expected depth, channels, classes or image")
        parts: dict[str, Any] = {name: value for name, value in changes.items() if value is not None}
        return replace(self, **parts)
