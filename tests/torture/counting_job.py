"""A job that costs nothing, so that thousands of runs can be damaged, killed and resumed."""

import warnings
from dataclasses import dataclass, field

import torch

from idarts.engine.folder import read_result, read_rounds
from idarts.engine.run import Job, run_job

ROUNDS = 6


@dataclass(frozen=True)
class Group:
    rate: float = 0.1


@dataclass(frozen=True)
class Settings:
    rounds: int = ROUNDS
    weights: Group = field(default_factory=Group)
    checkpoint_rounds: int = 2
    checkpoint_minutes: float = 5.0
    log: str = "none"


@dataclass(frozen=True)
class Round:
    number: int
    total: float


class Count:
    """Adds up random numbers, so that a resume at a wrong place shows."""

    healthy = True

    def __init__(self):
        self.number, self.sum, self.drawn = 0, torch.zeros(3), torch.Generator().manual_seed(7)
        self.on_message = lambda _: None

    def rounds(self):
        while self.number < ROUNDS:
            self.number += 1
            self.sum = self.sum + torch.rand(3, generator=self.drawn)
            yield Round(self.number, self.sum.sum().item())

    def state_dict(self):
        return {"number": self.number, "sum": self.sum, "drawn": self.drawn.get_state()}

    def load_state_dict(self, state):
        self.number, self.sum = state["number"], state["sum"]
        self.drawn.set_state(state["drawn"])


class StoppedError(Exception):
    """The run was stopped, as a kill would do it."""


def count(path, stop_after=None, **options):
    """Run the job in a folder; it stops after a round, if one is given."""
    work = Count()

    def stop(record, _work):
        if record.number == stop_after:
            raise StoppedError

    def prepare():
        return Job(work, vars, lambda log: {"total": log[-1]["total"]}, kind="count", data="sha256:data")

    run_job(prepare, Settings(), path, on_round=stop, **options)


def outcome(path):
    """All that the run says in the end, without its times."""
    with warnings.catch_warnings(record=True):
        rounds = [{key: value for key, value in entry.items() if key != "seconds"} for entry in read_rounds(path)]
        result = {key: value for key, value in read_result(path).items() if key != "seconds"}
    return rounds, result
