"""A search from settings to a run folder: what `idarts search` does."""

import platform
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Unpack

import torch
from pydantic import Field
from torch import nn

from idarts import engine
from idarts._version import __version__
from idarts.arch import Architecture, as_text, to_data
from idarts.data import CIFAR, NONE, Batches, ImageData, Part, load, official_split, split
from idarts.engine import Job, Options, device_named
from idarts.engine.ranks import share
from idarts.engine.settings import Count, NonNegative, validated
from idarts.searching.logbook import Logbook
from idarts.searching.loop import Search
from idarts.searching.relaxations import RELAXATIONS
from idarts.searching.selecting import require_selectable
from idarts.searching.settings import Config
from idarts.searching.trials import Build
from idarts.spaces import ChoiceSupernet, Skeleton, network, space
from idarts.spaces.supernet import channels_last
from idarts.tables import find


@validated
class RunConfig(Config):
    """All settings of a run: those of the search, and what it searches on and with."""

    space: str = "nas-bench-201"
    """search space: nas-bench-201, nas-bench-1shot1-s1, -s2 or -s3, or darts"""
    method: str = "idarts"
    """named settings, which other options change: idarts, darts, darts-first-order, gdas, setn, random-nas, enas"""
    data: str = "digits"
    """data to search on: digits, cifar10, cifar100, fashion-mnist, folder:PATH or npz:FILE"""
    data_root: str | None = None
    """folder of the data's files, else IDARTS_DATA"""
    image: Count | None = None
    """side to which images are resized"""
    depth: Count | None = None
    """depth of the supernet, else the space's own"""
    channels: Count | None = None
    """channels of the supernet's first cells, else the space's own"""
    valid: Annotated[float, Field(gt=0, lt=1)] | Literal["official"] | None = None
    """share of the training images that α sees, or `official` for NAS-Bench-201's own halves; unless given, the data's
    own validation images or, where there are none, one half"""
    augment: bool = True
    """crop and flip, where images are large enough"""
    device: str = "auto"
    """device, such as cpu or cuda:1"""
    tables: str | None = None
    """folder of benchmark tables, else IDARTS_TABLES: what is found is looked up, and shown"""
    checkpoint_rounds: Count = 100
    """rounds between two checkpoints, at most"""
    checkpoint_minutes: NonNegative = 5.0
    """minutes between two checkpoints, at most"""


@dataclass(frozen=True)
class SearchResult:
    """What a search found: the architecture, its rounds, and where all of it lies."""

    architecture: Architecture
    rounds: list[dict[str, Any]]
    path: Path


def run(settings: RunConfig, out: Path, **options: Unpack[Options]) -> SearchResult:
    """Search as the settings say, or go on with a search, in the folder `out`.

    SIGINT and SIGTERM end the round, write a checkpoint, and raise `Interrupted`.
    """
    return conduct(lambda: _prepare(settings), settings, out, **options)


def conduct(
    prepare: Callable[[], tuple[Search, dict[str, Any]]],
    settings: RunConfig,
    out: Path,
    **options: Unpack[Options],
) -> SearchResult:
    """Give a search a folder; it is prepared once the folder is its own."""
    found: list[Architecture] = []
    truth = find(settings.space, settings.tables)

    def job() -> Job:
        search, description = prepare()
        require_selectable(search)
        search.truth = truth

        def result(log: list[dict[str, Any]]) -> dict[str, Any]:
            found.append(search.select())
            return _result(settings, search, found[0], log, description)

        return Job(search, Logbook(search).entry, result, facts={"choices": _branches(search)})

    log = engine.conduct(job, settings, out, **options)
    return SearchResult(found[0], log, out)


def _branches(search: Search) -> dict[str, list[str]]:
    """The names that α's columns have where they are a user's own."""
    return search.net.branches() if isinstance(search.net, ChoiceSupernet) else {}


def _prepare(settings: RunConfig) -> tuple[Search, dict[str, Any]]:
    """Data, supernet and search, all seeded."""
    torch.manual_seed(settings.seed)
    device = device_named(settings.device)
    data = load(settings.data, settings.data_root, image=settings.image)
    train, valid = _parts(data, settings)
    channels, height, _ = data.train.shape
    found = space(settings.space)
    macro = found.skeleton.changed(
        depth=settings.depth, channels=settings.channels, classes=len(data.classes), image=height
    )
    relaxation = RELAXATIONS[settings.relaxation](0.0)  # partial channels are built in
    net = found.supernet(macro, in_channels=channels, relaxation=relaxation).to(device)
    augment = CIFAR if settings.augment and height >= 16 else NONE
    shared = share(settings.batch)
    inner, outer = (
        Batches(part, settings.batch, seed=2 * settings.seed + which, augment=augment, device=device, share=shared)
        for which, part in enumerate((train, valid))
    )
    search = Search(net, inner, outer, settings)
    search.build = builder(macro, found.skeleton.depth, channels, device)
    return search, data.describe(search=train, valid=valid)


def _parts(data: ImageData, settings: RunConfig) -> tuple[Part, Part]:
    """The images that w sees, and those that α sees."""
    if settings.valid == "official":
        return official_split(data.train, settings.data, settings.data_root)
    if settings.valid is None and data.valid is not None:
        return data.train, data.valid
    return split(data.train, 1 - (settings.valid or 0.5), seed=settings.seed)


def builder(macro: Skeleton, depth: int, in_channels: int, device: torch.device) -> Build:
    """Networks as the supernet is, but as deep as the space's own, from architectures."""

    def build(architecture: Architecture) -> nn.Module:
        net = network(architecture, macro.changed(depth=depth), in_channels=in_channels).to(device)
        channels_last(net)
        return net

    return build


def _result(
    settings: RunConfig,
    search: Search,
    architecture: Architecture,
    log: list[dict[str, Any]],
    description: dict[str, Any],
) -> dict[str, Any]:
    return {
        "space": settings.space,
        "method": settings.method,
        "seed": settings.seed,
        "architecture": to_data(architecture),
        "argmax": as_text(search.current()),  # what α alone would say
        "trials": [tried._asdict() | {"architecture": as_text(tried.architecture)} for tried in search.tried],
        "alpha": {name: alpha.tolist() for name, alpha in search.net.alpha.items()},
        "table": search.truth.query(architecture) if search.truth else None,
        "cost": search.budget.outcome(architecture, search.current()) if search.budget else None,
        "metrics": log[-1] if log else {},
        "gradient_evaluations": search.gradient_evaluations,
        "config": asdict(settings),
        "data": description,
        "device": str(search.a[0].device),
        "versions": {"idarts": __version__, "python": platform.python_version(), "torch": torch.__version__},
    }
