"""What runs on the pretend device and on the CPU: a script, since the device stays for the rest of its process."""

import json
import sys
import traceback
import warnings
from pathlib import Path

import pretend
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from idarts.arch import as_text
from idarts.data import Batches, load, split
from idarts.data.record import take
from idarts.hypergrad import (
    BOME,
    F2SA,
    AmIGO,
    ConjugateGradient,
    Exact,
    FirstOrder,
    Identity,
    Neumann,
    Nystrom,
    OneStep,
    Part,
    Recursive,
    ReverseMode,
    Running,
    Saba,
    TruncatedReverse,
    hypergradient,
    lift,
)
from idarts.searching import Task, config
from idarts.searching.selections.trials import Trial
from idarts.spaces import network, space
from idarts.training.loop import Training
from idarts.training.settings import TrainConfig

ESTIMATORS = {
    "amigo": AmIGO(0.2, iterations=2),
    "bome": BOME(0.2),
    "conjugate-gradient": ConjugateGradient(3, damping=1.0),
    "exact": Exact(damping=1.0),
    "f2sa": F2SA(0.2),
    "first-order": FirstOrder(),
    "identity": Identity(),
    "neumann": Neumann(3, "auto", curvature="gauss_newton"),
    "nystrom": Nystrom(3, damping=1.0),
    "one-step": OneStep(0.1),
    "recursive": Recursive(0.2, eta=0.3),
    "reverse": ReverseMode(3, 0.05),
    "running": Running(0.2, momentum=0.3),
    "saba": Saba(0.2),
    "truncated-reverse": TruncatedReverse(3, 2, 0.05),
    "differences": Neumann(2, 0.05, products="finite_difference", radius=1e-4),
}
FEW = {"hypergradient": {"step": 0.05}}  # "auto", which is slow at first, is among the estimators
SEARCHES = {  # each relaxation, objective, strategy with shared weights and space once
    "idarts": {**FEW, "selection": {"rule": "trials", "samples": 2, "steps": 2, "batches": 1}},
    "darts": {},
    "gdas": {},
    "drnas": {},
    "snas": {},
    "parsec": {},
    "xnas": {},
    "fair-darts": {},
    "darts-minus": {},
    "sdarts-rs": {},
    "pc-darts": {},
    "p-darts": {},
    "nsas": {"selection": {"samples": 2, "batches": 1}},
    "setn": {"selection": {"samples": 2, "batches": 1}},
    "mdenas": {},
    "en2as": {"selection": {"samples": 2, "batches": 1}},
    "enas": {"controller": {"samples": 2}, "selection": {"samples": 2, "batches": 1}},
    "random-nas": {"selection": {"samples": 2, "batches": 1}},
    "regularised-evolution": {"population": {"size": 1}, "evaluator": {"kind": "shared-weights", "batches": 1}},
    "idarts in nas-bench-1shot1-s3": FEW,
    "darts-first-order in darts": {},
    "darts-first-order in mobile": {},
    "darts-first-order in residual-blocks": {},
}
PROPOSING = {  # strategies without a supernet
    "random-search": {},
    "regularised-evolution": {"population": {"size": 1}},
    "nasnet": {"controller": {"samples": 2}, "selection": {"samples": 1, "steps": 1, "batches": 1}},
    "pnas": {"population": {"size": 1}},
}
PARTS = split(take(load("digits").train, torch.arange(200), {}), 0.5, seed=0)


def strict():
    """That the device refuses and counts at all: what mixes devices, and what waits."""
    x, found = torch.ones(3, device="pretend"), {}
    mixes = {
        "sum": lambda: x + torch.ones(3),
        "index": lambda: x[torch.tensor([0, 1])],
        "network": lambda: nn.Linear(3, 2)(x),
        "in place": lambda: torch.ones(3).add_(x),
    }
    for name, mix in mixes.items():
        try:
            found[name] = str(mix())
        except RuntimeError as error:
            found[name] = "refused" if "two devices" in str(error) else str(error)
    waiting = {
        "item": lambda: x[0].item(),
        "float": lambda: float(x.sum()),
        "bool": lambda: bool(x.any()),
        "list": lambda: x.tolist(),
        "cpu": lambda: x.cpu(),
        "nonzero": lambda: x.nonzero(),
        "mask": lambda: x[x > 0],
        "equal": lambda: torch.equal(x, x),
        "list as an index": lambda: x[[0, 1]],
        "tensor": lambda: torch.tensor([1.0], device="pretend"),
        "copy to the device": lambda: torch.ones(3).to("pretend"),
    }
    free = {
        "arithmetic": lambda: (x * 2 + 1).softmax(0).sum(),
        "number of the CPU": lambda: x * torch.tensor(2.0),
        "slice": lambda: x[1:].clone(),
        "copy without waiting": lambda: torch.ones(3).to("pretend", non_blocking=True),
        "draw": lambda: torch.randn(3, device="pretend"),
    }
    for name, run in (waiting | free).items():
        pretend.waits.clear()
        run()
        found[name] = len(pretend.waits)
    return found, list(mixes), list(waiting), list(free)


class Small(nn.Module):
    """Weights w behind inputs that a weighs."""

    def __init__(self):
        super().__init__()
        self.a = nn.Parameter(torch.tensor([0.3, -0.2, 0.1, 0.5]))
        self.body = nn.Sequential(nn.Linear(4, 5), nn.BatchNorm1d(5), nn.Tanh(), nn.Linear(5, 3))

    def forward(self, x):
        return self.body(x * self.a)


