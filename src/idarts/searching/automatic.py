"""The meaning of `auto`: α's rate from the number of rounds, the size of the supernet from the machine.

**α's rate.** Adam moves each entry of α by about `rate` in a round, for a gradient of any size: after all rounds an
entry whose gradient keeps its sign has moved by rate · rounds. A softmax decides when its logits differ by a few units,
so rate = RANGE / rounds. A fixed rate cannot do this: 3e-4, made for 3,900 rounds, moves α by 0.03 in 100 rounds.

**The supernet.** On a GPU it is the space's own. On a CPU it is the smallest one that trains all of α, with few
channels and small images: many cheap rounds say more than few expensive ones.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch
from torch.nn.functional import cross_entropy

from idarts.data import ImageData, Part, load
from idarts.data.arrays import resize
from idarts.data.record import Images
from idarts.engine.device import device_named
from idarts.searching.reach import unreached
from idarts.searching.settings import RunConfig, Size
from idarts.spaces import Space, Supernet

RANGE = 3.0  # by which a logit of α moves over the search if its gradient keeps its sign: e³ = 20 to 1
SMALLEST_RATE, LARGEST_RATE = 3e-4, 0.1  # the papers' rate for thousands of rounds; one step is no leap
SIDE, CHANNELS = 16, 8  # on a CPU, at most
_IMAGES = 4  # that a trial of a depth looks at


def alpha_rate(rounds: float) -> float:
    """α's rate for a number of rounds.

    >>> alpha_rate(100), alpha_rate(3), alpha_rate(1_000_000)
    (0.03, 0.1, 0.0003)
    """
    return min(max(RANGE / rounds, SMALLEST_RATE), LARGEST_RATE)


def load_data(settings: RunConfig) -> ImageData:
    """The data that the settings name, at the size that they name."""
    source, root, image = settings.data, settings.data_root, settings.image
    if image != "auto":
        return load(source, root, image=None if image == "own" else image)
    data = load(source, root)
    if not _small(settings) or max(data.train.shape[1:]) <= SIDE:
        return data
    parts = {name: getattr(data, name) for name in ("train", "valid", "test")}
    if not all(part is None or isinstance(part, Images) for part in parts.values()):
        return load(source, root, image=SIDE)  # images that are read during use are resized there
    return replace(data, **{name: _resized(part) for name, part in parts.items()})


def sizes(settings: RunConfig, chosen: Space, train: Part, recorded: Mapping[str, Any]) -> dict[str, int]:
    """Depth and channels of the supernet; what a run has recorded holds, also on another machine."""
    own, channels = chosen.skeleton, recorded.get("channels")
    if channels is None:
        channels = _given(settings.channels, own.channels)
    if channels is None:
        channels = min(own.channels, CHANNELS) if _small(settings) else own.channels
    depth = recorded.get("depth")
    if depth is None:
        depth = _given(settings.depth, own.depth)
    if depth is None:
        depth = _smallest_depth(chosen, train) if _small(settings) else own.depth
    return {"depth": depth, "channels": channels}


def _given(size: Size, own: int) -> int | None:
    """A size that the settings name; None for `auto`."""
    return None if size == "auto" else own if size in (None, "own") else int(size)


def _small(settings: RunConfig) -> bool:
    return device_named(settings.device).type == "cpu"


def _resized(part: Any) -> Any:
    return part and replace(part, images=resize(part.images, SIDE))


def _smallest_depth(chosen: Space, train: Part) -> int:
    """The smallest depth at which a gradient reaches every decision, by trying each on images of noise."""
    channels, side, _ = train.shape
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(0)
        inputs, labels = torch.randn(_IMAGES, channels, min(side, SIDE), min(side, SIDE)), torch.arange(_IMAGES) % 2
        for depth in range(1, chosen.skeleton.depth):
            skeleton = chosen.skeleton.changed(depth=depth, channels=CHANNELS, classes=2, image=inputs.shape[2])
            net: Supernet = chosen.supernet(skeleton, in_channels=channels)
            if not unreached(net.train(), (inputs, labels), cross_entropy):
                return depth
    return int(chosen.skeleton.depth)
