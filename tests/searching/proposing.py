"""What the tests of strategies that propose architectures share: tiny tasks, and an evaluator that trains nothing."""

import io

import torch

from idarts.data import Batches, load, split
from idarts.searching import EVALUATORS, Evaluation, Evaluator, Task, config
from idarts.spaces import network, space


class Convolutions(Evaluator):
    """A landscape to climb: the share of 3×3 convolutions."""

    def __init__(self, search):
        self.search = search

    def __call__(self, architecture):
        ops = [edge.op for cell in architecture.cells.values() for edge in cell.edges]
        share = sum(op in ("nor_conv_3x3", "sep_conv_3x3") for op in ops) / len(ops)
        return Evaluation(share, cost=1.0, accuracy=share)


def start(method, name="nas-bench-201", evaluator=Convolutions, table=None, **changes):
    """A search of digits in a space by name; `evaluator` is a class, or None for that of the method."""
    chosen = space(name)
    skeleton = chosen.skeleton.changed(depth=3 if name == "darts" else 1, channels=4, classes=10, image=8)
    train, valid = (Batches(part, 8, seed=seed) for seed, part in enumerate(split(load("digits").train, 0.5, seed=0)))
    group = dict(changes.pop("evaluator_settings", {}))
    if evaluator is not None:
        group["kind"] = EVALUATORS.own(evaluator)
    torch.manual_seed(3)
    return Task(
        lambda _: chosen.supernet(skeleton, in_channels=1),
        train,
        valid,
        config(method, evaluator=group, **changes),
        network=lambda architecture: network(architecture, skeleton, in_channels=1),
        table=table,
        sample=chosen.sample,
        mutate=chosen.mutate,
        growth=chosen.growth,
    ).search()


def saved(search):
    """The state of a search, as a checkpoint holds it."""
    file = io.BytesIO()
    torch.save(search.state_dict(), file)
    file.seek(0)
    return torch.load(file, weights_only=True)
