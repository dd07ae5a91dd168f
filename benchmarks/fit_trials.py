"""The trials of a fit: how fast their steps are, and which learning rate ranks networks as a long training does.

    IDARTS_DATA=… python benchmarks/fit_trials.py

The networks have one kind of block throughout, and as many parameters as the fixed network of a fit, with Fashion-MNIST
at 16 pixels. First, a training step with torch's gradients against one with `lean_depthwise`, interleaved, fastest of
some. Then trials of 90 steps with some learning rates and seeds, against one training of 1,500 steps, all judged by the
loss on training images that were held out. The test images are not read. Ten minutes on two cores.
"""

import argparse
import time
from collections.abc import Iterator
from functools import partial
from statistics import mean

from scipy.stats import spearmanr
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from idarts.arch import Architecture, parse
from idarts.data import Augment, Batches, ImageData, Part, load, split
from idarts.fitting.sizes import parameters, resized
from idarts.layers import lean_depthwise
from idarts.searching.selections.trials import Trial
from idarts.spaces import network, space
from idarts.spaces.supernet import channels_last

SPACE, BLOCKS = "residual-blocks", ("conv3", "sep3", "sep5", "inv3", "inv5")
IMAGE, BATCH, VALID = 16, 64, 512
STEPS, LONG = 90, 1500
RATES, LONG_RATE, SEEDS = (0.025, 0.05, 0.1, 0.2), 0.1, 3


def uniform(block: str) -> Architecture:
    return parse(f"{SPACE}:" + "+".join([f"{block}-{block}"] * 3))


def build(data: ImageData, architecture: Architecture) -> nn.Module:
    """The network of an architecture, as large as the fixed one with 16 channels."""
    channels = data.train.shape[0]
    skeleton = space(SPACE).resolve().changed(depth=2, channels=16, classes=len(data.classes), image=IMAGE)
    size = parameters(space(SPACE).fixed(), skeleton, channels)
    net = network(architecture, resized(architecture, skeleton, size, channels), in_channels=channels)
    channels_last(net)
    return net


def step(net: nn.Module, images: Tensor, labels: Tensor) -> float:
    """Seconds of a gradient."""
    started = time.perf_counter()
    cross_entropy(net(images), labels).backward()
    return time.perf_counter() - started


def print_speeds(data: ImageData, rounds: int) -> None:
    """Milliseconds of a step."""
    images, labels = next(Batches(data.train, 2 * BATCH))
    print(f"{'block':8}{'torch, ms':>12}{'ours, ms':>12}{'ratio':>8}")
    for block in BLOCKS:
        theirs, ours = (build(data, uniform(block)) for _ in range(2))
        lean_depthwise(ours)
        times = [[step(net, images, labels) for net in (theirs, ours)] for _ in range(rounds + 1)][1:]
        slow, fast = (1000 * min(column) for column in zip(*times, strict=True))
        print(f"{block:8}{slow:12.1f}{fast:12.1f}{slow / fast:8.2f}", flush=True)


def losses(data: ImageData, train: Part, valid: Part, rate: float, steps: int, seed: int) -> list[float]:
    """The loss of each network on the held-out images."""
    augment = Augment(crop=IMAGE // 8)

    def batches() -> Iterator[tuple[Tensor, Tensor]]:
        return iter(Batches(train, BATCH, seed=seed, augment=augment))

    held = list(Batches(valid, VALID, shuffle=False).one_epoch())
    trial = Trial(partial(build, data), batches, held, cross_entropy, rate, seed)
    return [trial(uniform(block), steps) for block in BLOCKS]


def print_rates(data: ImageData) -> None:
    """Losses of trials, mean over seeds, and their rank correlation with those of the long training."""
    train, valid = split(data.train, 0.5, seed=0)
    print(f"{'rate':8}{'steps':>8}" + "".join(f"{block:>9}" for block in BLOCKS) + f"{'correlation':>13}  best")
    long = losses(data, train, valid, LONG_RATE, LONG, seed=0)
    for rate, steps, seeds in [(LONG_RATE, LONG, 0), *((rate, STEPS, SEEDS) for rate in RATES)]:
        found = [losses(data, train, valid, rate, steps, seed) for seed in range(1, seeds + 1)] or [long]
        means = [mean(column) for column in zip(*found, strict=True)]
        each = mean(spearmanr(row, long).statistic for row in found)
        best = ", ".join(BLOCKS[row.index(min(row))] for row in found)
        print(f"{rate:<8}{steps:8}" + "".join(f"{loss:9.3f}" for loss in means) + f"{each:13.2f}  {best}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--rounds", type=int, default=10, help="of the steps that are timed")
    options = parser.parse_args()
    data = load("fashion-mnist", image=IMAGE)
    print_speeds(data, options.rounds)
    print_rates(data)


if __name__ == "__main__":
    main()
