"""Weights & Biases: a run in the project of WANDB_PROJECT, by default `idarts`; WANDB_MODE=offline needs no network."""

import os
from collections.abc import Mapping
from typing import Any

from idarts.engine.loggers import LOGGERS, Logger, Outcome, Started, facts, numbers, package


@LOGGERS.register("wandb")
class Wandb(Logger):
    """One run of Weights & Biases, also over several processes. Its files are in the run folder, in `wandb/`."""

    def __init__(self) -> None:
        self.wandb = package("wandb", "wandb")

    def start(self, run: Started) -> str:
        """Start the run, or continue it; several can be open in one process."""
        self.run = self.wandb.init(
            project=os.environ.get("WANDB_PROJECT", "idarts"),
            name=os.environ.get("WANDB_NAME", run.path.resolve().name),
            job_type=run.kind,
            dir=os.environ.get("WANDB_DIR", str(run.path)),
            config=dict(run.settings),
            id=run.id,
            resume=None if run.id is None else "allow",
            reinit="create_new",
            settings=self.wandb.Settings(console="off"),  # the progress display would become thousands of lines
        )
        return str(self.run.id)

    def round(self, entry: Mapping[str, Any]) -> None:
        """Log the numbers. A resumed run repeats some rounds, bit for bit: steps that are known are left out."""
        if entry["number"] >= self.run.step:
            self.run.log(numbers(entry), step=entry["number"], commit=True)

    def result(self, result: Mapping[str, Any]) -> None:
        """Write the facts of the result into the summary."""
        self.run.summary.update(facts(result))

    def end(self, outcome: Outcome) -> None:
        """Finish the run; one that is not finished counts as failed there until it resumes."""
        self.run.finish(exit_code=0 if outcome == "finished" else 1)
