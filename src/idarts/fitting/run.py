"""`idarts.fit`: look, plan, search, train, compare, export, in one time and one folder."""

import json
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from importlib.util import find_spec
from os import PathLike
from pathlib import Path
from typing import Any

import torch

from idarts.arch import Architecture, Skeleton, as_text
from idarts.data import ImageData, absolute, load
from idarts.engine import folder
from idarts.engine.loggers import make_logger
from idarts.engine.settings import adopt_parts
from idarts.errors import InputError
from idarts.files import write_whole
from idarts.fitting import record
from idarts.fitting.finals import Clock, train_together
from idarts.fitting.look import Look, digest_of, named, without_test_images
from idarts.fitting.outcome import compared, to_data
from idarts.fitting.page import write_page
from idarts.fitting.plan import SPACE, Plan
from idarts.fitting.planning import checked_cost, planned, require_fixed
from idarts.fitting.record import FIXED, FOUND, RANDOM, SEARCH, FitResult
from idarts.fitting.searching import search
from idarts.fitting.sizes import MEASURES, equal_sizes, parameters, random_architectures, resized
from idarts.fitting.threads import Threads
from idarts.spaces import space
from idarts.training import TrainConfig, TrainResult, Weights, export
from idarts.training import load as load_model
from idarts.training.model_folder import require_free
from idarts.training.run import start as start_training

OnStatus = Callable[["Status"], None]


@dataclass(frozen=True)
class Status:
    """Where a fit stands: the part, the seconds left of the whole, and a few words."""

    part: str
    left: float
    text: str


def fit(
    data: Any,
    *,
    minutes: float = 20.0,
    out: "str | PathLike[str] | None" = None,
    space: str = SPACE,
    seed: int = 0,
    image: int | None = None,
    random: int | None = None,
    flip: bool | None = None,
    data_root: str | None = None,
    cost: Mapping[str, Any] | None = None,
    log: Any = "none",
    resume: bool = False,
    overwrite: bool = False,
    on_plan: Callable[[Look, Plan], None] | None = None,
    on_status: OnStatus | None = None,
) -> FitResult:
    """From images to a network: search for one, compare it with a fixed one and random ones, export the best.

    Args:
        data: a folder of images, or any other source for `idarts.data.load`.
        minutes: the time for everything. What does not fit is shortened, in the order that docs/fit.md states.
        out: the folder to write; by default one in `runs/`.
        space: the search space; it needs a `fixed` architecture to compare with.
        seed: the seed of all random numbers.
        image: the side to which images are resized; chosen from the data and the time unless given.
        random: how many random networks to train; chosen from the time unless given.
        flip: whether to mirror images at random; unless given, colour images are mirrored.
        data_root: the folder of a named source's files.
        cost: what the network of the search should cost, such as `{"kind": "latency", "target": 5}` (milliseconds for
            an image on this machine); also `parameters` and `multiply_adds`. It decides on the width of the networks.
        log: where the search and the trainings log besides their folders, such as "wandb"; or your own logger.
        resume: continue the fit in the folder, with the minutes that are left.
        overwrite: replace the fit in the folder.
        on_plan: receives the look at the data and the plan, before the search.
        on_status: receives the state of the fit, often.

    >>> fit("digits", space="darts")
    Traceback (most recent call last):
    idarts.errors.InputError: a fit cannot use the space darts, because it has no fixed architecture to compare ...
    """
    started = time.monotonic()
    source = named(data)
    name = source if isinstance(source, str) else "python"
    path = Path(out) if out is not None else Path("runs", folder.folder_name("fit", name, seed))
    settings: dict[str, Any] = {
        "space": space,
        "seed": seed,
        "minutes": minutes,
        "image": image,
        "random": random,
        "flip": flip,
    }
    settings |= {"data": _name(source), "data_root": data_root, "cost": checked_cost(cost)}
    settings |= adopt_parts(TrainConfig, {"log": log})
    require_fixed(space)
    make_logger(settings["log"])  # if its package is missing, nothing is written
    require_free(path / folder.MODEL)  # else hours of work would end in this error
    with record.claim(path, resume, overwrite), _threads_restored():
        work = Fit(path, source, settings, started, on_status or (lambda _: None))
        work.on_status(Status("prepare", 60 * minutes, "look at the data, measure this machine"))
        work.prepare(resume, on_plan)
        return work.run()


