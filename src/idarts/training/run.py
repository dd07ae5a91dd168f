"""A training from settings to a run folder: what `idarts train` does, and `idarts.training.train` from Python."""

import platform
import warnings
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any, Unpack

import torch
from torch import nn

from idarts import engine
from idarts._version import __version__
from idarts.arch import Architecture, as_text, parse, space_of, to_data
from idarts.data import Augment, Batches, ImageData, load, split
from idarts.data.record import take
from idarts.engine import Job, Options, device_named, named
from idarts.engine.ranks import on_first, rank, share, world
from idarts.engine.settings import change
from idarts.errors import InputError, require_known
from idarts.spaces import Choice, ChoiceSupernet, Skeleton, count, derive, network
from idarts.spaces.networks import resolve
from idarts.training.loop import Round, Training, loss_and_accuracy
from idarts.training.presets import PRESETS
from idarts.training.settings import TrainConfig

AUGMENTED = 16  # pixels from which images are cropped and flipped unless told otherwise


@dataclass(frozen=True)
class TrainResult:
    """A trained network in evaluation mode, its accuracy on the test images, its rounds, and where all of it lies."""

    net: nn.Module
    accuracy: float | None
    rounds: list[dict[str, Any]]
    path: Path


@dataclass(frozen=True)
class _Subject:
    """What is trained: a network, what describes it, and the skeleton from which it can be built again."""

    net: nn.Module
    architecture: Architecture
    macro: Skeleton | None  # none for a module of one's own


def train(
    what: "Architecture | str | PathLike[str] | Mapping[str, Any] | nn.Module",
    data: Any,
    *,
    preset: str | None = None,
    out: "str | Path | None" = None,
    resume: bool = False,
    overwrite: bool = False,
    watch: Callable[[Round, Training], None] | None = None,
    **settings: Any,
) -> TrainResult:
    """Train an architecture (in any form that `idarts.arch.parse` reads) or a module from scratch, into a run folder.

    `data` is whatever `idarts.data.load` takes, or what it gave. A module with `Choice` in it is trained as α derives
    it; any other as it is, in place. All settings of `idarts train` are keywords: `epochs=5, weights={"rate": 0.1}`.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     out = Path(folder, "run")
    ...     result = train("nas-bench-201:0", "digits", out=out, depth=1, channels=4, epochs=1)
    ...     sorted(path.name for path in out.iterdir() if path.suffix == ".json")
    ['config.json', 'result.json']
    >>> result.accuracy > 0.1, len(result.rounds)
    (True, 3)
    """
    if preset is not None:
        require_known("preset", preset, PRESETS)
    config: TrainConfig = change(TrainConfig(), PRESETS.get(preset or "", {}))
    config = change(config, {**settings, "architecture": _words(what), "data": _source(data)})
    folder = Path(out) if out is not None else Path("runs", run_name(what, config))
    return conduct(what, data, config, folder, resume=resume, overwrite=overwrite, watch=watch)


def run(settings: TrainConfig, out: Path, **options: Unpack[Options]) -> TrainResult:
    """Train as the settings say, or go on with a training, in the folder `out`."""
    if not settings.architecture:
        raise InputError("no architecture to train; give a run folder, a published cell's name, a string or a file")
    if not settings.data:
        raise InputError("no data to train on; give --data, such as digits, cifar10 or folder:PATH")
    what = parse(settings.architecture)
    settings = replace(settings, architecture=as_text(what))  # a folder or file may be another one tomorrow
    return conduct(what, settings.data, settings, out, **options)


def conduct(
    what: Any,
    source: Any,
    settings: TrainConfig,
    out: Path,
    **options: Unpack[Options],
) -> TrainResult:
    """Give a training a folder; data are loaded and the network is made once the folder is its own."""
    done: list[tuple[nn.Module, float | None]] = []

    def job() -> Job:
        torch.manual_seed(settings.seed)
        data = source if isinstance(source, ImageData) else load(source, settings.data_root, image=settings.image)
        subject = _subject(what, data, settings)
        training, parts = _training(subject, data, settings)
        if rank():
            torch.manual_seed(settings.seed + rank())  # no two ranks drop the same paths

        def result(log: list[dict[str, Any]]) -> dict[str, Any]:
            found = _result(training, subject, settings, log, data.describe(**parts))
            _tested(found, training, data)
            on_first(lambda: _save_model(out / "model", training.result.eval(), subject, data, found))
            done.append((training.result, found["accuracy"]))
            return found

        return Job(training, asdict, result, kind="train")

    log = engine.conduct(job, settings, out, **options)
    return TrainResult(*done[0], log, out)


def run_name(what: Any, settings: TrainConfig) -> str:
    """A folder's name for a training.

    >>> run_name("DARTS_V2", TrainConfig(data="folder:pets/cats", seed=3))
    'train-DARTS_V2-pets-cats-3'
    """
    text = str(what) if isinstance(what, str | PathLike) else _words(what)
    name = Path(text).stem if len(text) < 80 and not text.startswith(("|", "{")) else parse(text).space
    return named("train", name, settings.data, settings.seed)


def _words(what: Any) -> str:
    return type(what).__name__ if isinstance(what, nn.Module) else as_text(parse(what))


def _source(data: Any) -> str:
    return data if isinstance(data, str) else data.source if isinstance(data, ImageData) else "python"


