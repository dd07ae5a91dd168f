"""A search of NAS-Bench-201 on the digits that takes a second, for the tests of methods."""

import torch

from idarts.data import Batches, load, split
from idarts.searching import Task, config
from idarts.spaces import space

PARTS = split(load("digits").train, 0.5, seed=0)
QUICK = {"samples": 3, "batches": 1, "steps": 2}


def begin(method, rounds=4, name="nas-bench-201", channels=4, **changes):
    """A search at its start; equal arguments make equal searches."""
    torch.manual_seed(3)
    chosen = space(name)
    settings = config(method, rounds=rounds, batch=8, **changes)

    def supernet(stage):
        depth = round((3 if chosen.record == "darts" else 1) * stage.deepen)
        skeleton = chosen.skeleton.changed(depth=depth, channels=channels)
        return chosen.supernet(skeleton, in_channels=1, relaxation=settings.build_relaxation(stage.relaxation))

    train, valid = (Batches(part, 8, seed=seed) for seed, part in enumerate(PARTS))
    return Task(supernet, train, valid, settings).search()


def same(one, other):
    """Whether two states are equal, bit for bit."""
    if isinstance(one, torch.Tensor):
        return torch.equal(one, other)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return one == other
