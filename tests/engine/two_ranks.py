"""What the tests compare: run by one process, and by each of two, as a script whose argument is a folder."""

import os
import sys
import time
from contextlib import suppress
from dataclasses import replace

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from idarts.data import Batches, load
from idarts.data.record import take
from idarts.engine.ranks import (
    all_mean,
    any_of,
    joint_statistics,
    on_first,
    process_group,
    rank,
    require_equal,
    share,
    traffic,
    world,
)
from idarts.errors import IdartsError, InputError
from idarts.hypergrad import (
    ALONE,
    BOME,
    F2SA,
    AmIGO,
    Averaging,
    ConjugateGradient,
    FirstOrder,
    Neumann,
    Nystrom,
    Recursive,
    ReverseMode,
    Running,
    hypergradient,
    lean,
    lift,
)
from idarts.searching import Task, config
from idarts.searching.selections.trials import Trial
from idarts.searching.streams import Piece, TensorBatches, replay
from idarts.spaces import network, space
from idarts.training.loop import Training
from idarts.training.settings import TrainConfig

METHODS = {
    "first": FirstOrder(),
    "paper": Neumann(2, 0.05),
    "auto": Neumann(3, "auto", curvature="gauss_newton"),
    "conjugate": ConjugateGradient(4, damping=1.0),
    "nystrom": Nystrom(3, damping=1.0),
    "unrolled": ReverseMode(3, 0.05),
    "differences": Neumann(2, 0.05, products="finite_difference", radius=1e-4),
}
RUNNING = {
    "automatic": Running(curvature="gauss_newton"),
    "running": Running(0.2, momentum=0.3, smoothing=0.5),
    "amigo": AmIGO(0.2, iterations=2),
    "recursive": Recursive(0.2, eta=0.3),
    "f2sa": F2SA(0.2),
    "bome": BOME(0.2),
}
SEARCHES = {
    "idarts": {},
    "gdas": {"method": "gdas"},
    "enas": {"method": "enas", "controller": {"samples": 2}, "selection": {"samples": 4, "batches": 1}},
    "setn": {"method": "setn", "selection": {"samples": 4, "batches": 1}},
}


class Small(nn.Module):
    """Two inputs of an α each, and a softmax on top; smooth, so that differences are good to many digits."""

    def __init__(self, norm):
        super().__init__()
        self.alpha = nn.Parameter(torch.tensor([0.3, -0.2], dtype=torch.float64))
        first = nn.Conv2d(2, 4, 3, padding=1)
        layers = [first, nn.BatchNorm2d(4)] if norm else [first]
        self.body = lean(nn.Sequential(*layers)).double()
        self.head = nn.Linear(4 * 9, 3).double()

    def forward(self, x):
        x = torch.tanh(self.body(x * self.alpha.view(1, 2, 1, 1)))
        return self.head(x.flatten(1))