class Fit:
    """A fit in progress."""

    def __init__(self, path: Path, source: Any, settings: dict[str, Any], started: float, on_status: OnStatus) -> None:
        self.path, self.source, self.settings, self.on_status = path, source, settings, on_status
        self.started = started  # of this process; `used` seconds were spent by earlier ones
        self.used = 0.0
        self.most_threads = torch.get_num_threads()

    def prepare(self, resume: bool, on_plan: Callable[[Look, Plan], None] | None) -> None:
        """Look and plan, or read both from the folder; then load the data."""
        if resume:
            self.record = record.read(self.path)
            self._require_same_settings()
            self.look, self.plan = Look(**_tuples(self.record["look"])), Plan(**_tuples(self.record["plan"]))
            self.used = self.record["prepared"] + sum(self._seconds().values())
            data = None
        else:
            self.look, data, self.plan = planned(self.source, self.settings, self.started)
        torch.set_num_threads(self.plan.threads)
        if on_plan:
            on_plan(self.look, self.plan)
        self.data = self._load(data)
        digest = digest_of(self.data)
        if not resume:
            prepared = self.elapsed()
            self.record = {"settings": self.settings, "look": asdict(self.look), "plan": asdict(self.plan)}
            self.record |= {"prepared": round(prepared, 2), "data": digest, "trained": False}
            record.write(self.path, self.record)
        elif digest != self.record["data"]:
            raise InputError(
                f"the images of {self.look.source} have changed since the fit started; start again with --overwrite "
                "(overwrite=True in Python)"
            )

    def run(self) -> FitResult:
        """All parts that remain, then the result."""
        found = self._search()
        skeletons = self._finalists(found)
        trained = self._train(skeletons)
        return self._finish(found, trained)

    def elapsed(self) -> float:
        """Seconds of the whole so far."""
        return self.used + time.monotonic() - self.started

    def _status(self, part: str, left: float, text: str) -> None:
        """Later parts take the time that earlier ones leave, so no estimate goes beyond the minutes."""
        self.on_status(Status(part, max(0.0, min(left, 60 * self.plan.minutes - self.elapsed())), text))

    def _search(self) -> Architecture:
        seconds = self.plan.seconds
        end = self.record["prepared"] + seconds["search"] + seconds["selection"]
        later = seconds["training"] + seconds["end"]

        def on_status(text: str) -> None:
            self._status("search", max(0.0, end - self.elapsed()) + later, text)

        return search(self.path / SEARCH, self.data, self.plan, self.settings, self._resize, on_status)

    def _resize(self, candidate: Architecture) -> Skeleton:
        """A candidate of the selection is as large as the fixed network in the plan's skeleton."""
        skeleton, channels = self._skeleton(), self.look.channels
        return resized(candidate, skeleton, parameters(space(self.plan.space).fixed(), skeleton, channels), channels)

    def _skeleton(self) -> Skeleton:
        return self.plan.skeleton(self.look.classes)

    def _finalists(self, found: Architecture) -> dict[str, tuple[Architecture, Skeleton]]:
        """What is trained, by name: architectures and the skeletons in which they are equally large."""
        skeleton, channels, fixed = self._skeleton(), self.look.channels, space(self.plan.space).fixed()
        cost = self.settings["cost"] or {"kind": "parameters", "target": parameters(fixed, skeleton, channels)}
        ours, theirs = equal_sizes(found, fixed, skeleton, cost["target"], channels, MEASURES[cost["kind"]])
        finalists = {FOUND: (found, ours), FIXED: (fixed, theirs)}
        size = parameters(found, ours, channels)
        drawn = random_architectures(self.plan.space, self.plan.random, self.settings["seed"])
        for number, one in enumerate(drawn, start=1):
            finalists[f"{RANDOM}{number}"] = (one, resized(one, skeleton, size, channels))
        return finalists

    def _train(self, finalists: dict[str, tuple[Architecture, Skeleton]]) -> dict[str, TrainResult]:
        before = max((record.seconds_of(self.path / name) for name in finalists), default=0.0)
        end = self.plan.seconds["end"]
        left = 0.0 if self.record["trained"] else 60 * self.plan.minutes - self.elapsed() - end
        clock = Clock(max(0.0, left), before)
        runs = {name: self._start(name, *what, max(left, 1.0)) for name, what in finalists.items()}

        def on_lap(_share: float, seconds: float, text: str) -> None:
            self._status("train", seconds + end, f"{len(runs)} networks, {text}")

        trained = train_together(runs, clock, on_lap, Threads(self.most_threads, torch.get_num_threads()))
        self.record["trained"] = True
        record.write(self.path, self.record)
        return trained

    def _start(self, name: str, architecture: Architecture, skeleton: Skeleton, seconds: float) -> Any:
        plan, out = self.plan, self.path / name
        steps = max(1, len(self.data.train) // plan.batch) * plan.epochs
        settings = TrainConfig(
            architecture=as_text(architecture),
            data=self.settings["data"],
            data_root=self.settings["data_root"],
            image=plan.image,
            depth=skeleton.depth,
            channels=skeleton.channels,
            epochs=plan.epochs,
            batch=plan.batch,
            weights=Weights(rate=plan.rate, nesterov=True, decay=5e-4),
            smoothing=0.1,
            crop=plan.crop,
            flip=plan.flip,
            evaluate_epochs=plan.epochs,
            log_steps=max(1, min(10, steps // 50)),
            seed=self.settings["seed"],
            checkpoint_minutes=1.0,
            checkpoint_rounds=10_000,
            log=self.settings["log"],
        )
        return start_training(architecture, self.data, settings, out, resume=folder.is_run(out))

    def _finish(self, found: Architecture, trained: dict[str, TrainResult]) -> FitResult:
        self._status("compare", self.plan.seconds["end"], "on the test images")
        outcome, facts = compared(self.path, found, trained, self.data)
        outcome = replace(outcome, sentence=" ".join([outcome.sentence, *self.plan.notes]))
        self._export(outcome.exported)
        self.record |= {**facts, "times": self._times(), "sentence": outcome.sentence, "cost": self._cost(found)}
        record.write(self.path, self.record)
        outcome = replace(outcome, seconds=round(self.elapsed(), 2))
        write_page(outcome, self.record)
        # as --json prints it
        write_whole(self.path / folder.RESULT, f"{json.dumps(to_data(outcome), indent=1)}\n")
        return outcome

    def _cost(self, found: Architecture) -> dict[str, Any] | None:
        """What the found network costs, where the settings name a cost."""
        cost = self.settings["cost"]
        if cost is None:
            return None
        skeleton = self._finalists(found)[FOUND][1]
        return {**cost, "reached": MEASURES[cost["kind"]](found, skeleton, self.look.channels)}

    def _export(self, name: str) -> None:
        model = load_model(self.path / name)
        left = 60 * self.plan.minutes - self.elapsed()
        onnx = self.plan.onnx and left > 0 and all(find_spec(needed) for needed in ("onnx", "onnxscript"))
        try:
            export(model, self.path / folder.MODEL, ["safetensors", *(["onnx"] if onnx else [])], overwrite=True)
        except Exception as error:  # the weights are what matters; torch's exporter may raise anything
            if not onnx:
                raise
            warnings.warn(f"no ONNX file was written: {error}", UserWarning, stacklevel=2)
            export(model, self.path / folder.MODEL, ["safetensors"], overwrite=True)

    def _seconds(self) -> dict[str, float]:
        """Seconds of the parts so far, as their folders say; the trainings run side by side."""
        names = [FOUND, FIXED, *(path.name for path in self.path.glob(f"{RANDOM}*"))]
        trained = max(record.seconds_of(self.path / name) for name in names)
        return {"search": record.seconds_of(self.path / SEARCH), "training": trained}

    def _times(self) -> dict[str, float]:
        parts = {"prepare": self.record["prepared"], **self._seconds()}
        return {**parts, "end": round(max(0.0, self.elapsed() - sum(parts.values())), 2)}

    def _load(self, data: ImageData | None) -> ImageData:
        """The data at the plan's size, without training images that are also test images."""
        if data is None or data.train.shape[1:] != (self.plan.image, self.plan.image):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the look has shown what is unreadable
                data = load(self.source, self.settings["data_root"], image=self.plan.image)
        return without_test_images(data)

    def _require_same_settings(self) -> None:
        before = self.record["settings"]
        given = {name: value for name, value in self.settings.items() if name != "log"}
        changed = sorted(name for name, value in given.items() if before.get(name) != value)
        if changed:
            raise InputError(
                f"{self.path} was started with {changed[0]} {before.get(changed[0])!r}; resume with the same settings"
            )


@contextmanager
def _threads_restored() -> Iterator[None]:
    before = torch.get_num_threads()
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _name(source: Any) -> str:
    return absolute(source) if isinstance(source, str) else "python"


def _tuples(values: dict[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}
