"""A training from settings to a run folder: `idarts.train` from Python, and what `idarts train` calls."""

import platform
import warnings
from collections.abc import Callable, Generator, Mapping
from dataclasses import asdict, dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any, Unpack

import torch
from torch import nn

from idarts._version import __version__
from idarts.arch import Architecture, as_text, parse, to_data
from idarts.data import ImageData, Split, load, read_split, short_name
from idarts.data.digest import part_digest, tensors_digest
from idarts.engine.folder import MODEL, SPLIT, folder_name
from idarts.engine.intervals import wilson
from idarts.engine.paths import with_absolute_paths
from idarts.engine.ranks import on_first, rank, restarted
from idarts.engine.run import Job, OnMessage, Options, Work, run_to_end, start_job
from idarts.engine.settings import adopt_parts, resolve
from idarts.errors import InputError
from idarts.layers import unlean
from idarts.training.card import card_for
from idarts.training.evaluation import loss_and_accuracy
from idarts.training.loop import Round, Training
from idarts.training.model_folder import require_free, save
from idarts.training.prepare import Subject, divided, one_pass, subject, training
from idarts.training.presets import PRESETS
from idarts.training.settings import TrainConfig

OnTrainRound = Callable[[Round, Training], None]


@dataclass(frozen=True)
class TrainResult:
    """A trained network in evaluation mode, its accuracy on the test images, the log of its rounds, its folder."""

    net: nn.Module
    accuracy: float | None  # None without test images
    rounds: list[dict[str, Any]]
    path: Path


def train(
    what: "Architecture | str | PathLike[str] | Mapping[str, Any] | nn.Module",
    data: Any,
    *,
    preset: str | None = None,
    out: "str | PathLike[str] | None" = None,
    resume: bool = False,
    overwrite: bool = False,
    accept_changed_data: bool = False,
    on_round: OnTrainRound | None = None,
    on_message: OnMessage | None = None,
    watch: OnTrainRound | None = None,
    **settings: Any,
) -> TrainResult:
    """Train an architecture or a module from scratch, and write a run folder.

    Args:
        what: an architecture in any form that `idarts.arch.parse` reads, or a module. A module that contains `Choice`
            is trained as α derives it; any other module is trained in place.
        data: a data source for `idarts.data.load`, such as "digits", a pair of arrays or a DataLoader, or the data it
            returned.
        preset: named settings, which other settings change; see `idarts.training.PRESETS`.
        out: the run folder; by default one in `runs/`.
        resume: continue the run in the folder from its last checkpoint, bit for bit.
        overwrite: replace the run in the folder.
        accept_changed_data: resume although the data is not the same as when the run was started.
        on_round: called after every round, with its record and the training.
        on_message: receives status messages outside rounds.
        watch: the former name of `on_round`.
        **settings: all settings of `idarts train`, groups as dicts: `epochs=5, weights={"rate": 0.1}`; see
            `idarts.training.TrainConfig`. A part is a name or your own object: `log=MyLogger`.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     out = Path(folder, "run")
    ...     result = train("nas-bench-201:0", "digits", out=out, depth=1, channels=4, epochs=1)
    ...     sorted(path.name for path in out.iterdir() if path.suffix == ".json")
    ['config.json', 'made_with.json', 'result.json']
    >>> result.accuracy > 0.1, len(result.rounds)
    (True, 3)
    """
    if watch is not None:
        warnings.warn("train(watch=…) is deprecated; use on_round=", DeprecationWarning, stacklevel=2)
    named = {"preset": preset, "architecture": _text(what), "data": _source(data)}
    config = resolve(TrainConfig(), [{**adopt_parts(TrainConfig, settings), **named}], PRESETS)
    path = Path(out) if out is not None else Path("runs", run_name(what, config))
    options = Options(resume=resume, overwrite=overwrite, accept_changed_data=accept_changed_data)
    options |= Options(on_round=on_round or watch, on_message=on_message)
    return run_to_end(start(what, data, config, path, _searched(what), **options))


def run(settings: TrainConfig, out: Path, **options: Unpack[Options]) -> TrainResult:
    """Train as the settings say, or resume a training, in the folder `out`."""
    if not settings.architecture:
        raise InputError("no architecture to train; give a run folder, a published cell's name, a string or a file")
    if not settings.data:
        raise InputError("no data to train on; give --data, such as digits, cifar10 or folder:PATH")
    what, before = parse(settings.architecture), _searched(settings.architecture)
    settings = replace(settings, architecture=as_text(what))  # the content of a file or folder may change
    return run_to_end(start(what, settings.data, settings, out, before, **options))