def problem(norm, piece_of):
    torch.manual_seed(0)
    net = Small(norm)
    w = [p for name, p in net.named_parameters() if name != "alpha"]
    data = torch.randn(2, 8, 2, 3, 3, dtype=torch.float64), torch.randint(3, (2, 8))
    piece, pieces = piece_of
    here = slice(piece * 8 // pieces, (piece + 1) * 8 // pieces)
    inner, outer = (lift(net, cross_entropy, (data[0][i, here], data[1][i, here]), w, [net.alpha]) for i in (0, 1))
    return inner, outer, w, [net.alpha]


def estimates(norm, piece_of, averaging):
    """All methods' hypergradients, γ, and the number of collectives, on one piece of the batch."""
    found = {}
    for name, method in METHODS.items():
        with traffic() as counted, joint_statistics(True):
            estimate = hypergradient(*problem(norm, piece_of), method, averaging=averaging)
        step = estimate.diagnostics.step
        found[name] = {"grads": estimate.grads[0], "loss": estimate.outer_loss, "step": step, "calls": counted.calls}
    return found


def followed(piece_of, averaging):
    """Three calls of every method that keeps a solution: the last hypergradient, and the solution."""
    found = {}
    for name, method in RUNNING.items():
        state = None
        for _ in range(3):
            estimate = hypergradient(*problem(False, piece_of), method, state=state, averaging=averaging)
            state = estimate.state
        found[name] = {"grads": estimate.grads[0], "kept": state["y" if name == "bome" else "v"]}
    return found


def begun(name, seed=1, **more):
    """A short search in float64, on this rank's piece of the batches."""
    torch.manual_seed(seed)
    found = space("nas-bench-201")
    net = found.supernet(found.skeleton.changed(depth=1, channels=4, classes=3, image=8), in_channels=1).double()
    torch.manual_seed(1)
    x, y = torch.randn(48, 1, 8, 8, dtype=torch.float64), torch.randint(3, (48,))
    streams = [TensorBatches(x[part], y[part], 8, seed) for seed, part in enumerate((slice(24), slice(24, 48)))]
    streams = [Piece(stream, (rank(), world())) for stream in streams]
    changes = {"rounds": 2, "inner_steps": 2, "alpha": {"rate": 0.02}, "batch_norm": "synchronised"} | SEARCHES[name]
    changes |= more
    settings = config(changes.pop("method", "idarts"), **changes)
    skeleton = space("nas-bench-201").skeleton.changed(depth=1, channels=4, classes=3, image=8)
    build = lambda architecture: lean(network(architecture, skeleton, in_channels=1)).double()  # noqa: E731
    return Task(net, *streams, settings, network=build).search()


def estimator_state(work):
    state = getattr(work.strategy, "state", None)
    return None if state is None else state["vector"]


def search(name, **more):
    """α, w and the result at the end of a search."""
    work = begun(name, **more)
    rounds = list(work.rounds())
    return {
        "alpha": torch.cat([a.detach().reshape(-1) for a in work.a]),
        "w": torch.cat([w.detach().reshape(-1) for w in work.w]),
        "losses": [[r.train_loss, r.valid_loss, r.valid_accuracy] for r in rounds],
        "selected": str(work.select()),
        "buffers": torch.cat([b.reshape(-1).double() for b in work.net.buffers()]),
        "spectrum": estimator_state(work),
    }


def tried():
    """The loss of a candidate after four steps, and what it cost to choose one of four so."""
    work = begun("idarts", selection={"rule": "trials", "samples": 4, "steps": 2, "batches": 1, "judge": "loss"})
    valid = [next(work.task.valid) for _ in range(4)]
    trial = Trial(work.task.network, replay(work.task.train), valid, cross_entropy, rate=0.05, seed=3)
    with joint_statistics(True):
        return {"loss": trial(work.current(), 4), "selected": str(work.select()), "cost": work.gradient_evaluations}


def training():
    """Two epochs of a network without BatchNorm, with a moving average and a tail that makes no whole batch."""
    torch.manual_seed(rank())  # begun differently: all take the first rank's weights
    net = nn.Sequential(nn.Flatten(), nn.Linear(64, 10))
    data = load("digits")
    held = take(data.test, torch.arange(rank(), len(data.test), world()), {})
    settings = TrainConfig(epochs=2, log_steps=11, average=0.9)
    batches = Batches(data.train, 64, share=share(64)), Batches(held, 100, shuffle=False, drop_last=False)
    work = Training(net, *batches, settings)
    last = list(work.rounds())[-1]
    weights = [torch.cat([p.detach().reshape(-1) for p in part.parameters()]) for part in (work.net, work.averaged)]
    return {"w": torch.cat(weights), "seen": [last.train_loss, last.valid_loss, last.valid_accuracy]}


def normalised(batch_norm):
    """Six steps of a network with BatchNorm; smooth, for rounding at a kink would change a gradient by percents."""
    torch.manual_seed(0)
    body = [nn.Conv2d(1, 4, 3, stride=2), nn.BatchNorm2d(4), nn.Tanh(), nn.Conv2d(4, 8, 3), nn.BatchNorm2d(8)]
    net = nn.Sequential(*body, nn.Tanh(), nn.Flatten(), nn.Linear(8, 10))
    settings = TrainConfig(epochs=1, log_steps=3, average=0.9, batch_norm=batch_norm)
    part = take(load("digits").train, torch.arange(6 * 64), {})
    work = Training(net, Batches(part, 64, share=share(64)), None, settings)
    losses = [found.train_loss for found in work.rounds()]
    kept = [*work.net.state_dict().values(), *work.averaged.state_dict().values()]
    return {"state": torch.cat([t.reshape(-1).double() for t in kept]), "losses": losses}


def tampered():
    """α is touched on one rank after a round: every rank must say so."""
    work = begun("gdas")
    rounds = work.rounds()
    next(rounds)
    if rank() == 1:
        with torch.no_grad():
            work.a[0][2, 3] += 1e-6
    try:
        next(rounds)
    except IdartsError as error:
        return str(error)
    return None


def timed():
    """A budget of minutes, which the rate follows, on ranks of which one is slower: after how many weight steps."""
    work = begun("idarts", minutes=0.03, rounds=10**6, weights={"warmup": 10**6})
    plain = work.task.loss

    def slow(outputs, targets):
        time.sleep(0.02 * rank())
        return plain(outputs, targets)

    work.task = replace(work.task, loss=slow)
    work.weights.task = work.task
    with suppress(InputError):  # it ends in the warm-up
        list(work.rounds())
    return {"steps": work.spent.weight_steps, "w": torch.cat([w.detach().reshape(-1) for w in work.w])}


def refused():
    def fail():
        raise InputError("the folder is in use")

    try:
        on_first(fail)
    except InputError as error:
        return str(error)
    return None


def unequal():
    """The same settings, but other data on the second rank."""
    try:
        require_equal({"seed": 1, "data": f"sha256:{rank()}"})
    except InputError as error:
        return str(error)
    return None


def nan_on_one(mode):
    """One rank's validation batch is bad: all skip the round and keep α."""
    inner, outer, w, a = problem(False, (rank(), world()))
    bad = (lambda w, a: outer(w, a) * float("nan")) if rank() == 1 else outer
    try:
        hypergradient(inner, bad, w, a, Neumann(2, "auto"), averaging=Averaging(all_mean, mode == "synchronised"))
    except IdartsError as error:
        return type(error).__name__
    return None


def main(path):
    with process_group():
        mine, together = (rank(), world()), Averaging(all_mean) if world() > 1 else ALONE
        found = {norm: estimates(norm == "norm", mine, together) for norm in ("plain", "norm")}
        found["followed"] = followed(mine, together)
        found |= {name: search(name) for name in SEARCHES} | {"training": training(), "tried": tried()}
        found["normalised"] = {mode: normalised(mode) for mode in ("synchronised", "local")}
        if world() > 1:
            found["local"] = estimates(False, mine, Averaging(all_mean, vectors=False))
            found["local followed"] = followed(mine, Averaging(all_mean, vectors=False))
            found["local search"] = search("idarts", seed=rank(), distributed="local", batch_norm="local")
            found["half search"] = search("idarts", precision="bfloat16", rounds=1)
            found["unequal"] = unequal()
            found["tampered"], found["refused"], found["flags"] = tampered(), refused(), any_of(rank() == 1, False)
            found["timed"] = timed()
            found["nan"] = [nan_on_one(mode) for mode in ("synchronised", "local")]
        else:
            halves = [estimates(False, (piece, 2), ALONE) for piece in (0, 1)]
            found["local"] = halves
    torch.save(found, path)


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(os.path.join(sys.argv[1], f"{os.environ.get('RANK', 'alone')}.pt"))
