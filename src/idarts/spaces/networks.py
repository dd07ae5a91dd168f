"""A network from an architecture, to be trained from scratch."""

from os import PathLike

from torch import nn

from idarts.arch import Architecture, parse
from idarts.errors import InputError
from idarts.spaces.darts_network import DartsNetwork
from idarts.spaces.macro import Macro, macro
from idarts.spaces.nas_bench_101_network import NasBench101Network
from idarts.spaces.nas_bench_201_network import NasBench201Network


def network(
    architecture: "Architecture | str | PathLike[str]",
    skeleton: str | Macro | None = None,
    *,
    depth: int | None = None,
    channels: int | None = None,
    classes: int | None = None,
    in_channels: int = 3,
    auxiliary: bool = False,
    drop_path: float = 0.0,
) -> nn.Module:
    """The network of an architecture (in any form that `idarts.arch.parse` reads) around a published skeleton.

    `skeleton` names one of `MACROS` (the space's first if not given) or is a `Macro`; depth, channels and classes
    change it. The auxiliary head and drop-path exist in DARTS' network only.

    >>> net = network("DARTS_V2", depth=20, channels=36)
    >>> sum(weights.numel() for weights in net.parameters())
    3349342
    """
    found = parse(architecture)
    chosen = resolve(found, skeleton, depth=depth, channels=channels, classes=classes)
    if isinstance(in_channels, bool) or not isinstance(in_channels, int) or in_channels < 1:
        raise InputError(f"in_channels is {in_channels!r}, expected a whole number of at least 1")
    if not 0 <= drop_path < 1:
        raise InputError(f"drop_path is {drop_path!r}, expected a probability below 1")
    if found.space == "darts":
        return DartsNetwork(found, chosen, auxiliary, drop_path, in_channels)
    if auxiliary or drop_path:
        raise InputError(f"a network of {found.space} has no {'auxiliary head' if auxiliary else 'drop-path'}")
    if found.space == "nas-bench-201":
        return NasBench201Network(found, chosen, in_channels)
    return NasBench101Network(found, chosen, in_channels)


def resolve(architecture: Architecture, skeleton: str | Macro | None, **changes: int | None) -> Macro:
    """The macro that a name, a macro or nothing stands for, with changes.

    >>> resolve(parse("DARTS_V2"), "imagenet", classes=100).classes
    100
    """
    if isinstance(skeleton, Macro):
        macro(architecture.space)  # complains about a space without networks
        return skeleton.changed(**changes)
    return macro(architecture.space, skeleton, **changes)
