"""TensorBoard: event files in the run folder, with the numbers of every round as scalars."""

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from idarts.engine.folder import EVENTS
from idarts.engine.loggers import LOGGERS, Logger, Outcome, Started, facts, numbers, package


@LOGGERS.register("tensorboard")
class TensorBoard(Logger):
    """Scalars by the number of the round; settings and result as texts.

    Readers forget the rounds from `first` on of earlier event files, so a run that resumes has every step once.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     logger = TensorBoard()
    ...     logger.start(Started(Path(folder), "train", {"seed": 1}))
    ...     logger.round({"number": 1, "valid_loss": 2.4})
    ...     logger.end("finished")
    ...     b"loss/valid" in next(Path(folder).iterdir()).read_bytes()
    True
    """

    def __init__(self) -> None:
        self.summary_writer = package("torch.utils.tensorboard", "tensorboard").SummaryWriter

    def start(self, run: Started) -> None:
        """Open an event file."""
        _wait_for_later_name(run.path)
        self.writer = self.summary_writer(str(run.path), purge_step=run.first, filename_suffix=EVENTS)
        if run.first == 1:
            self.writer.add_text("settings", _shown(run.settings), 0)

    def round(self, entry: Mapping[str, Any]) -> None:
        """Write the scalars."""
        for tag, value in numbers(entry).items():
            self.writer.add_scalar(tag, value, entry["number"])
        self.writer.flush()  # a kill must not lose rounds before a checkpoint

    def result(self, result: Mapping[str, Any]) -> None:
        """Write the facts of the result."""
        self.writer.add_text("result", _shown(facts(result)), result.get("metrics", {}).get("number", 0))

    def end(self, outcome: Outcome) -> None:
        """Close the event file."""
        self.writer.close()


def _wait_for_later_name(folder: Path) -> None:
    """Readers go by the names of event files, which begin with whole seconds: a resume must not have an older one."""
    names = (path.name.split(".") for path in folder.glob(f"events.out.tfevents.*{EVENTS}"))
    newest = max((int(parts[3]) for parts in names if parts[3].isdecimal()), default=0)
    time.sleep(max(0.0, min(newest + 1 - time.time(), 1.0)))


def _shown(data: Mapping[str, Any]) -> str:
    """JSON as Markdown shows it: indented lines are code."""
    return "".join(f"    {line}\n" for line in json.dumps(data, indent=2, ensure_ascii=False).splitlines())
