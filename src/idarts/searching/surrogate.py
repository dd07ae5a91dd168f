"""A surrogate: it predicts the reward of cells from those evaluated so far (PNAS, Liu et al. 2018)."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import l1_loss

from idarts.arch import Block, Growth

MEMBERS = 5  # of the ensemble; each leaves out one fifth of the cells
WIDTH = 100
STEPS, RATE = 300, 0.01


def features(growth: Growth, cells: Sequence[Sequence[Block]]) -> Tensor:
    """The mean over a cell's nodes, and over what enters each, of the one-hot code of (source, operation).

    A linear layer on it is a mean of embeddings, which all nodes share: a cell with a node more can be scored. The
    order of a node's branches does not matter.

    >>> from idarts.arch import SPACES
    >>> growth = SPACES["nas-bench-201"].growth()
    >>> features(growth, [[((0, "none"),), ((0, "none"), (1, "skip_connect"))]]).nonzero()[:, 1].tolist()
    [0, 6]
    """
    column = {op: place for place, op in enumerate(growth.ops)}
    sources = 1 + max(source for inputs in growth.inputs for entering in inputs for source in entering)
    rows = [[0.0] * (sources * len(column)) for _ in cells]
    for row, cell in zip(rows, cells, strict=True):
        for block in cell:
            for source, op in block:
                row[source * len(column) + column[op]] += 1 / (len(cell) * len(block))
    return torch.tensor(rows)


class Surrogate:
    """An ensemble of small networks, fitted by ℓ1 loss on standardised rewards; its prediction is their mean.

    The paper has a sigmoid at the end, and Adam's rate is 0.002 after the first level; rewards here may be any numbers,
    and every level is fitted from the start. `seed` makes the fit the same each time, whatever was drawn before.
    """

    def __init__(self, inputs: Tensor, rewards: Tensor, seed: int) -> None:
        lowest = rewards[rewards.isfinite()].min() if rewards.isfinite().any() else torch.zeros(())
        rewards = torch.where(rewards.isfinite(), rewards, lowest)
        spread = rewards.std(correction=0)
        targets = (rewards - rewards.mean()) / (spread if spread > 0 else 1.0)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            fold = torch.randperm(len(inputs)) % MEMBERS
            kept = [fold != member if len(inputs) >= MEMBERS else fold >= 0 for member in range(MEMBERS)]
            self.members = [_fitted(inputs[rows], targets[rows]) for rows in kept]

    @torch.no_grad()
    def __call__(self, inputs: Tensor) -> Tensor:
        """Predictions: only their order means something."""
        return torch.stack([member(inputs)[:, 0] for member in self.members]).mean(dim=0)


def _fitted(inputs: Tensor, targets: Tensor) -> nn.Module:
    net = nn.Sequential(
        nn.Linear(inputs.shape[1], WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, 1)
    )
    optimizer = torch.optim.Adam(net.parameters(), RATE)
    for _ in range(STEPS):
        optimizer.zero_grad()
        l1_loss(net(inputs)[:, 0], targets).backward()
        optimizer.step()
    return net
