"""From what the data are, the minutes and the machine's speed to a plan. `docs/fit.md` states the rules."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from idarts.arch import Skeleton
from idarts.errors import InputError
from idarts.fitting.look import Look
from idarts.fitting.sizes import multiply_adds, own_depth
from idarts.fitting.speed import Speed
from idarts.spaces import space

SPACE = "residual-blocks"  # unless another one is given: docs/fit.md says why
WARM = 1.5  # a round with its step of the warm-up, in rounds
LEAST_IMAGES = 2  # of every class in the training images: one for w, one for α

# Shares of the time. Trainings get what the other parts leave.
SEARCH, SELECTION, END = 0.15, 0.25, 0.08
TRAINING = 0.2  # at least, where the test images leave little
END_SECONDS = 8.0  # for export and page, at most; the pass over the test images comes on top
ONNX_MINUTES, ONNX_SECONDS = 5.0, 20.0  # a shorter fit writes no ONNX file; how long one takes
FORWARD = 1 / 3  # of the time of a training step

# What every network should see at least and at most, in images.
PASSES, FEW, MANY = 8, 20_000, 80_000
MOST_PASSES, MOST, MOST_EPOCHS = 40, 60_000, 300


class Rung(NamedTuple):
    """A size of networks: side of the images, channels of the first cells, cells in a stage."""

    image: int
    channels: int
    depth: int


BASE = Rung(16, 16, 1)
SMALLER = (Rung(12, 16, 1), Rung(12, 12, 1), Rung(12, 8, 1), Rung(8, 8, 1))
LARGER = (
    *(Rung(24, 16, 1), Rung(32, 16, 1), Rung(32, 16, 2), Rung(32, 24, 2), Rung(32, 32, 2), Rung(48, 32, 2)),
    *(Rung(64, 32, 2), Rung(64, 32, 3), Rung(96, 32, 3), Rung(128, 32, 3), Rung(160, 48, 3), Rung(224, 48, 3)),
)
RANDOM = 3  # random networks, if there is time
SMALL = 16  # a batch below which BatchNorm suffers

ROUNDS = 600  # of the search, at most
# Side of the images and batch of the search, and the rounds that the time must be enough for.
PROXIES = ((32, 64, 300), (24, 64, 300), (16, 64, 40), (16, 32, 40), (12, 32, 40), (8, 32, 40), (8, 16, 40), (8, 8, 4))
ALPHA = 3.0  # how far α can move in the whole search: Adam moves it by its rate in a round, at most
TRIALS = (16, 8, 4)  # candidates of the selection, if each can have so many steps at first:
TRIAL_STEPS = (40, 400)


@dataclass(frozen=True)
class Plan:
    """What a fit will do, and how many seconds each part takes."""

    space: str
    image: int
    channels: int
    depth: int
    batch: int
    epochs: int  # at most: the time may end the trainings earlier
    rate: float
    crop: int
    flip: bool
    onnx: bool
    random: int
    search_image: int
    search_depth: int
    search_batch: int
    rounds: int
    warmup: int
    alpha_rate: float
    candidates: int
    trial_steps: int
    threads: int
    minutes: float
    seconds: dict[str, float]
    notes: tuple[str, ...] = ()

    @property
    def total(self) -> float:
        """Seconds of all parts."""
        return sum(self.seconds.values())

    def skeleton(self, classes: int) -> Skeleton:
        """The skeleton of the fixed network; the others have as many channels as make them equally large."""
        chosen = space(self.space).resolve()
        return chosen.changed(depth=self.depth, channels=self.channels, classes=classes, image=self.image)

    def lines(self) -> Iterator[str]:
        """The plan in a few lines for a person."""
        threads = "one thread" if self.threads == 1 else f"{self.threads} threads"
        crop = f"shifted by up to {_pixels(self.crop)}" if self.crop else "not shifted"
        flip = "mirrored at random" if self.flip else "not mirrored"
        drawn = "a random network" if self.random == 1 else f"{self.random} random networks"
        tried = f"train {self.candidates} candidates, {self.trial_steps} steps at first, and keep the best"
        texts = {
            "prepare": f"look at the data, measure this machine ({threads})",
            "search": f"{self.rounds} rounds in {self.space}, "
            f"{_pixels(self.search_image)}, batches of {self.search_batch}",
            "selection": tried if self.candidates > 1 else "take the largest of α",
            "training": f"the found network, a fixed network and {drawn}: the same size, the same steps; "
            f"{_pixels(self.image)}, {crop}, {flip}",
            "end": "compare them on the test images, export, write a page",
        }
        for part, text in texts.items():
            yield f"{part:<10}{_time(self.seconds[part])}  {text}"
        yield f"{'in all':<10}{_time(self.total)}"
        yield from self.notes


def make_plan(
    look: Look,
    minutes: float,
    speed: Speed,
    *,
    space_name: str = SPACE,
    prepared: float = 0.0,
    image: int | None = None,
    random: int | None = None,
    flip: bool | None = None,
    size: Rung | None = None,
) -> Plan:
    """The plan for data in a time on a machine. `prepared` seconds are used already; the rest overrides a rule.

    >>> from idarts.fitting.speed import Cost
    >>> cifar = Look("cifar10", 10, 50_000, 10_000, 5000, 5000, 32, ("32×32", "32×32"), 3, False)
    >>> plan = make_plan(cifar, 20, Speed(Cost(0.01, 1e-10), Cost(0.1, 2e-5), threads=2))
    >>> plan.image, plan.channels, plan.depth, plan.batch, plan.flip, plan.random, round(plan.total)
    (16, 16, 2, 128, True, 3, 1200)
    """
    if look.fewest < LEAST_IMAGES:
        raise InputError(
            f"{look.source}: the smallest class has {look.fewest} training image; give at least {LEAST_IMAGES} of each"
        )
    if random is not None and random < 1:
        raise InputError(f"random is {random}, expected at least one random network")
    left = 60 * minutes - prepared
    if left <= 0:
        raise InputError(f"{minutes:g} minutes passed before the search could start; give more minutes")
    onnx = minutes >= ONNX_MINUTES
    end = min(END * left, END_SECONDS) + ONNX_SECONDS * onnx
    proxy, rounds, search = _search(look, SEARCH * left, speed)
    batch = _batch(look.train, most=128, per_epoch=8)
    costs = _Costs(look, space_name, speed, batch, (1 - SELECTION - SEARCH) * left - end, image)
    rung, drawn, enough = _size(costs, random, size)
    end += 2 * (2 + drawn) * look.test * FORWARD * costs.seconds(rung)
    trial = rung._replace(image=min(proxy[0], rung.image))
    least = TRAINING * left
    available = min(SELECTION * left, left - search - end - least)
    candidates, steps, selection = _selection(available, costs.step(trial, proxy[1]))
    training = max(left - search - selection - end, least)
    most = costs.most()
    images = min(training / costs.seconds(rung) / (2 + drawn), most)
    notes = [] if enough else ["There is little time for this data: the networks will not be fully trained."]
    side = rung.image
    return Plan(
        space=space_name,
        image=side,
        channels=rung.channels,
        depth=rung.depth,
        batch=batch,
        epochs=max(1, math.ceil(min(most, 2 * images) / look.train)),
        rate=round(max(0.025, 0.1 * batch / 128), 4),
        crop=side // 8 if side >= 12 else 1,
        flip=not look.grey if flip is None else flip,
        onnx=onnx,
        random=drawn,
        search_image=min(proxy[0], side),
        search_depth=own_depth(space_name) or 1,
        search_batch=proxy[1],
        rounds=rounds,
        warmup=rounds,
        alpha_rate=round(min(0.1, ALPHA / rounds), 5),
        candidates=candidates,
        trial_steps=steps,
        threads=speed.threads,
        minutes=minutes,
        seconds={
            "prepare": round(prepared, 1),
            "search": round(search, 1),
            "selection": round(selection, 1),
            "training": round(images * costs.seconds(rung) * (2 + drawn), 1),
            "end": round(end, 1),
        },
        notes=tuple(notes),
    )


@dataclass(frozen=True)
class _Costs:
    """What networks cost on these data."""

    look: Look
    space: str
    speed: Speed
    batch: int
    training: float  # seconds for all trainings
    image: int | None

    def clipped(self, rung: Rung) -> Rung:
        """A rung with images as large as they are stored, at most, and the depth of the space if that is fixed."""
        depth = own_depth(self.space) or rung.depth
        return rung._replace(image=self.image or min(rung.image, self.look.side), depth=depth)

    def step(self, rung: Rung, batch: int) -> float:
        """Seconds of a training step."""
        skeleton = space(self.space).resolve().changed(**rung._asdict(), classes=self.look.classes)
        return self.speed.step(batch * multiply_adds(space(self.space).fixed(), skeleton, self.look.channels))

    def seconds(self, rung: Rung) -> float:
        """Seconds to train on one image."""
        return self.step(rung, self.batch) / self.batch

    def most(self) -> int:
        """Images that a network sees at most."""
        return min(MOST_PASSES * self.look.train + MOST, MOST_EPOCHS * self.look.train)

    def enough(self, rung: Rung, drawn: int) -> bool:
        """Whether every network sees enough images in the time; one that costs four times as much needs twice."""
        needed = min(PASSES * self.look.train, MANY) + FEW
        more = max(1.0, math.sqrt(self.seconds(rung) / self.seconds(self.clipped(BASE))))
        return self.training / self.seconds(rung) >= min(more * needed, self.most()) * (2 + drawn)


def _size(costs: _Costs, random: int | None, size: Rung | None) -> tuple[Rung, int, bool]:
    """The largest size for which the time is enough; then fewer random networks, then smaller networks."""
    many = RANDOM if random is None else random
    few = 1 if random is None else random
    large, base, small = (LARGER[::-1], BASE, SMALLER) if size is None else ((), size, ())
    options = [(rung, many) for rung in (*large, base)]
    options += [(base, drawn) for drawn in range(many - 1, few - 1, -1)] + [(rung, few) for rung in small]
    for rung, drawn in options:
        if costs.enough(costs.clipped(rung), drawn):
            return costs.clipped(rung), drawn, True
    return costs.clipped(options[-1][0]), options[-1][1], False


def _search(look: Look, seconds: float, speed: Speed) -> tuple[tuple[int, int], int, float]:
    """The proxy that has enough rounds in the time, its rounds, and the seconds that they take."""
    most = _batch(look.train // 2, most=64, per_epoch=4)
    for wanted, images, least in PROXIES:
        side, batch = min(wanted, look.side), min(images, most)
        each = WARM * speed.round(side * side * batch)
        if seconds / each >= least:
            break
    rounds = min(max(4, int(seconds / each)), ROUNDS)
    return (side, batch), rounds, min(seconds, rounds * each)


def _selection(seconds: float, step: float) -> tuple[int, int, float]:
    """Candidates, the steps of their first trials, and the seconds of all trials; one candidate means no trials."""
    for candidates in TRIALS:
        all_steps = candidates * math.log2(candidates)  # each level of the halving costs as much as the first
        steps = int(seconds / step / all_steps)
        if steps >= TRIAL_STEPS[0]:
            steps = min(steps, TRIAL_STEPS[1])
            return candidates, steps, steps * all_steps * step
    return 1, TRIAL_STEPS[0], 0.0


def _batch(images: int, most: int, per_epoch: int) -> int:
    """The largest power of two up to `most` that makes enough batches of so many images; 16 where two of them fit."""
    batch = most
    while batch * per_epoch > images and (batch > SMALL or 2 * batch > images) and batch > 1:
        batch //= 2
    return batch


def _pixels(count: int) -> str:
    return "1 pixel" if count == 1 else f"{count} pixels"


def _time(seconds: float) -> str:
    return f"{seconds / 60:6.1f} min" if seconds >= 60 else f"{seconds:6.0f} s  "
