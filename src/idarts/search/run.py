"""A search from settings to a run folder: what `idarts search` does.

The folder holds `config.json`, `metrics.jsonl` (a line a round), TensorBoard's event files, `checkpoints/`, and at the
end `result.json`.
"""

import fcntl
import json
import platform
import signal
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import torch

from idarts._version import __version__
from idarts.arch import Architecture, to_data
from idarts.arch.files import write_whole
from idarts.data import CIFAR, NONE, Batches, load, split
from idarts.errors import IdartsError, InputError, NotFiniteError
from idarts.search import checkpoint
from idarts.search.config import Config
from idarts.search.events import watch_events
from idarts.search.logbook import Logbook
from idarts.search.loop import Round, Search
from idarts.spaces import ChoiceSupernet, space


@dataclass(frozen=True)
class RunConfig(Config):
    """All settings of a run: those of the search, and what it searches on and with."""

    space: str = "nas-bench-201"
    method: str = "idarts"
    data: str = "digits"
    data_root: str | None = None  # else IDARTS_DATA
    image: int | None = None  # side to which images are resized
    depth: int | None = None  # of the supernet, else the space's own
    channels: int | None = None
    valid: float = 0.5  # share of the training images that α sees
    augment: bool = True  # crop and flip, where images are large enough
    device: str = "auto"
    checkpoint_rounds: int = 100
    checkpoint_minutes: float = 5.0


@dataclass(frozen=True)
class SearchResult:
    """What a search found: the architecture, its rounds, and where all of it lies."""

    architecture: Architecture
    rounds: list[dict[str, Any]]
    path: Path


class Interrupted(KeyboardInterrupt):
    """The run was asked to stop, and wrote a checkpoint first."""


Watch = Callable[[Round, "Search"], None]
Prepare = Callable[[], tuple[Search, dict[str, Any]]]


def run(
    settings: RunConfig, out: Path, *, resume: bool = False, overwrite: bool = False, watch: Watch | None = None
) -> SearchResult:
    """Search as the settings say, or go on with a search, in the folder `out`; `watch` is told of every round.

    An existing run is never overwritten unasked. SIGINT and SIGTERM end the round, write a checkpoint, and raise
    `Interrupted`.
    """
    return conduct(lambda: _prepare(settings), settings, out, resume=resume, overwrite=overwrite, watch=watch)


def conduct(
    prepare: Prepare,
    settings: RunConfig,
    out: Path,
    *,
    resume: bool = False,
    overwrite: bool = False,
    watch: Watch | None = None,
) -> SearchResult:
    """Give a search a folder; it is prepared once the folder is its own."""
    with _claimed(out, resume, overwrite), _asked_to_stop() as asked:
        search, description = prepare()
        if resume:
            _go_on(search, out, settings)
        else:
            write_whole(out / "config.json", _json({**asdict(settings), "choices": _branches(search)}))
        logbook, saved = Logbook(search, _spent(out)), time.monotonic()
        with (out / "metrics.jsonl").open("a") as log, watch_events(out) as events, _pointing_back(out):
            for found in search.rounds():
                log.write(logbook.line(found))
                log.flush()
                events(found, search)
                if watch:
                    watch(found, search)
                late = time.monotonic() - saved >= 60 * settings.checkpoint_minutes
                due = late or asked or found.number % settings.checkpoint_rounds == 0
                if due and not search.bad_rounds:  # what is not finite must not take a good one's place
                    _save(search, out)
                    saved = time.monotonic()
                if asked:
                    raise Interrupted(found.number)
        return _finish(settings, search, out, description)


@contextmanager
def _pointing_back(out: Path) -> Iterator[None]:
    """A search that ends in numbers that are not finite says which of its states is good."""
    try:
        yield
    except NotFiniteError as error:
        good = checkpoint.latest(out / "checkpoints")
        where = f"the last good checkpoint is that of round {good[0]}" if good else "there is no checkpoint yet"
        raise NotFiniteError(f"{error}; {where}, in {out}") from error


def _save(search: Search, out: Path) -> None:
    try:
        checkpoint.save(out / "checkpoints", search.number, search.state_dict())
    except OSError as error:
        raise IdartsError(
            f"the checkpoint of round {search.number} could not be written to {out} ({error.strerror}); "
            "the one before it is whole: make room, then continue with --resume"
        ) from error


def _branches(search: Search) -> dict[str, list[str]]:
    """The names that α's columns have where they are a user's own."""
    return search.net.branches() if isinstance(search.net, ChoiceSupernet) else {}


def _prepare(settings: RunConfig) -> tuple[Search, dict[str, Any]]:
    """Data, supernet and search, all seeded."""
    torch.manual_seed(settings.seed)
    device = _device(settings.device)
    data = load(settings.data, settings.data_root, image=settings.image)
    train, valid = split(data.train, 1 - settings.valid, seed=settings.seed)
    channels, height, _ = data.train.shape
    found = space(settings.space)
    macro = found.macro.changed(
        depth=settings.depth, channels=settings.channels, classes=len(data.classes), image=height
    )
    net = found.supernet(macro, in_channels=channels).to(device)
    augment = CIFAR if settings.augment and height >= 16 else NONE
    inner, outer = (
        Batches(part, settings.batch, seed=2 * settings.seed + which, augment=augment, device=device)
        for which, part in enumerate((train, valid))
    )
    return Search(net, inner, outer, settings), data.describe(search=train, valid=valid)


