"""The one function that every engine runs: a search in its folder, begun, gone on with, or found to be finished."""

import traceback
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import torch

from idarts.engine.folder import CONFIG, is_finished
from idarts.engine.lock import wait_until_free
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
    if is_finished(folder):
        return Outcome()
    torch.set_num_threads(task["threads"])
    with log.open("a") as told, redirect_stdout(told), redirect_stderr(told):
        try:
            wait_until_free(folder, PATIENCE)
            run(change(RunConfig(), task["settings"]), folder, resume=(folder / CONFIG).exists())
        except KeyboardInterrupt:
            return Outcome("it was asked to stop")
        except Exception as error:
            traceback.print_exc()
            said = " ".join(str(error).split()) or type(error).__name__
            return Outcome(said, again=not isinstance(error, InputError))
    return Outcome()
