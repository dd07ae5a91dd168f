"""A search, a training, an overwrite, an experiment and an export survive a fault at every file operation.

After each fault the same command, given again (with --resume where there is a run), ends as if nothing had happened.
"""

import os
import random
import warnings

import pytest
import torch
from counting_job import count, outcome
from faults import KINDS, Faults, KilledError, fresh, injected
from torch import nn

import idarts
from idarts import Choice, data
from idarts.arch import parse
from idarts.data.record import take
from idarts.engine.folder import is_run, read_result
from idarts.errors import IdartsError
from idarts.experiments import Experiment, FunctionJob, Request, run_experiment
from idarts.experiments.store import RESULTS
from idarts.spaces import SPACES
from idarts.spaces.networks import network
from idarts.training import load, save, train
from idarts.training.card import Card

TORTURE = int(os.environ.get("IDARTS_TORTURE", "0"))
DIGITS = take(data.load("digits").train, torch.arange(96), {})


def square(number):
    return [{"number": number, "square": number**2}]


def counted(path):
    count(path, resume=is_run(path))


def overwritten(path):
    count(path, overwrite=is_run(path))


def squared(path):
    jobs = [FunctionJob(f"job-{n}", function=square, arguments={"number": n}) for n in (1, 2)]
    run_experiment(Experiment("squares", "Squares.", lambda _: jobs), Request(out=path), tell=lambda _: None)


def tiny():
    """A model of few tensors: each of them is a few file operations, and all of these shall fail in turn."""
    torch.manual_seed(0)
    curve = nn.Sequential(nn.Linear(64, 2), nn.Tanh(), nn.Linear(2, 10))
    return nn.Sequential(nn.Flatten(), Choice({"line": nn.Linear(64, 10), "curve": curve}, name="layer"))


def searched(path):
    settings = {"rounds": 2, "checkpoint_rounds": 1, "inner_steps": 1, "batch": 8, "log": "none"}
    idarts.search(tiny(), DIGITS, method="darts-first-order", out=path, resume=is_run(path), **settings)


def trained(path):
    settings = {"epochs": 2, "checkpoint_rounds": 1, "batch": 32, "log": "none"}
    train(tiny(), (DIGITS.images, DIGITS.labels), out=path, resume=is_run(path), **settings)


def exported(path):
    net = load(path.parents[1] / "source")
    save(path, net, net.card, overwrite=True)


def without_times(result):
    return {key: value for key, value in result.items() if key not in ("seconds", "metrics")}


def of_model(path, **model):
    return {name: tensor.tolist() for name, tensor in load(path, **model).state_dict().items()}


JOBS = {  # what is done, what it leaves, and whether there is something to overwrite
    "run": (counted, outcome, False),
    "overwrite": (overwritten, outcome, True),
    "experiment": (squared, lambda path: (path / RESULTS).read_text(), False),
    "export": (exported, of_model, True),
    "search": (searched, lambda path: without_times(read_result(path)), False),
    "training": (trained, lambda path: (without_times(read_result(path)), of_model(path, model=tiny())), False),
}
FEW = {"run": 60, "overwrite": 40, "experiment": 30, "export": 30, "search": 40, "training": 40}  # in `make test`


def attempt(work, path, faults):
    """Whether it ended well; an error must be one clear line."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with injected(faults):
                work(path)
        except KilledError:
            return False
        except IdartsError as error:
            if "\n" in str(error):
                raise
            return False
    return True


@pytest.mark.parametrize("name", JOBS)
def test_every_file_operation_may_fail(tmp_path, name):
    work, left, overwrites = JOBS[name]
    torch.set_num_threads(1)
    if name == "export":
        size = SPACES["nas-bench-201"].resolve(depth=1, channels=4)
        card = Card(parse("nas-bench-201:0"), size, 3, (8, 8), (0.5,) * 3, (0.2,) * 3, tuple("0123456789"))
        save(tmp_path / "source", network(card.architecture, size), card)
    before, target = tmp_path / "before" / "target", tmp_path / "work" / "target"
    below = target.parent  # what is written beside the target counts, too
    if overwrites:
        work(before)
    faults = Faults(below)
    assert attempt(work, fresh(before, target), faults)
    expected, operations = left(target), faults.count
    assert operations > 10
    cases = [(at, kind) for at in range(1, operations + 1) for kind in KINDS]
    few = min(TORTURE * FEW[name] // 60 if TORTURE else FEW[name], len(cases))
    for at, kind in sorted(random.Random(name).sample(cases, few)):
        fresh(before, target)
        attempt(work, target, Faults(below, at, kind))
        assert attempt(work, target, Faults(below)), f"{name}: {kind} at {at} of {operations}"
        assert left(target) == expected, f"{name}: {kind} at {at} of {operations}"
        strays = [path for path in below.rglob(".*") if path.name != ".lock"]
        assert not strays, f"{name}: {kind} at {at} of {operations}"
