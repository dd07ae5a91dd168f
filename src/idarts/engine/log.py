"""The log of a run: a line in metrics.jsonl for each round, the same for a logger, and the time of all processes."""

import logging
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from idarts.engine import folder
from idarts.engine.loggers import Logger, Started
from idarts.errors import InputError

_diagnostics = logging.getLogger(__name__)


class RunLog:
    """Writes rounds and the result. `seconds` counts the time of all processes that worked on the run."""

    def __init__(self, logger: Logger, run: Started, append: Callable[[Mapping[str, Any]], None]) -> None:
        self.logger, self.run, self.append = logger, run, append
        rounds = folder.read_rounds(run.path)
        self.started = time.monotonic() - (float(rounds[-1]["seconds"]) if rounds else 0.0)

    def round(self, entry: Mapping[str, Any]) -> None:
        """Log a round; it is on disk when this returns."""
        entry = {**entry, "seconds": round(time.monotonic() - self.started, 3)}
        self.append(entry)
        self.send("round", entry)

    def send(self, method: str, value: Any) -> None:
        """Call the logger. If it fails, the run continues without it: hours of work are worth more than a chart."""
        try:
            getattr(self.logger, method)(value)
        except Exception as error:  # a server may be away, a user's own code may raise anything
            self.logger = Logger()
            reason = " ".join(str(error).split()) or type(error).__name__
            warnings.warn(
                f"log {self.run.settings['log']} has failed ({reason}) and receives nothing more; the run continues",
                UserWarning,
                stacklevel=2,
            )


@contextmanager
def run_log(logger: Logger, run: Started) -> Iterator[RunLog]:
    """Start a run's logger, and end it in any case. A logger that cannot start leaves no new run behind."""
    with folder.round_log(run.path) as append:
        try:
            identity = logger.start(run)
        except Exception as error:
            if run.first == 1 and run.id is None:
                folder.clear(run.path)
                (run.path / folder.CONFIG).unlink(missing_ok=True)
            reason = " ".join(str(error).split()) or type(error).__name__
            raise InputError(f"log {run.settings['log']} cannot start ({reason}); use --log none") from error
        if identity is not None:
            folder.write_logger_id(run.path, identity)
            _diagnostics.info("%s: the run is called %s there", run.settings["log"], identity)
        log = RunLog(logger, run, append)
        try:
            yield log
        except BaseException as error:
            log.send("end", "failed" if isinstance(error, Exception) else "stopped")
            raise
        log.send("end", "finished")
