"""The settings of a training from scratch, as plain data."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from idarts.errors import InputError
from idarts.search.config import Joint, Precision

Schedule = Literal["cosine", "linear", "linear-slow-end"]


@dataclass(frozen=True)
class Weights:
    """SGD on the weights; the schedule's values change with every step, or (as in the papers) with every epoch."""

    rate: float = 0.025
    last_rate: float = 0.0
    schedule: Schedule = "cosine"
    by: Literal["step", "epoch"] = "step"
    momentum: float = 0.9
    nesterov: bool = False
    decay: float = 3e-4
    clip: float = 5.0  # largest norm of a gradient; 0 clips nothing


@dataclass(frozen=True)
class TrainConfig:
    """What is trained, on what, and how. Sizes that are not given come from the architecture's space and the data."""

    architecture: str = ""  # in any form that `idarts.arch.parse` reads
    data: str = ""
    data_root: str | None = None  # else IDARTS_DATA
    image: int | None = None  # side to which images are resized
    valid: float = 0.0  # share of the training images to look at after epochs, in place of the test images
    skeleton: str | None = None  # one of the space's published ones, such as cifar or imagenet
    depth: int | None = None
    channels: int | None = None
    epochs: int = 100
    batch: int = 64
    accumulate: int = 1  # parts in which a batch goes through the network, to save memory
    weights: Weights = field(default_factory=Weights)
    smoothing: float = 0.0  # of the labels
    auxiliary: float = 0.0  # weight of the auxiliary head's loss; 0: no such head
    drop_path: float = 0.0  # probability at the end, to which it rises from 0
    crop: int | None = None  # else 4 where images have 16 pixels or more
    flip: bool | None = None  # else where images have 16 pixels or more
    cutout: int = 0  # side of the square
    average: float = 0.0  # of the old weights in their moving average, which is then what is evaluated and kept
    precision: Precision = "float32"
    channels_last: bool = True
    compile: bool = False
    batch_norm: Joint = "local"  # on several ranks: the statistics of each rank's share, or of all together
    multiply_adds: float | None = None  # in millions, above which the network is warned of
    evaluate_epochs: int = 1
    log_steps: int = 10  # steps in a round: between two lines of the log
    seed: int = 0
    device: str = "auto"
    checkpoint_rounds: int = 50
    checkpoint_minutes: float = 5.0

    def __post_init__(self) -> None:
        _require(self, _at_least_one, "a whole number of at least 1", *_COUNTS)
        _require(self, lambda value: 0 <= value < 1, "a number from 0 to below 1", *_SHARES)
        _require(self, lambda value: value >= 0, "a number of at least 0", "auxiliary", "cutout")
        for name, kind in (("precision", Precision), ("batch_norm", Joint)):
            _require(self, get_args(kind).__contains__, f"one of {_listed(kind)}", name)
        if self.weights.schedule not in get_args(Schedule):
            raise InputError(f"weights.schedule is {self.weights.schedule!r}, expected one of {_listed(Schedule)}")
        if self.weights.schedule == "linear-slow-end" and self.epochs <= SLOW_EPOCHS:
            raise InputError(f"epochs is {self.epochs}, but linear-slow-end needs more than {SLOW_EPOCHS}; use linear")
        if self.batch % self.accumulate:
            raise InputError(f"a batch of {self.batch} does not make {self.accumulate} equal parts; change accumulate")


SLOW_EPOCHS = 5  # at the end of a linear schedule with a slow end
_COUNTS = ("epochs", "batch", "accumulate", "evaluate_epochs", "log_steps", "checkpoint_rounds")
_SHARES = ("valid", "smoothing", "drop_path", "average")


def _at_least_one(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _require(settings: TrainConfig, good: Callable[[Any], bool], expected: str, *names: str) -> None:
    for name in names:
        value = getattr(settings, name)
        if not good(value):
            raise InputError(f"{name} is {value!r}, expected {expected}")


def _listed(kind: Any) -> str:
    return ", ".join(get_args(kind))
