"""The settings of a training from scratch, as plain data.

The text below a setting is also its help in `idarts train --help`.
"""

from dataclasses import field
from typing import Annotated, Literal

from idarts.engine.loggers import LogName
from idarts.engine.schedules import SCHEDULES, SLOW_EPOCHS
from idarts.engine.settings import (
    Count,
    CountOrZero,
    Joint,
    NonNegative,
    PartOf,
    Positive,
    Precision,
    Seed,
    Share,
    validated,
)
from idarts.errors import InputError


@validated
class Weights:
    """SGD on the weights. Schedules change with every step or, as in the papers, with every epoch."""

    rate: NonNegative = 0.025
    """learning rate at the start"""
    last_rate: NonNegative = 0.0
    """learning rate at the end"""
    schedule: Annotated[str, PartOf(lambda: SCHEDULES)] = "cosine"
    """how the learning rate falls"""
    by: Literal["step", "epoch"] = "step"
    """when schedules change: with every step or with every epoch"""
    momentum: Share = 0.9
    """momentum"""
    nesterov: bool = False
    """whether to use Nesterov momentum"""
    decay: NonNegative = 3e-4
    """weight decay"""
    clip: NonNegative = 5.0
    """largest norm of the gradient; 0: no clipping"""


@validated
class TrainConfig:
    """What is trained, on which data, and how. Sizes not given come from the architecture's space and the data."""

    architecture: str = ""
    """the same as ARCH"""
    data: str = ""
    """data to train on"""
    data_root: str | None = None
    """folder of the data's files; default: IDARTS_DATA"""
    image: Count | None = None
    """side to which images are resized, in pixels"""
    valid: Share = 0.0
    """share of the training images to evaluate on after epochs, instead of the test images"""
    skeleton: str | None = None
    """one of the space's published skeletons, such as cifar or imagenet"""
    depth: Count | None = None
    """cells (in NAS-Bench: cells per stage); default: the skeleton's"""
    channels: Count | None = None
    """channels of the first cells; default: the skeleton's"""
    epochs: Count = 100
    """epochs of the training images"""
    batch: Count = 64
    """images in a batch"""
    accumulate: Count = 1
    """parts in which a batch passes through the network, to save memory"""
    weights: Weights = field(default_factory=Weights)
    smoothing: Share = 0.0
    """smoothing of the labels"""
    auxiliary: NonNegative = 0.0
    """weight of the auxiliary head's loss; 0: no auxiliary head"""
    drop_path: Share = 0.0
    """probability of dropping a path, which rises from 0 to this value"""
    crop: CountOrZero | None = None
    """pixels of padding for random crops; default: 4 if images have 16 pixels or more, else 0"""
    flip: bool | None = None
    """whether to mirror images at random; default: if they have 16 pixels or more"""
    cutout: CountOrZero = 0
    """side of the square that cutout blanks; 0: no cutout"""
    average: Share = 0.0
    """decay of a moving average of the weights, which is then evaluated and saved; 0: no average"""
    precision: Precision = "float32"
    """precision of the training steps"""
    channels_last: bool = True
    """whether to use the channels-last memory format, which is often faster"""
    compile: bool = False
    """whether to compile the network with torch.compile"""
    batch_norm: Joint = "local"
    """batch statistics on several ranks: `local`, those of each rank's share; `synchronised`, those of all shares"""
    multiply_adds: Positive | None = None
    """millions of multiply-adds above which a warning is shown"""
    evaluate_epochs: Count = 1
    """epochs between two evaluations"""
    log_steps: Count = 10
    """steps in a round, which is one line of the log"""
    seed: Seed = 0
    """seed of all random numbers"""
    device: str = "auto"
    """device, such as cpu or cuda:1"""
    checkpoint_rounds: Count = 50
    """rounds between two checkpoints, at most"""
    checkpoint_minutes: NonNegative = 5.0
    """minutes between two checkpoints, at most"""
    log: LogName = "none"
    """where to log settings, rounds and result besides the run folder"""

    def __post_init__(self) -> None:
        if self.weights.nesterov and not self.weights.momentum:
            raise InputError("weights.nesterov needs a momentum; use --weights.nesterov false")
        if self.weights.schedule == "linear-slow-end" and self.epochs <= SLOW_EPOCHS:
            raise InputError(f"epochs is {self.epochs}, but linear-slow-end needs more than {SLOW_EPOCHS}; use linear")
        if self.batch % self.accumulate:
            raise InputError(
                f"a batch of {self.batch} cannot be divided into {self.accumulate} equal parts; change accumulate"
            )
