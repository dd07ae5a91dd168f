"""From settings to a training: the network that fits the data, its batches, and the checks before any step."""

import warnings
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn

from idarts.arch import Architecture, parse
from idarts.data import Augment, Batches, ImageData, Part, Split, content, split
from idarts.data.record import take
from idarts.engine.device import device_named
from idarts.engine.ranks import rank, share, world
from idarts.errors import InputError
from idarts.spaces import Choice, ChoiceSupernet, Skeleton, count, derive, network
from idarts.spaces.networks import resolve
from idarts.training.loop import Training
from idarts.training.settings import TrainConfig

AUGMENTED = 16  # pixels from which images are cropped and flipped by default


@dataclass(frozen=True)
class Subject:
    """What is trained: a network, its architecture, and the skeleton from which it can be built again."""

    net: nn.Module
    architecture: Architecture
    macro: Skeleton | None  # None for a user's own module


def subject(what: Any, data: ImageData, settings: TrainConfig) -> Subject:
    """The network of an architecture, or a user's module, checked against the data and the settings."""
    made = _own(what, data) if isinstance(what, nn.Module) else _from_space(parse(what), data, settings)
    for name in ("auxiliary", "drop_path"):
        if getattr(settings, name) and not hasattr(made.net, name):
            raise InputError(f"{name} is {getattr(settings, name)}, but the network has no {name}; set it to 0")
    return made


def _from_space(architecture: Architecture, data: ImageData, settings: TrainConfig) -> Subject:
    """The network of an architecture, with the classes, channels and image size of the data."""
    channels, height, _ = data.train.shape
    sizes = {"depth": settings.depth, "channels": settings.channels}
    macro = resolve(architecture, settings.skeleton, classes=len(data.classes), image=height, **sizes)
    net = network(architecture, macro, in_channels=channels, auxiliary=settings.auxiliary > 0)
    if settings.multiply_adds is not None:
        _warn_of_cost(architecture, macro, channels, settings.multiply_adds)
    return Subject(net, architecture, macro)


def _warn_of_cost(architecture: Architecture, macro: Skeleton, channels: int, most: float) -> None:
    millions = count(architecture, macro, in_channels=channels).multiply_adds["conv+fc"] / 1e6
    if millions > most:
        warnings.warn(
            f"the network needs {millions:.0f} million multiply-adds (conv+fc) for an image, more than the "
            f"{most:g} million of the setting multiply_adds; use fewer channels",
            UserWarning,
            stacklevel=2,
        )


def _own(module: nn.Module, data: ImageData) -> Subject:
    """A user's module; if it contains Choices, the branches that α prefers."""
    if any(isinstance(part, Choice) for part in module.modules()):
        supernet = module if isinstance(module, ChoiceSupernet) else ChoiceSupernet(module)
        made = Subject(derive(supernet), supernet.architecture(), None)
    else:
        made = Subject(module, Architecture("choice", choices={"module": type(module).__name__}), None)
    _check_outputs(made.net, data)
    return made


@torch.no_grad()
def _check_outputs(net: nn.Module, data: ImageData) -> None:
    """A user's module must accept the images and have one output for each class."""
    channels, height, width = data.train.shape
    try:
        shape = net.eval()(torch.zeros(2, channels, height, width)).shape
    except Exception as error:  # a user's module may raise anything
        first = next(iter(str(error).splitlines()), type(error).__name__)
        raise InputError(f"the module does not accept images of {channels}×{height}×{width} pixels: {first}") from error
    if tuple(shape) != (2, len(data.classes)):
        raise InputError(
            f"the module's output for two images has the shape {tuple(shape)}, expected (2, {len(data.classes)}): "
            f"one output for each class of {data.source}"
        )


def divided(
    data: ImageData, settings: TrainConfig, before: Split | None, recorded: Split | None
) -> tuple[ImageData, Split | None]:
    """The parts of a training, and their record. If it is resumed, they are those of its record, image by image."""
    given = data
    if settings.valid:
        train, valid = split(data.train, 1 - settings.valid, seed=settings.seed)
        data = replace(data, train=train, valid=valid)
    used = content.used(data.train, data.valid, before)
    if used is None:
        return data, None
    data, used = content.clean(data, used)
    if recorded is not None:
        return data if used.same_images(recorded) else content.restore(given, recorded), recorded
    if data.test is None and given.test is not None:
        warnings.warn(f"all test images of {data.source} are also training images; there is no test", stacklevel=2)
    return data, used


def training(net: nn.Module, data: ImageData, settings: TrainConfig) -> Training:
    """The training of a network on divided data."""
    held, device = data.valid or data.test, device_named(settings.device)
    augment, shared = _augment(data, settings), share(settings.batch)
    batches = Batches(data.train, settings.batch, seed=settings.seed, augment=augment, device=device, share=shared)
    return Training(net, batches, None if held is None else one_pass(held, settings, device), settings)


def one_pass(part: Part, settings: TrainConfig, device: torch.device) -> Batches:
    """Batches for one pass over all images; each rank takes its share."""
    if 1 < world() <= len(part):
        part = take(part, torch.arange(rank(), len(part), world()), part.rule)
    return Batches(part, 2 * settings.batch, shuffle=False, drop_last=False, device=device)


def _augment(data: ImageData, settings: TrainConfig) -> Augment:
    side = min(data.train.shape[1:])
    large = side >= AUGMENTED
    crop = settings.crop if settings.crop is not None else 4 if large else 0
    for name, pixels in (("cutout", settings.cutout), ("crop", crop)):
        if pixels > side:
            raise InputError(f"{name} is {pixels}, but images have {side} pixels; use a smaller value, or 0")
    return Augment(crop, large if settings.flip is None else settings.flip, settings.cutout)
