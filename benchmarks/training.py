"""Steps of training from scratch against a straightforward network of modules, as public DARTS code trains it.

Run `python benchmarks/training.py`. DARTS_V2 with 16 channels and 8 cells on batches of 64 random 32-pixel images, with
drop-path, clipping and SGD. The plain one is written below: a module for every operation, contiguous images, ready-made
batches. Ours is `idarts.training.Training` as a whole: batches are made from pixels, cropped, flipped and cut, steps
that are not finite would be skipped. All of it in one process and one thread, in interleaved rounds; the least CPU
time of each counts, which on a machine that others use, too, says more than the clock. Both networks get the same
weights first and must give the same logits.
"""

import argparse
import gc
import json
import time
from collections.abc import Iterator, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from idarts.arch import Cell, parse
from idarts.data import Augment, Batches, load
from idarts.spaces import network
from idarts.training import TrainConfig, Training
from measure import Run

CHANNELS, DEPTH, BATCH, IMAGE, DROP_PATH = 16, 8, 64, 32, 0.2
TARGET = 1.3
STEPS = 1  # in a measurement


def separable(channels: int, kernel: int, stride: int, dilation: int = 1) -> list[nn.Module]:
    padding = dilation * (kernel // 2)
    return [
        nn.ReLU(inplace=False),
        nn.Conv2d(channels, channels, kernel, stride, padding, dilation, groups=channels, bias=False),
        nn.Conv2d(channels, channels, 1, bias=False),
        nn.BatchNorm2d(channels),
    ]


class Halve(nn.Module):
    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(inputs, outputs // 2, 1, stride=2, bias=False)
        self.second = nn.Conv2d(inputs, outputs // 2, 1, stride=2, bias=False)
        self.relu, self.norm = nn.ReLU(inplace=False), nn.BatchNorm2d(outputs)

    def forward(self, x: Tensor) -> Tensor:
        x = self.relu(x)
        result: Tensor = self.norm(torch.cat([self.first(x), self.second(x[:, :, 1:, 1:])], dim=1))
        return result


def make(op: str, channels: int, stride: int) -> nn.Module:
    if op == "skip_connect":
        return nn.Identity() if stride == 1 else Halve(channels, channels)
    if op == "max_pool_3x3":
        return nn.MaxPool2d(3, stride=stride, padding=1)
    kernel = int(op[-1])
    if op.startswith("dil"):
        return nn.Sequential(*separable(channels, kernel, stride, dilation=2))
    return nn.Sequential(*separable(channels, kernel, stride), *separable(channels, kernel, 1))


def pointwise(inputs: int, outputs: int) -> nn.Module:
    return nn.Sequential(nn.ReLU(inplace=False), nn.Conv2d(inputs, outputs, 1, bias=False), nn.BatchNorm2d(outputs))


class PlainCell(nn.Module):
    def __init__(self, cell: Cell, before: int, previous: int, channels: int, reduces: bool, halve: bool) -> None:
        super().__init__()
        self.preprocess0 = Halve(before, channels) if halve else pointwise(before, channels)
        self.preprocess1 = pointwise(previous, channels)
        self.cell = cell
        self.ops = nn.ModuleList(
            make(edge.op or "", channels, 2 if reduces and edge.source < 2 else 1) for edge in cell.edges
        )

    def forward(self, before: Tensor, previous: Tensor, drop: float) -> Tensor:
        states = [self.preprocess0(before), self.preprocess1(previous)]
        for node in range(4):
            results = []
            for place in (2 * node, 2 * node + 1):
                op = self.ops[place]
                result = op(states[self.cell.edges[place].source])
                if self.training and drop > 0 and not isinstance(op, nn.Identity):
                    mask = torch.empty(result.shape[0], 1, 1, 1).bernoulli_(1 - drop)
                    result = result.div(1 - drop).mul(mask)
                results.append(result)
            states.append(results[0] + results[1])
        return torch.cat([states[node] for node in self.cell.output], dim=1)


class PlainNetwork(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        cells = parse("DARTS_V2").cells
        width = 3 * CHANNELS
        self.stem = nn.Sequential(nn.Conv2d(3, width, 3, padding=1, bias=False), nn.BatchNorm2d(width))
        self.cells = nn.ModuleList()
        before, previous, channels, halve = width, width, CHANNELS, False
        for place in range(DEPTH):
            reduces = place in (DEPTH // 3, 2 * DEPTH // 3)
            channels *= 2 if reduces else 1
            cell = cells["reduce" if reduces else "normal"]
            self.cells.append(PlainCell(cell, before, previous, channels, reduces, halve))
            before, previous, halve = previous, len(cell.output) * channels, reduces
        self.pool, self.classifier = nn.AdaptiveAvgPool2d(1), nn.Linear(previous, 10)
        self.drop_path = 0.0

    def forward(self, x: Tensor) -> Tensor:
        before = previous = self.stem(x)
        for cell in self.cells:
            before, previous = previous, cell(before, previous, self.drop_path)
        logits: Tensor = self.classifier(self.pool(previous).flatten(1))
        return logits


def plain_steps(net: PlainNetwork) -> Run:
    """Steps as public code takes them; its batches are ready, which costs it nothing here."""
    optimizer = torch.optim.SGD(net.parameters(), 0.025, 0.9, weight_decay=3e-4)
    batches = [(torch.randn(BATCH, 3, IMAGE, IMAGE), torch.randint(0, 10, (BATCH,))) for _ in range(STEPS)]

    def run() -> None:
        net.train()
        net.drop_path = DROP_PATH / 2
        for images, labels in batches:
            optimizer.zero_grad()
            logits = net(images)
            loss = cross_entropy(logits, labels)
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 5.0)
            optimizer.step()
            loss.item()
            (logits.argmax(dim=1) == labels).float().mean().item()

    return run


def our_steps(net: nn.Module, **settings: Any) -> Run:
    """Rounds of a training that stands at half of its epochs, where drop-path has half of its last probability."""
    pixels = torch.randint(0, 256, (10 * BATCH, 3, IMAGE, IMAGE), dtype=torch.uint8)
    data = load((pixels, torch.arange(10 * BATCH) % 10), hold_out=0)
    batches = Batches(data.train, BATCH, augment=Augment(crop=4, flip=True, cutout=16))
    config = TrainConfig(epochs=600, batch=BATCH, drop_path=DROP_PATH, log_steps=STEPS, **settings)
    training = Training(net, batches, None, config)
    training.step = training.steps // 2
    rounds: Iterator[Any] = training.rounds()
    return lambda: next(rounds)


def same_logits(plain: nn.Module, ours: nn.Module) -> float:
    """Give the plain network our weights, and compare: the largest difference of logits, relative to the largest."""
    for mine, theirs in zip(ours.parameters(), plain.parameters(), strict=True):
        theirs.data.copy_(mine.data)
    images = torch.randn(BATCH, 3, IMAGE, IMAGE)
    with torch.no_grad():
        expected = plain.train()(images)  # in evaluation, fresh statistics would make all logits tiny
        return float((ours.train()(images) - expected).abs().max() / expected.abs().max())


def least(runs: Mapping[str, Run], rounds: int) -> dict[str, float]:
    """CPU seconds of each run, the least of several rounds over all of them, after one that does not count."""
    seconds = dict.fromkeys(runs, float("inf"))
    for number in range(rounds + 1):
        for name, run in runs.items():
            gc.collect()
            start = time.process_time()
            run()
            if number:
                seconds[name] = min(seconds[name], time.process_time() - start)
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--json", type=Path, help="file to write the numbers to")
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    plain, ours = PlainNetwork(), network("DARTS_V2", depth=DEPTH, channels=CHANNELS)
    difference = same_logits(plain, ours)
    assert difference < 1e-4, difference
    runs = {
        "plain modules": plain_steps(plain),
        "ours, contiguous": our_steps(deepcopy(ours), channels_last=False),
        "ours, channels last (the default)": our_steps(deepcopy(ours)),
    }
    seconds = least(runs, options.rounds)
    base = seconds["plain modules"]
    rows = [
        {"run": name, "cpu_seconds": spent, "images_per_second": STEPS * BATCH / spent, "speed": base / spent}
        for name, spent in seconds.items()
    ]
    print(f"largest difference of logits: {difference:.1e} of the largest logit")
    for row in rows:
        print(f"{row['run']:35} {row['images_per_second']:8.1f} images/s  {row['speed']:.2f}×")
    print(f"target: {TARGET}× with the defaults, no slower without")
    if options.json:
        facts = {"difference": difference, "threads": 1, "torch": torch.__version__, "rounds": options.rounds}
        options.json.write_text(json.dumps({**facts, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
