"""Training a network from scratch, the short way: SGD, momentum, a cosine, no frills."""

import math

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from idarts.data import Batches


def fit(
    net: nn.Module, train: Batches, epochs: int, *, rate: float = 0.1, momentum: float = 0.9, decay: float = 5e-4
) -> None:
    """Train `net` in place for so many passes over `train`, the learning rate falling to zero by a cosine.

    >>> from idarts.data import load
    >>> data = load("digits")
    >>> net = nn.Sequential(nn.Flatten(), nn.Linear(64, 10))
    >>> fit(net, Batches(data.train, 64), epochs=3)
    >>> accuracy(net, Batches(data.test, 100, shuffle=False, drop_last=False)) > 0.8
    True
    """
    steps = epochs * len(train)
    optimizer = torch.optim.SGD(net.parameters(), rate, momentum, weight_decay=decay, nesterov=True)
    net.train()
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = rate * 0.5 * (1 + math.cos(math.pi * step / steps))
        images, labels = next(train)
        optimizer.zero_grad()
        cross_entropy(net(images), labels).backward()
        optimizer.step()


@torch.no_grad()
def accuracy(net: nn.Module, test: Batches) -> float:
    """The share of one pass over `test` that `net` classifies rightly."""
    net.eval()
    right = torch.stack([(net(images).argmax(dim=1) == labels).sum() for images, labels in test.one_epoch()])
    return right.sum().item() / len(test.part)
