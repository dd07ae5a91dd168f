"""The settings of a training from scratch, as plain data.

What stands below a setting is its explanation, in `idarts train --help`, too.
"""

from dataclasses import field
from typing import Literal

from idarts.engine.settings import Count, CountOrZero, Joint, NonNegative, Positive, Precision, Share, validated
from idarts.errors import InputError

Schedule = Literal["cosine", "linear", "linear-slow-end"]


@validated
class Weights:
    """SGD on the weights; the schedule's values change with every step, or (as in the papers) with every epoch."""

    rate: NonNegative = 0.025
    """learning rate at the beginning"""
    last_rate: NonNegative = 0.0
    """learning rate at the end"""
    schedule: Schedule = "cosine"
    """how the learning rate falls"""
    by: Literal["step", "epoch"] = "step"
    """after what it falls"""
    momentum: Share = 0.9
    """momentum"""
    nesterov: bool = False
    """whether the momentum is Nesterov's"""
    decay: NonNegative = 3e-4
    """weight decay"""
    clip: NonNegative = 5.0
    """largest norm of a gradient; 0 clips nothing"""


@validated
class TrainConfig:
    """What is trained, on what, and how. Sizes that are not given come from the architecture's space and the data."""

    architecture: str = ""
    """the same as ARCH"""
    data: str = ""
    """data to train on: digits, cifar10, cifar100, fashion-mnist, folder:PATH or npz:FILE"""
    data_root: str | None = None
    """folder of the data's files, else IDARTS_DATA"""
    image: Count | None = None
    """side to which images are resized"""
    valid: Share = 0.0
    """share of the training images to look at after epochs, in place of the test images"""
    skeleton: str | None = None
    """skeleton: one of the space's published ones, such as cifar or imagenet"""
    depth: Count | None = None
    """cells (in NAS-Bench: cells per stage), else the skeleton's"""
    channels: Count | None = None
    """channels of the first cells, else the skeleton's"""
    epochs: Count = 100
    """epochs of the training images"""
    batch: Count = 64
    """images in a batch"""
    accumulate: Count = 1
    """parts in which a batch goes through the network, to save memory"""
    weights: Weights = field(default_factory=Weights)
    smoothing: Share = 0.0
    """smoothing of the labels"""
    auxiliary: NonNegative = 0.0
    """weight of the auxiliary head's loss; 0: no such head"""
    drop_path: Share = 0.0
    """probability of dropping a path at the end, to which it rises from 0"""
    crop: CountOrZero | None = None
    """pixels of padding, from which crops are taken, else 4 where images have 16 pixels or more"""
    flip: bool | None = None
    """whether images are mirrored at random, else where they have 16 pixels or more"""
    cutout: CountOrZero = 0
    """side of the square that is blanked; 0: none is"""
    average: Share = 0.0
    """share of the old weights in their moving average, which is then what is evaluated and kept"""
    precision: Precision = "float32"
    """precision of the steps"""
    channels_last: bool = True
    """memory format, which is often quicker"""
    compile: bool = False
    """whether torch compiles the network"""
    batch_norm: Joint = "local"
    """on several ranks: the statistics of each rank's share, or of all together"""
    multiply_adds: Positive | None = None
    """millions of multiply-adds above which the network is warned of"""
    evaluate_epochs: Count = 1
    """epochs between two evaluations"""
    log_steps: Count = 10
    """steps in a round: between two lines of the log"""
    seed: CountOrZero = 0
    """seed of all that is drawn"""
    device: str = "auto"
    """device, such as cpu or cuda:1"""
    checkpoint_rounds: Count = 50
    """rounds between two checkpoints, at most"""
    checkpoint_minutes: NonNegative = 5.0
    """minutes between two checkpoints, at most"""

    def __post_init__(self) -> None:
        if self.weights.nesterov and not self.weights.momentum:
            raise InputError("weights.nesterov needs a momentum; use --weights.nesterov false")
        if self.weights.schedule == "linear-slow-end" and self.epochs <= SLOW_EPOCHS:
            raise InputError(f"epochs is {self.epochs}, but linear-slow-end needs more than {SLOW_EPOCHS}; use linear")
        if self.batch % self.accumulate:
            raise InputError(f"a batch of {self.batch} does not make {self.accumulate} equal parts; change accumulate")


SLOW_EPOCHS = 5  # at the end of a linear schedule with a slow end
