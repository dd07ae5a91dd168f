"""Models with Choices for the tests."""

import torch
from torch import nn

from idarts.arch import Architecture
from idarts.spaces import Choice


def activations(name="activation"):
    return Choice({"relu": nn.ReLU(), "tanh": nn.Tanh(), "line": nn.Linear(4, 4)}, name=name)


class Scaled(nn.Module):
    """Two inputs, one of them named."""

    def __init__(self, factor):
        super().__init__()
        self.factor = nn.Parameter(torch.tensor(factor))

    def forward(self, x, *, plus):
        return self.factor * x + plus


class Model(nn.Module):
    """Two Choices that share their name around one that does not, and a BatchNorm beside them."""

    def __init__(self):
        super().__init__()
        self.first, self.second = activations(), activations()
        self.middle = Choice({"up": Scaled(2.0), "down": Scaled(-1.0)}, name="direction")
        self.norm = nn.BatchNorm1d(4)
        self.head = nn.Linear(4, 2)

    def forward(self, x, shift=0.0):
        return self.head(self.norm(self.second(self.middle(self.first(x), plus=shift))))


def chosen(**choices):
    return Architecture("choice", choices=choices)
