"""From settings and data to a `Task`: where every search is prepared, from the command line and from Python."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from idarts.arch import Architecture
from idarts.data import CIFAR, NONE, Batches, ImageData, Part, load, official_split, split
from idarts.data.record import Images, LazyImages
from idarts.engine.device import device_named
from idarts.engine.ranks import share
from idarts.errors import InputError
from idarts.searching import automatic
from idarts.searching.settings import RunConfig
from idarts.searching.stage import Stage
from idarts.searching.streams import Piece, Stream, TensorBatches, is_stream, pair
from idarts.searching.task import Loss, Task
from idarts.spaces import ChoiceSupernet, Skeleton, Space, Supernet, network, space
from idarts.spaces.supernet import channels_last
from idarts.tables import Table

AUGMENTED = 16  # pixels from which named data is cropped and flipped


@dataclass(frozen=True)
class Parts:
    """The two parts of the data: w sees the first, α the second; and what is written down of them."""

    train: Any
    valid: Any
    classes: int | None
    description: dict[str, Any]
    augment: bool


def prepare(
    what: "str | Space | nn.Module",
    parts: Parts,
    settings: RunConfig,
    loss: Loss = cross_entropy,
    table: Table | None = None,
    recorded: Mapping[str, Any] | None = None,
) -> Task:
    """The task of searching a space, or a model with Choices, on two parts of data.

    `recorded` has the sizes that a run in progress was started with, where the settings leave them open.
    """
    if isinstance(what, nn.Module):
        supernet: Any = what if isinstance(what, Supernet) else ChoiceSupernet(what)
        device = supernet.architecture_parameters()[0].device
        build, labels = None, supernet.branches() if isinstance(supernet, ChoiceSupernet) else {}
        population: dict[str, Any] = {}
        sizes: dict[str, int] = {}
    else:
        chosen = space(what) if isinstance(what, str) else what
        device = device_named(settings.device)
        sizes = automatic.sizes(settings, chosen, parts.train, recorded or {})
        supernet, build = _builders(chosen, parts, settings, device, sizes)
        labels, population = {}, {part: getattr(chosen, part) for part in ("sample", "mutate", "growth")}
    train, valid = (
        _stream(part, settings, which, device, parts.augment) for which, part in enumerate((parts.train, parts.valid))
    )
    return Task(supernet, train, valid, settings, loss, build, table, labels=labels, sizes=sizes, **population)


def named_parts(settings: RunConfig) -> Parts:
    """The parts of data that the settings name."""
    data = automatic.load_data(settings)
    train, valid = _halves(data, settings)
    augment = settings.augment and data.train.shape[1] >= AUGMENTED
    return Parts(train, valid, len(data.classes), data.describe(search=train, valid=valid), augment)


def _halves(data: ImageData, settings: RunConfig) -> tuple[Part, Part]:
    if settings.valid == "official":
        return official_split(data.train, settings.data, settings.data_root)
    if settings.valid is None and data.valid is not None:
        return data.train, data.valid
    return split(data.train, 1 - (settings.valid or 0.5), seed=settings.seed)


def given_parts(what: "str | Space | nn.Module", train: Any, valid: Any, settings: RunConfig) -> Parts:
    """The parts of data that a caller from Python gave: two, or one to be split."""
    if settings.valid == "official":
        raise InputError("valid='official' needs data by name (idarts search); give a share such as 0.5, or data")
    first, second = _two(train, valid, isinstance(what, nn.Module), settings)
    classes = None
    if not isinstance(what, nn.Module):
        name = what if isinstance(what, str) else what.name
        if not (_is_part(first) and _is_part(second)):
            raise InputError(f"the space {name!r} needs images; give (x, y), a part of idarts.data, or a Dataset")
        classes = max(int(part.labels.max()) for part in (first, second)) + 1
    return Parts(first, second, classes, {}, settings.augment)


def _two(train: Any, valid: Any, any_data: bool, settings: RunConfig) -> tuple[Any, Any]:
    """Both parts in one form: images for a space, else what was given."""
    given = [train] if valid is None else [train, valid]
    ready = [_is_part(part) or is_stream(part) for part in given]
    if len(given) == 2 and not any_data and not any(ready):
        data = load((train, valid), hold_out=0)  # one scale and one mean for both
        return data.train, data.test
    read = pair if any_data else lambda part: load(part, hold_out=0).train
    given = [part if fits else read(part) for part, fits in zip(given, ready, strict=True)]
    if len(given) == 2:
        return given[0], given[1]
    kept = 1 - (0.5 if settings.valid is None else float(settings.valid))
    if _is_part(given[0]):
        return split(given[0], kept, seed=settings.seed)
    if is_stream(given[0]):
        raise InputError("a stream cannot be split; give a second one for α as `valid`")
    x, y = given[0]
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(settings.seed))
    inner, outer = order.tensor_split([round(len(x) * kept)])
    return (x[inner], y[inner]), (x[outer], y[outer])


def _builders(
    chosen: Space, parts: Parts, settings: RunConfig, device: torch.device, sizes: Mapping[str, int]
) -> tuple[Callable[[Stage], Supernet], Callable[[Architecture], nn.Module]]:
    """How supernets of a space are built for a stage, and networks, as wide as these and as deep as the space's own."""
    channels, height, _ = parts.train.shape
    skeleton: Skeleton = chosen.skeleton.changed(**sizes, classes=parts.classes, image=height)

    def supernet(stage: Stage) -> Supernet:
        depth = round(stage.deepen * skeleton.depth) if stage.depth is None else stage.depth
        size = skeleton.changed(depth=depth, channels=stage.channels)
        relaxation = settings.build_relaxation(stage.relaxation)
        net: Supernet = chosen.supernet(size, in_channels=channels, relaxation=relaxation).to(device)
        return net

    def build(architecture: Architecture) -> nn.Module:
        net = network(architecture, skeleton.changed(depth=chosen.skeleton.depth), in_channels=channels).to(device)
        channels_last(net)
        return net

    return supernet, build


def _stream(part: Any, settings: RunConfig, which: int, device: torch.device, augment: bool) -> Stream:
    seed, shared = 2 * settings.seed + which, share(settings.batch)
    if _is_part(part):
        augmentation = CIFAR if augment else NONE
        return Batches(part, settings.batch, seed=seed, augment=augmentation, device=device, share=shared)
    if augment:
        raise InputError("augment crops and flips images of idarts.data; for your own batches, remove it")
    stream: Stream = part if is_stream(part) else TensorBatches(part[0], part[1], settings.batch, seed)
    return stream if shared[1] == 1 else Piece(stream, shared)


def _is_part(data: Any) -> bool:
    return isinstance(data, Images | LazyImages)
