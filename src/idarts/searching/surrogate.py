"""A surrogate: it predicts the reward of cells from those evaluated so far (PNAS, Liu et al. 2018)."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

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
    and every level is fitted from the start. `seed` makes the fit repeatable, independent of earlier random numbers.
    """

    def __init__(self, inputs: Tensor, rewards: Tensor, seed: int) -> None:
        lowest = rewards[rewards.isfinite()].min() if rewards.isfinite().any() else torch.zeros(())
        rewards = torch.where(rewards.isfinite(), rewards, lowest)
        spread = rewards.std(correction=0)
        targets = (rewards - rewards.mean()) / (spread if spread > 0 else 1.0)
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(seed)
            fold = torch.randperm(len(inputs)) % MEMBERS
            self.members = _Members(inputs.shape[1])
        left_out = fold == torch.arange(MEMBERS)[:, None]
        kept = 1 - left_out.to(inputs) if len(inputs) >= MEMBERS else torch.ones(MEMBERS, len(inputs))
        optimizer = torch.optim.Adam(self.members.parameters(), RATE)
        for _ in range(STEPS):
            optimizer.zero_grad()
            errors = (self.members(inputs) - targets).abs()
            ((errors * kept).sum(dim=1) / kept.sum(dim=1)).sum().backward()  # of each member, its mean
            optimizer.step()

    @torch.no_grad()
    def __call__(self, inputs: Tensor) -> Tensor:
        """Predictions: only their order means something."""
        mean: Tensor = self.members(inputs).mean(dim=0)
        return mean


class _Members(nn.Module):
    """Small networks side by side: two hidden layers, one output; the result has a row for each of them."""

    def __init__(self, inputs: int) -> None:
        super().__init__()
        sizes = [(inputs, WIDTH), (WIDTH, WIDTH), (WIDTH, 1)]
        bounds = [size[0] ** -0.5 for size in sizes]  # as torch's linear layers start
        self.weights, self.biases = (
            nn.ParameterList(
                nn.Parameter(torch.empty(MEMBERS, rows or size[0], size[1]).uniform_(-bound, bound))
                for size, bound in zip(sizes, bounds, strict=True)
            )
            for rows in (None, 1)
        )

    def forward(self, inputs: Tensor) -> Tensor:
        hidden = inputs.expand(MEMBERS, *inputs.shape)
        for layer, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            hidden = torch.baddbmm(bias, hidden if layer == 0 else hidden.relu(), weight)
        return hidden[..., 0]
