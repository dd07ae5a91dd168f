"""MLflow: a run on the server or in the store of MLFLOW_TRACKING_URI, in MLFLOW_EXPERIMENT_NAME or `idarts`."""

import os
import time
from collections.abc import Mapping
from typing import Any

from idarts.engine.loggers import LOGGERS, Logger, Outcome, Started, facts, numbers, package
from idarts.engine.settings import dotted
from idarts.errors import InputError

MANY = 100  # parameters in one request, at most
LONG = 5000  # characters of a parameter or tag, at most
STATES: dict[Outcome, str] = {"finished": "FINISHED", "stopped": "KILLED", "failed": "FAILED"}


@LOGGERS.register("mlflow")
class MLflow(Logger):
    """One run of MLflow, also over several processes: parameters, metrics by the number of the round, tags."""

    def __init__(self) -> None:
        self.entities = package("mlflow.entities", "mlflow")
        try:
            self.client = package("mlflow", "mlflow").MlflowClient()
        except Exception as error:  # the address may be anything, and the store behind it, too
            reason = " ".join(str(error).split())
            raise InputError(f"log is mlflow, which has no store to write to: {reason}") from error

    def start(self, run: Started) -> str:
        """Create the run, or continue it."""
        self.last = 0  # the last round that is there
        if run.id is not None:
            self.id = run.id
            self.client.update_run(self.id, status="RUNNING")
            steps = [point.step for point in self.client.get_metric_history(self.id, "run/seconds")]
            self.last = max(steps, default=0)
            return self.id
        name = run.path.resolve().name
        self.id = str(self.client.create_run(self._experiment(), run_name=name, tags={"kind": run.kind}).info.run_id)
        settings = list(dotted(run.settings).items())
        for place in range(0, len(settings), MANY):
            chunk = [self.entities.Param(key, str(value)[:LONG]) for key, value in settings[place : place + MANY]]
            self.client.log_batch(self.id, params=chunk)
        return self.id

    def _experiment(self) -> str:
        name = os.environ.get("MLFLOW_EXPERIMENT_NAME", "idarts")
        known = self.client.get_experiment_by_name(name)
        return str(self.client.create_experiment(name) if known is None else known.experiment_id)

    def round(self, entry: Mapping[str, Any]) -> None:
        """Log the numbers. A resumed run repeats some rounds, bit for bit: those that are there are left out."""
        if entry["number"] > self.last:
            self._log(numbers(entry), entry["number"])

    def result(self, result: Mapping[str, Any]) -> None:
        """Log the numbers of the result as metrics, its texts as tags."""
        said = facts(result)
        texts = {name: value for name, value in said.items() if isinstance(value, str)}
        self._log({f"result/{name}": value for name, value in said.items() if not isinstance(value, str)}, 0)
        tags = [self.entities.RunTag(name, value[:LONG]) for name, value in texts.items()]
        self.client.log_batch(self.id, tags=tags)

    def end(self, outcome: Outcome) -> None:
        """Set the state of the run."""
        self.client.set_terminated(self.id, STATES[outcome])

    def _log(self, values: Mapping[str, float], step: int) -> None:
        now = round(1000 * time.time())
        metrics = [self.entities.Metric(name, float(value), now, step) for name, value in values.items()]
        self.client.log_batch(self.id, metrics=metrics)
