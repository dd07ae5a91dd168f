"""The checkpoints of a job: when they are written, which one a resumed run loads, and which one an error names."""

import logging
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from idarts.engine import checkpoint, folder
from idarts.engine.ranks import any_of, on_first, world
from idarts.engine.signals import Requests
from idarts.errors import IdartsError, InputError, NotFiniteError, WriteError

_diagnostics = logging.getLogger("idarts.engine.run")
_MEMORY = re.compile(r"can't allocate memory|out of memory|DefaultCPUAllocator|bad_alloc", re.IGNORECASE)


class State(Protocol):
    """Work whose state can be saved."""

    @property
    def number(self) -> int: ...

    @property
    def healthy(self) -> bool: ...

    def state_dict(self) -> dict[str, Any]: ...

    def load_state_dict(self, state: dict[str, Any]) -> None: ...


class Interrupted(KeyboardInterrupt):
    """A signal stopped the run, after it wrote a checkpoint. The argument is the number of the last round."""


@dataclass
class Saving:
    """Writes the checkpoints of a job: every so many rounds, after so many minutes, and when a signal asks for one."""

    work: State
    kind: str
    path: Path
    rounds: int
    minutes: float
    requests: Requests
    last: float = field(default_factory=time.monotonic)

    def after_round(self) -> None:
        """To be called after every round, on all ranks; it raises `Interrupted` if a signal asked for a stop."""
        self._save_if_due(self.work.number % self.rounds == 0)

    def between_rounds(self) -> None:
        """To be called now and then in a long phase that is not a round, such as the warm-up."""
        self._save_if_due(False)

    def _save_if_due(self, due: bool) -> None:
        late = time.monotonic() - self.last >= 60 * self.minutes
        stopping, wanted = any_of(self.requests.stop, late or self.requests.save)
        if stopping or wanted or due:
            self.save()
        if stopping:
            raise Interrupted(self.work.number)

    def save(self) -> None:
        """Write the state of the first rank, which all ranks share, with the number of ranks, if it is a good one."""
        if not self.work.healthy:
            return
        number, state = self.work.number, {**self.work.state_dict(), "ranks": world()}

        def write() -> None:
            folder.sync_log(self.path)
            try:
                checkpoint.save(self.path / folder.CHECKPOINTS, number, state, self.kind)
                _diagnostics.info("checkpoint of round %d written to %s", number, self.path)
            except OSError as error:
                what = f"the checkpoint of round {number} could not be written to {self.path} ({error.strerror})"
                raise WriteError(what) from error

        on_first(write)
        self.last = time.monotonic()
        self.requests.saved()


def load_newest(work: State, kind: str, path: Path) -> tuple[int, list[str]]:
    """Load the newest checkpoint that can be used; its round, 0 if there is none, and what is wrong with newer ones."""
    problems: list[str] = []
    for file in on_first(lambda: list(checkpoint.newest_first(path / folder.CHECKPOINTS))):
        number, state, problem = on_first(lambda file=file: _read(file, kind))  # type: ignore[misc] # a bound default
        ranks = world() if state is None else state.pop("ranks", 1)
        if state is not None:
            try:
                work.load_state_dict(state)
            except Exception as error:  # a state that was damaged before it was written can raise anything
                reason = str(error) if isinstance(error, InputError) else type(error).__name__
                problem = f"the checkpoint {file} cannot be used ({reason})"
        if not any(any_of(problem is not None)):
            if ranks != world():
                now = f"now {world()}; results are close, but not bit for bit the same"
                problems.append(f"until round {number} there were {ranks} ranks, {now}")
            return number, problems
        problems.append(problem or f"the checkpoint {file} cannot be used on another rank")
    if problems:
        raise InputError(f"no checkpoint in {path / folder.CHECKPOINTS} can be used: {problems[0]}")
    return 0, []


def _read(file: Path, kind: str) -> tuple[int, dict[str, Any] | None, str | None]:
    try:
        return *checkpoint.load(file, kind), None
    except InputError as error:
        return 0, None, str(error)


@contextmanager
def naming_checkpoint(kind: str, path: Path) -> Iterator[None]:
    """Name the newest whole checkpoint when a run fails by numbers that are not finite, a full disk or memory."""
    try:
        yield
    except NotFiniteError as error:
        raise NotFiniteError(f"{error}; {_newest(kind, path, 'good')[0]}, in {path}") from error
    except WriteError as error:
        newest, again = _newest(kind, path, "whole")
        raise IdartsError(f"{error}; {newest}: free some space or remove the cause, then {again}") from error
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, IdartsError) or not (isinstance(error, MemoryError) or _MEMORY.search(str(error))):
            raise
        newest, again = _newest(kind, path, "whole")
        raise IdartsError(f"there is not enough memory; {newest}: end other programs, then {again}") from error


def _newest(kind: str, path: Path, word: str) -> tuple[str, str]:
    """Which checkpoint can be loaded (each is compared with its digest), and how to continue."""
    try:
        known = checkpoint.latest(path / folder.CHECKPOINTS, kind)
    except InputError as error:
        return str(error), "start again with --overwrite (overwrite=True in Python)"
    if known is None:
        again = "continue with --resume (resume=True in Python)" if folder.is_run(path) else "start again"
        return "there is no checkpoint yet", again
    return f"the last {word} checkpoint is that of round {known[0]}", "continue with --resume (resume=True in Python)"