def _device(name: str) -> torch.device:
    """The device that a name stands for; `auto` is the accelerator, where there is one."""
    found = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    if name == "auto":
        return found or torch.device("cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise InputError(f"device is {name!r}, expected auto, cpu, or one such as cuda or cuda:1") from None
    if device.type != "cpu" and (found is None or found.type != device.type):
        raise InputError(f"device is {name!r}, but this machine has {found or 'no accelerator'}; use auto or cpu")
    return device


def _finish(settings: RunConfig, search: Search, out: Path, description: dict[str, Any]) -> SearchResult:
    rounds = _log(out)
    architecture = search.net.architecture()
    result = {
        "space": settings.space,
        "method": settings.method,
        "seed": settings.seed,
        "architecture": to_data(architecture),
        "alpha": {name: alpha.tolist() for name, alpha in search.net.alpha.items()},
        "metrics": rounds[-1] if rounds else {},
        "gradient_evaluations": search.gradient_evaluations,
        "seconds": _spent(out),
        "config": asdict(settings),
        "data": description,
        "device": str(search.a[0].device),
        "versions": {"idarts": __version__, "python": platform.python_version(), "torch": torch.__version__},
    }
    write_whole(out / "result.json", _json(result))
    return SearchResult(architecture, rounds, out)


def _go_on(search: Search, out: Path, settings: RunConfig) -> None:
    """Load the last good checkpoint, and forget what the log says of later rounds."""
    before = _read_config(out)
    changed = sorted(
        name for name, value in asdict(settings).items() if json.loads(json.dumps(value)) != before.get(name)
    )
    if changed:
        raise InputError(f"{out} was searched with another {changed[0]}; resume with the settings of its config.json")
    found = checkpoint.latest(out / "checkpoints")
    number = 0
    if found is not None:
        number, state, problems = found
        search.load_state_dict(state)
        for problem in problems:
            warnings.warn(f"{problem}; going on from round {number}", UserWarning, stacklevel=2)
    kept = [json.dumps(line) + "\n" for line in _log(out) if line["number"] <= number]
    write_whole(out / "metrics.jsonl", "".join(kept).encode())


def _read_config(out: Path) -> dict[str, Any]:
    try:
        found = json.loads((out / "config.json").read_text())
    except (OSError, ValueError) as error:
        raise InputError(f"{out}/config.json cannot be read ({error}); begin anew with --overwrite") from error
    return found if isinstance(found, dict) else {}


def _log(out: Path) -> list[dict[str, Any]]:
    """The rounds on record; a last line that a kill cut short does not count."""
    path = out / "metrics.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    rounds = []
    for line in lines:
        try:
            rounds.append(json.loads(line))
        except json.JSONDecodeError:
            break
    return rounds


def _spent(out: Path) -> float:
    rounds = _log(out)
    return float(rounds[-1]["seconds"]) if rounds else 0.0


def _json(data: dict[str, Any]) -> bytes:
    return (json.dumps(data, indent=1) + "\n").encode()


@contextmanager
def _claimed(out: Path, resume: bool, overwrite: bool) -> Iterator[None]:
    """The folder, for this process alone."""
    there = (out / "config.json").exists()
    if resume and not there:
        raise InputError(f"{out} holds no run to resume; leave out --resume to begin one")
    if there and not resume and not overwrite:
        raise InputError(f"{out} holds a run already; continue it with --resume, or replace it with --overwrite")
    if out.exists() and not there and (not out.is_dir() or any(p.name != ".lock" for p in out.iterdir())):
        raise InputError(f"{out} is there and is no run; name a new folder with --out")
    try:
        out.mkdir(parents=True, exist_ok=True)
        lock = (out / ".lock").open("w")
    except OSError as error:
        raise InputError(f"the folder {out} cannot be written: {error.strerror}; name another one with --out") from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InputError(
                f"{out} is in use by another search; wait for it, or name another folder with --out"
            ) from None
        if overwrite:
            _clear(out)
        yield


def _clear(out: Path) -> None:
    for pattern in ("checkpoints/*.pt", "events.out.tfevents.*.idarts", "config.json", "metrics.jsonl", "result.json"):
        for path in out.glob(pattern):
            path.unlink(missing_ok=True)


@contextmanager
def _asked_to_stop() -> Iterator[list[int]]:
    """A list that is no longer empty once SIGINT or SIGTERM came."""
    asked: list[int] = []

    def note(number: int, _frame: FrameType | None) -> None:
        asked.append(number)

    try:
        before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    except ValueError:  # not in the main thread: whoever is there handles signals
        before = {}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