def estimate(name, device):
    """Three hypergradients in a row, and the waits of the last."""
    torch.manual_seed(0)
    x, y, net = torch.randn(2, 12, 4).to(device), torch.randint(3, (2, 12)).to(device), Small().to(device)
    w, a = list(net.body.parameters()), [net.a]
    inner, outer = (lift(net, cross_entropy, (x[i], y[i]), w, a) for i in (0, 1))
    state = None
    for _ in range(3):
        pretend.waits.clear()
        losses = (Part(inner, 0, 1), Part(outer, 0, 1)) if name == "saba" else (inner, outer)
        found = hypergradient(*losses, w, a, ESTIMATORS[name], state=state)
        state = found.state
    return found.grads[0], list(pretend.waits)


def begin(name, device, rounds=2, **more):
    torch.manual_seed(3)
    method, _, other = name.partition(" in ")
    chosen = space(other or "nas-bench-201")
    settings = config(method, rounds=rounds, batch=4, inner_steps=1, **(more or SEARCHES[name]))

    def supernet(stage):
        depth = round((3 if other == "darts" else 1) * stage.deepen)  # with a cell of each kind
        skeleton = chosen.skeleton.changed(depth=depth, channels=5 if other else 4)
        relaxation = settings.build_relaxation(stage.relaxation)
        return chosen.supernet(skeleton, in_channels=1, relaxation=relaxation).to(device)

    def build(architecture):
        return network(architecture, chosen.skeleton.changed(depth=1, channels=4), in_channels=1).to(device)

    batches = (Batches(part, 4, seed=seed, device=device) for seed, part in enumerate(PARTS))
    parts = {"sample": chosen.sample, "mutate": chosen.mutate, "growth": chosen.growth}
    return Task(supernet, *batches, settings, network=build, **parts).search()


def search(name, device):
    """α after a round, the architecture, and the waits of a weight step and of the whole round."""
    work = begin(name, device)
    work.net.train()
    pretend.waits.clear()
    work._train_weights(1)
    weights = list(pretend.waits)
    pretend.waits.clear()
    work._step_architecture()
    alpha = torch.cat([a.detach().reshape(-1) for a in work.a])
    return alpha, weights, list(pretend.waits), str(work.select())


def propose(name, device):
    """The validation loss of the first architecture that a strategy without a supernet trains, and the selected one."""
    work = begin(name, device, rounds=6, evaluator={"steps": 2, "batches": 1}, **PROPOSING[name])
    return [work._step_architecture().loss, as_text(work.select())]


def resume(name, device):
    """α of a whole search, and of one that stops after a round and continues in another, among other draws."""
    whole = begin(name, device)
    start = pretend.Module().get_rng_state(), torch.get_rng_state()
    list(whole.rounds())
    pretend.Module().set_rng_state(start[0]), torch.set_rng_state(start[1])
    cut = begin(name, device)
    pretend.Module().set_rng_state(start[0]), torch.set_rng_state(start[1])
    next(cut.rounds())
    state = cut.state_dict()
    torch.manual_seed(99)
    rest = begin(name, device)
    torch.rand(7), torch.rand(5, device=device)
    rest.load_state_dict(state)
    list(rest.rounds())
    return [torch.cat([a.detach().reshape(-1) for a in work.a]).cpu().tolist() for work in (whole, rest)]


def train(device):
    """Weights after each of two rounds with dropout, the waits of the second, and the same after a resume."""

    def start():
        torch.manual_seed(0)
        body = [nn.Conv2d(1, 4, 3, stride=2), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Dropout(0.5)]
        settings = TrainConfig(epochs=2, log_steps=5, average=0.9)
        net = nn.Sequential(*body, nn.Linear(36, 10))
        batches = (Batches(part, 16, seed=1, device=device) for part in PARTS)
        return Training(net, *batches, settings)

    whole = start()
    rounds = whole.rounds()
    next(rounds)
    pretend.waits.clear()
    next(rounds)
    waits = list(pretend.waits)
    cut = start()
    next(cut.rounds())
    state, rest = cut.state_dict(), start()
    torch.rand(7), torch.rand(5, device=device)
    rest.load_state_dict(state)
    next(rest.rounds())
    ends = [torch.cat([p.detach().reshape(-1) for p in one.net.parameters()]).cpu().tolist() for one in (whole, rest)]
    return ends, waits


def trial(device):
    """Whether a trial leaves the random states of the CPU and of the device as they were."""
    work = begin("idarts", device)
    before = pretend.Module().get_rng_state(), torch.get_rng_state()
    Trial.of(work, [next(work.task.valid)])(work.current(), 2)
    after = pretend.Module().get_rng_state(), torch.get_rng_state()
    return [torch.equal(*states) for states in zip(before, after, strict=True)]


def main(out):
    pretend.install()
    warnings.simplefilter("ignore")
    found = {}

    def note(name, case, *arguments):
        try:
            found[name] = case(*arguments)
        except Exception:
            found[name] = {"error": traceback.format_exc()}

    def both(case, name):
        on_cpu, on_device = (case(name, device) for device in ("cpu", "pretend"))
        difference = (on_cpu[0] - on_device[0].cpu()).abs().max().item()
        waits = [value for value in on_device[1:] if isinstance(value, list)]
        return {"difference": difference, "device": str(on_device[0].device), "waits": waits}

    note("strict", strict)
    for name in ESTIMATORS:
        note(f"estimate {name}", both, estimate, name)
    for name in SEARCHES:
        note(f"search {name}", both, search, name)
    for name in PROPOSING:
        note(f"propose {name}", lambda name=name: [propose(name, device) for device in ("cpu", "pretend")])
    note("resume", resume, "drnas", "pretend")
    note("train", train, "pretend")
    note("trial", trial, "pretend")
    Path(out).write_text(json.dumps(found))


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(sys.argv[1])
