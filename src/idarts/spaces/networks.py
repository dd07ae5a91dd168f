"""Networks of architectures, for training from scratch."""

from os import PathLike
from typing import Any

from torch import nn

from idarts.arch import Architecture, Skeleton, parse, space_of
from idarts.errors import InputError


def network(
    architecture: "Architecture | str | PathLike[str]",
    skeleton: str | Skeleton | None = None,
    *,
    depth: int | None = None,
    channels: int | None = None,
    classes: int | None = None,
    in_channels: int = 3,
    auxiliary: bool = False,
    drop_path: float = 0.0,
) -> nn.Module:
    """The network of an architecture (in any form that `idarts.arch.parse` reads) in a skeleton.

    `skeleton` is a `Skeleton` or the name of a published one of the space, by default its first; depth, channels and
    classes change it. The auxiliary head and drop-path are only for spaces that have them.

    >>> net = network("DARTS_V2", depth=20, channels=36)
    >>> sum(weights.numel() for weights in net.parameters())
    3349342
    """
    record = parse(architecture)
    space = space_of(record)
    if not space.has("network"):
        space.network()  # raises the error that says which spaces have networks
    chosen = resolve(record, skeleton, depth=depth, channels=channels, classes=classes)
    if isinstance(in_channels, bool) or not isinstance(in_channels, int) or in_channels < 1:
        raise InputError(f"in_channels is {in_channels!r}, expected a whole number of at least 1")
    if not 0 <= drop_path < 1:
        raise InputError(f"drop_path is {drop_path!r}, expected a probability below 1")
    if auxiliary and not space.has_auxiliary:
        raise InputError(f"a network of {record.space} has no auxiliary head")
    if drop_path and not space.has_drop_path:
        raise InputError(f"a network of {record.space} has no drop-path")
    extras: dict[str, Any] = {"auxiliary": auxiliary} if space.has_auxiliary else {}
    extras |= {"drop_path": drop_path} if space.has_drop_path else {}
    net: nn.Module = space.network(record, chosen, in_channels=in_channels, **extras)
    return net


def resolve(architecture: Architecture, skeleton: str | Skeleton | None, **changes: int | None) -> Skeleton:
    """A skeleton, or the published one of that name for the architecture's space, with changes.

    If an architecture decides on its depth, the skeleton gets that depth.

    >>> resolve(parse("DARTS_V2"), "imagenet", classes=100).classes
    100
    """
    space = space_of(architecture)
    chosen = space.resolve(skeleton, **changes)
    return chosen if space.depth_of is None else chosen.changed(depth=space.depth_of(architecture))