def _subject(what: Any, data: ImageData, settings: TrainConfig) -> _Subject:
    """The network, fitted to the data: classes, channels and image size."""
    channels, height, _ = data.train.shape
    if isinstance(what, nn.Module):
        subject = _own(what)
        _check_outputs(subject.net, data)
        _require_parts(subject.net, settings)
        return subject
    found = parse(what)
    sizes = {"depth": settings.depth, "channels": settings.channels}
    macro = resolve(found, settings.skeleton, classes=len(data.classes), image=height, **sizes)
    space = space_of(found)
    if (settings.auxiliary and not space.has_auxiliary) or (settings.drop_path and not space.has_drop_path):
        raise InputError(
            f"a network of {found.space} has no auxiliary head or no drop-path; give --auxiliary 0 --drop-path 0"
        )
    net = network(found, macro, in_channels=channels, auxiliary=settings.auxiliary > 0)
    _warn_of_cost(found, macro, channels, settings)
    return _Subject(net, found, macro)


def _own(module: nn.Module) -> _Subject:
    """A user's module; where it has Choices, the branches that α prefers."""
    if any(isinstance(part, Choice) for part in module.modules()):
        supernet = module if isinstance(module, ChoiceSupernet) else ChoiceSupernet(module)
        return _Subject(derive(supernet), supernet.architecture(), None)
    return _Subject(module, Architecture("choice", choices={"module": type(module).__name__}), None)


@torch.no_grad()
def _check_outputs(net: nn.Module, data: ImageData) -> None:
    """A user's module must take such images and tell such classes apart."""
    channels, height, width = data.train.shape
    try:
        shape = net.eval()(torch.zeros(2, channels, height, width)).shape
    except Exception as error:  # whatever a user's module raises
        first = next(iter(str(error).splitlines()), type(error).__name__)
        raise InputError(f"the module cannot take images of {channels}×{height}×{width} pixels: {first}") from error
    if tuple(shape) != (2, len(data.classes)):
        raise InputError(
            f"the module gives {tuple(shape)} for two images, expected (2, {len(data.classes)}): one output for each "
            f"of the classes of {data.source}"
        )


def _require_parts(net: nn.Module, settings: TrainConfig) -> None:
    for name in ("auxiliary", "drop_path"):
        if getattr(settings, name) and not hasattr(net, name):
            raise InputError(f"{name} is {getattr(settings, name)}, but the module has no {name}; leave it at 0")


def _warn_of_cost(found: Architecture, macro: Skeleton, channels: int, settings: TrainConfig) -> None:
    if settings.multiply_adds is None:
        return
    millions = count(found, macro, in_channels=channels).multiply_adds["conv+fc"] / 1e6
    if millions > settings.multiply_adds:
        warnings.warn(
            f"the network takes {millions:.0f} million multiply-adds (conv+fc) for an image, more than the "
            f"{settings.multiply_adds:g} million of this setting; give fewer channels",
            UserWarning,
            stacklevel=2,
        )


def _training(subject: _Subject, data: ImageData, settings: TrainConfig) -> tuple[Training, dict[str, Any]]:
    """The training, and the parts of the data that it made for itself."""
    part, held, made = data.train, data.valid or data.test, {}
    if settings.valid:
        part, held = split(data.train, 1 - settings.valid, seed=settings.seed)
        made = {"train": part, "valid": held}
    device = device_named(settings.device)
    augment, shared = _augment(data, settings), share(settings.batch)
    batches = Batches(part, settings.batch, seed=settings.seed, augment=augment, device=device, share=shared)
    look = None if held is None else _pass(held, settings, device)
    return Training(subject.net, batches, look, settings), made


def _pass(part: Any, settings: TrainConfig, device: torch.device) -> Batches:
    """One look at every image, of which each rank takes its share."""
    if 1 < world() <= len(part):
        part = take(part, torch.arange(rank(), len(part), world()), part.rule)
    return Batches(part, 2 * settings.batch, shuffle=False, drop_last=False, device=device)


def _augment(data: ImageData, settings: TrainConfig) -> Augment:
    side = min(data.train.shape[1:])
    large = side >= AUGMENTED
    if settings.cutout > side:
        raise InputError(f"cutout is {settings.cutout}, but images have {side} pixels; give a smaller square, or 0")
    crop = settings.crop if settings.crop is not None else 4 if large else 0
    if crop > side:
        raise InputError(f"crop is {crop}, but images have {side} pixels; give a smaller padding, or 0")
    return Augment(crop, large if settings.flip is None else settings.flip, settings.cutout)


def _result(
    training: Training, subject: _Subject, settings: TrainConfig, log: list[dict[str, Any]], data: dict[str, Any]
) -> dict[str, Any]:
    return {
        "architecture": to_data(subject.architecture),
        "macro": None if subject.macro is None else asdict(subject.macro),
        "parameters": sum(parameter.numel() for parameter in training.w),
        "accuracy": None,
        "metrics": log[-1] if log else {},
        "config": asdict(settings),
        "data": data,
        "device": str(training.train.device),
        "versions": {"idarts": __version__, "python": platform.python_version(), "torch": torch.__version__},
    }


def _tested(found: dict[str, Any], training: Training, data: ImageData) -> None:
    """Add what the test images say, which the last epoch may have looked at already."""
    if data.test is None:
        return
    metrics = found["metrics"]
    seen = not training.settings.valid and data.valid is None and "valid_accuracy" in metrics
    if seen:
        loss, accuracy = metrics["valid_loss"], metrics["valid_accuracy"]
    else:
        loss, accuracy = loss_and_accuracy(training.result, _pass(data.test, training.settings, training.train.device))
    found |= {"accuracy": accuracy, "test": {"accuracy": accuracy, "loss": loss, "images": len(data.test)}}


def _save_model(folder: Path, net: nn.Module, subject: _Subject, data: ImageData, found: dict[str, Any]) -> None:
    from idarts.training import card_for, save  # noqa: PLC0415 (brings what only a finished training needs)

    facts = {"data": data.source, "epochs": found["config"]["epochs"], "accuracy": found["accuracy"]}
    save(folder, net, card_for(data, subject.architecture, subject.macro, facts), overwrite=True)