def run_name(what: Any, settings: TrainConfig) -> str:
    """The default name of a training's folder.

    >>> run_name("DARTS_V2", TrainConfig(data="folder:pets/cats", seed=3))
    'train-DARTS_V2-pets-cats-3'
    """
    text = str(what) if isinstance(what, str | PathLike) else _text(what)
    name = Path(text).stem if len(text) < 80 and not text.startswith(("|", "{")) else parse(text).space
    return folder_name("train", name, settings.data, settings.seed)


def _text(what: Any) -> str:
    return type(what).__name__ if isinstance(what, nn.Module) else as_text(parse(what))


def _source(data: Any) -> str:
    return data if isinstance(data, str) else data.source if isinstance(data, ImageData) else "python"


def _searched(what: Any) -> Split | None:
    """The images of the search that an architecture comes from, if it is given as a run folder."""
    return read_split(Path(what) / SPLIT) if isinstance(what, str | PathLike) else None


def start(
    what: Any, source: Any, settings: TrainConfig, path: Path, before: Split | None = None, **options: Unpack[Options]
) -> Generator[Work, None, TrainResult]:
    """A training as a job that can take turns with others: see `idarts.engine.run.start_job`.

    Data are loaded and the network is built when the folder is locked. `before` are the images of a search before it.
    """
    settings, _ = with_absolute_paths(settings, path, options.get("resume", False))
    done: list[tuple[nn.Module, float | None]] = []

    def prepare() -> Job:
        require_free(path / MODEL)  # before the work, not after it
        torch.manual_seed(settings.seed)
        named = settings.data if isinstance(source, str) else source
        given = named if isinstance(named, ImageData) else load(named, settings.data_root, image=settings.image)
        recorded = read_split(path / SPLIT) if options.get("resume") or restarted() else None
        data, split = divided(given, settings, recorded or before, recorded)
        trained = subject(what, data, settings)
        work = training(trained.net, data, settings)
        if rank():
            torch.manual_seed(settings.seed + rank())  # so that each rank drops other paths

        def result(log: list[dict[str, Any]]) -> dict[str, Any]:
            facts = _result(work, trained, log, data.describe()) | _test(work, data, log)
            for net in (work.net, work.result):
                unlean(net)  # callers get torch's own layers, as from `idarts.load`
            on_first(lambda: _save_model(path / MODEL, work.result.eval(), trained, data, facts, split))
            done.append((work.result, facts["accuracy"]))
            return facts

        files = {} if split is None else {SPLIT: split.to_bytes()}
        parts = [part for part in (data.train, data.valid, data.test) if part is not None]  # whole, on every rank
        digest = tensors_digest([], [part_digest(part) for part in parts])
        return Job(work, asdict, result, kind="train", data=digest, files=files)

    log = yield from start_job(prepare, settings, path, **options)
    return TrainResult(*done[0], log, path)


def _result(work: Training, trained: Subject, log: list[dict[str, Any]], data: dict[str, Any]) -> dict[str, Any]:
    return {
        "architecture": to_data(trained.architecture),
        "macro": None if trained.macro is None else asdict(trained.macro),
        "parameters": sum(parameter.numel() for parameter in work.w),
        "accuracy": None,
        "metrics": log[-1] if log else {},
        "config": asdict(work.settings),
        "data": data,
        "device": str(work.train.device),
        "versions": {"idarts": __version__, "python": platform.python_version(), "torch": torch.__version__},
    }


def _test(work: Training, data: ImageData, log: list[dict[str, Any]]) -> dict[str, Any]:
    """Loss and accuracy on the test images, which the last epoch may have measured already."""
    if data.test is None:
        return {}
    last = log[-1] if log else {}
    if not work.settings.valid and data.valid is None and last.get("valid_accuracy") is not None:
        loss, accuracy = last["valid_loss"], last["valid_accuracy"]
    else:
        loss, accuracy = loss_and_accuracy(work.result, one_pass(data.test, work.settings, work.train.device))
    count = len(data.test)
    test = {"accuracy": accuracy, "interval": wilson(round(accuracy * count), count), "loss": loss, "images": count}
    return {"accuracy": accuracy, "test": test}


def _save_model(
    folder: Path, net: nn.Module, trained: Subject, data: ImageData, facts: dict[str, Any], split: Split | None
) -> None:
    about = {
        "data": short_name(data.source),
        "images": len(data.train),
        "epochs": facts["config"]["epochs"],
        "accuracy": facts["accuracy"],
        "test": facts.get("test"),
        "parameters": facts["parameters"],
    }
    save(folder, net, card_for(data, trained.architecture, trained.macro, about), split=split, overwrite=True)
