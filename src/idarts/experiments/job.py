"""The one function that every engine runs: a search in its folder, begun, gone on with, or found to be finished."""

import fcntl
import time
import traceback
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import torch

from idarts.arch.forms import RESULT
from idarts.engine.settings import change
from idarts.errors import InputError
from idarts.searching.run import RunConfig, run

PATIENCE = 60.0  # seconds for a run whose sweep was killed to notice that, write a checkpoint and leave its folder

Task = dict[str, Any]  # plain data: `settings` of the search, its `folder`, the file `log`, the number of `threads`


class Outcome(NamedTuple):
    """How a try ended: well where there is no `failure`; `again` says whether another one may do better."""

    failure: str | None = None
    again: bool = True


def work(task: Task) -> Outcome:
    """Search as a task says; all that is printed, and the traceback of a failure, goes to its log."""
    folder, log = Path(task["folder"]), Path(task["log"])
    if (folder / RESULT).exists():
        return Outcome()
    torch.set_num_threads(task["threads"])
    with log.open("a") as told, redirect_stdout(told), redirect_stderr(told):
        try:
            _wait_for(folder)
            run(change(RunConfig(), task["settings"]), folder, resume=(folder / "config.json").exists())
        except KeyboardInterrupt:
            return Outcome("it was asked to stop")
        except Exception as error:
            traceback.print_exc()
            said = " ".join(str(error).split()) or type(error).__name__
            return Outcome(said, again=not isinstance(error, InputError))
    return Outcome()


def _wait_for(folder: Path) -> None:
    """Until nobody works in a folder; what a kill left half-written is taken away, for it would not pass for a run."""
    if not folder.is_dir():
        return
    deadline = time.monotonic() + PATIENCE
    with (folder / ".lock").open("a") as lock:
        while time.monotonic() < deadline:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                time.sleep(0.2)
                continue
            for left in folder.glob(".*.json.*"):
                left.unlink(missing_ok=True)
            return
