"""The skeleton around a cell: how many cells, how wide, for what images. The benchmarks' own are in `MACROS`."""

from dataclasses import dataclass, fields, replace
from typing import Any

from idarts.errors import InputError


@dataclass(frozen=True)
class Macro:
    """`depth` counts cells in `darts` and cells per stage elsewhere; `channels` is the width of the first cells.

    `image` is the side of the images for which multiply-adds are counted; `large` gives DARTS its ImageNet stem.

    >>> Macro(depth=0, channels=16, classes=10, image=32)
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

    def changed(self, **changes: int | None) -> "Macro":
        """The same with other parts; None leaves a part as it is.

        >>> Macro(depth=5, channels=16, classes=10, image=32).changed(classes=100, depth=None).classes
        100
        """
        unknown = set(changes) - {field.name for field in fields(self)}
        if unknown:
            raise InputError(f"unknown part {min(unknown)!r} of a macro, expected depth, channels, classes or image")
        parts: dict[str, Any] = {name: value for name, value in changes.items() if value is not None}
        return replace(self, **parts)


_NAS_BENCH_101 = {"cifar10": Macro(depth=3, channels=128, classes=10, image=32)}

# The networks in which each space's cells were published. The first one is the default.
MACROS: dict[str, dict[str, Macro]] = {
    "darts": {
        "cifar": Macro(depth=20, channels=36, classes=10, image=32),
        "imagenet": Macro(depth=14, channels=48, classes=1000, image=224, large=True),
    },
    "nas-bench-201": {
        "cifar10": Macro(depth=5, channels=16, classes=10, image=32),
        "cifar100": Macro(depth=5, channels=16, classes=100, image=32),
        "imagenet16": Macro(depth=5, channels=16, classes=120, image=16),
    },
    "nas-bench-101": _NAS_BENCH_101,
    "nas-bench-1shot1": _NAS_BENCH_101,
}


def macro(space: str, name: str | None = None, **changes: int | None) -> Macro:
    """A published macro of a space by name, with changes; None leaves a part as it is.

    >>> macro("darts", "cifar", depth=8).channels
    36
    >>> macro("darts", "mnist")
    Traceback (most recent call last):
    idarts.errors.InputError: unknown macro 'mnist' of darts, expected one of cifar, imagenet
    """
    if space not in MACROS:
        raise InputError(f"a network of {space!r} cannot be built from its record, only of {', '.join(MACROS)}")
    known = MACROS[space]
    if name is not None and name not in known:
        raise InputError(f"unknown macro {name!r} of {space}, expected one of {', '.join(known)}")
    return known[name or next(iter(known))].changed(**changes)
