"""Do short trainings rank cells of the DARTS space as NAS-Bench-301 does? Cells of convolutions with 0 to 8 skips.

    IDARTS_TABLES=… IDARTS_DATA=… python benchmarks/darts_trials.py

First, what random cells have by their number of skips in the normal cell. Then each cell is trained from scratch once,
with a cosine schedule over all steps, and judged after some of them. Needs the surrogate (`idarts table fit
nas-bench-301`); a quarter of an hour on one core.
"""

import argparse
import math
from random import Random
from statistics import mean, stdev

import torch
from scipy.stats import spearmanr
from torch import Tensor
from torch.nn.functional import cross_entropy

from idarts.arch import Architecture, Cell, Edge, Skeleton
from idarts.data import load
from idarts.data.record import Images
from idarts.spaces.darts import INPUTS, NODES, OPS, SPACE
from idarts.spaces.darts.cells import sample
from idarts.spaces.darts.network import DartsNetwork
from idarts.spaces.supernet import channels_last
from idarts.tables import Table, table

SHARES = (0, 0.12, 0.25, 0.4, 0.6, 0.8, 1)  # of skips in the normal cell
REDUCTION = {"sep_conv_3x3": 0.4, "sep_conv_5x5": 0.4, "max_pool_3x3": 0.2}
LOOKS, RATE, BATCH = (80, 160, 320), 0.05, 32
SKELETON = Skeleton(depth=8, channels=8, classes=10, image=16)
MEAN, STD = torch.tensor([0.4914, 0.4822, 0.4465]), torch.tensor([0.247, 0.243, 0.261])


def cell(shares: dict[str, float], random: Random) -> Cell:
    """Random inputs and operations, each operation with its share."""
    ops, weights = zip(*shares.items(), strict=True)
    edges = [
        Edge(source, node, random.choices(ops, weights)[0])
        for node in range(INPUTS, NODES)
        for source in random.sample(range(node), 2)
    ]
    return Cell(NODES, edges, range(INPUTS, NODES))


def architectures(count: int) -> list[Architecture]:
    """Cells as searches select them, of separable and dilated convolutions, with none to many skips."""
    random, chosen = Random(5), []
    for place in range(count):
        skips = SHARES[place % len(SHARES)]
        convolutions = {"sep_conv_3x3": 0.6, "sep_conv_5x5": 0.3, "dil_conv_3x3": 0.1}
        normal = {op: (1 - skips) * share + 1e-9 for op, share in convolutions.items()}
        cells = {"normal": cell({**normal, "skip_connect": skips}, random), "reduce": cell(REDUCTION, random)}
        chosen.append(Architecture(SPACE, cells))
    return chosen


def print_random_cells(known: Table, count: int = 300) -> None:
    """Mean and standard deviation of random cells with so many skips in the normal cell."""
    random, others = Random(0), [op for op in OPS if op not in ("none", "skip_connect")]
    for skips in range(5):
        values = []
        for _ in range(count):
            ops = ["skip_connect"] * skips + random.choices(others, k=8 - skips)
            random.shuffle(ops)
            drawn = sample(random)
            edges = [edge._replace(op=op) for edge, op in zip(drawn.cells["normal"].edges, ops, strict=True)]
            cells = {**drawn.cells, "normal": Cell(NODES, edges, range(INPUTS, NODES))}
            values.append(known.query(Architecture(SPACE, cells))["cifar10"]["valid"])
        print(f"{count} random cells with {skips} skips: {mean(values):.2f} ± {stdev(values):.2f}")


def images() -> tuple[Tensor, Tensor]:
    """CIFAR-10's training images at 16 pixels, normalised, and their labels."""
    part = load("cifar10", image=SKELETON.image).train
    assert isinstance(part, Images)  # in memory
    pixels = torch.as_tensor(part.images).float() / 255
    return (pixels - MEAN[:, None, None]) / STD[:, None, None], torch.as_tensor(part.labels).long()


def trial(architecture: Architecture, x: Tensor, y: Tensor, train: Tensor, valid: Tensor) -> list[float]:
    """The validation losses at the looks of one training; the same images for every cell."""
    torch.manual_seed(0)
    random = torch.Generator().manual_seed(0)
    net = DartsNetwork(architecture, SKELETON).train()
    channels_last(net)
    sgd = torch.optim.SGD(net.parameters(), RATE, momentum=0.9, nesterov=True, weight_decay=5e-4)
    losses = []
    for step in range(LOOKS[-1]):
        sgd.param_groups[0]["lr"] = RATE * (1 + math.cos(math.pi * step / LOOKS[-1])) / 2
        batch = train[torch.randint(len(train), (BATCH,), generator=random)]
        flipped = x[batch].flip(-1) if torch.rand((), generator=random) < 0.5 else x[batch]
        loss = cross_entropy(net(flipped), y[batch])
        sgd.zero_grad()
        loss.backward()
        sgd.step()
        if step + 1 in LOOKS:
            with torch.no_grad():
                losses.append(float(cross_entropy(net(x[valid]), y[valid])))
    return losses


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", type=int, default=28)
    args = parser.parse_args()
    torch.set_num_threads(1)
    known, chosen = table("nas-bench-301"), architectures(args.cells)
    print_random_cells(known)
    truth = [known.query(one)["cifar10"]["valid"] for one in chosen]
    skips = [sum(edge.op == "skip_connect" for edge in one.cells["normal"].edges) for one in chosen]
    x, y = images()
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(0))
    train, valid = order[:25_000], order[25_000:26_024]
    losses = [trial(one, x, y, train, valid) for one in chosen]
    for look, values in zip(LOOKS, zip(*losses, strict=True), strict=True):
        best = min(range(len(chosen)), key=values.__getitem__)
        agreement = -float(spearmanr(values, truth).statistic)
        bias = float(spearmanr(skips, values).statistic)
        print(
            f"{look} steps: Spearman's correlation with the surrogate {agreement:.2f}, "
            f"of skips with the loss {bias:.2f}, best by trials {truth[best]:.2f} with {skips[best]} skips"
        )


if __name__ == "__main__":
    main()
