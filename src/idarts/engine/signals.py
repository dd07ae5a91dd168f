"""Signals: a run that is asked to stop, or warned that it will be stopped, writes a checkpoint first."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

STOP = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)  # SIGHUP: the terminal or the connection is gone
SAVE = signal.SIGUSR1  # Slurm's warning, with `--signal=USR1@120`


@dataclass
class Requests:
    """What signals have asked for since the last round."""

    stop: bool = False
    save: bool = False
    after_saving: list[Callable[[], Any]] = field(default_factory=list)

    def saved(self) -> None:
        """To be called after a checkpoint: now an earlier handler acts, such as submitit's, which requeues the job."""
        waiting, self.after_saving, self.save = self.after_saving, [], False
        for act in waiting:
            act()


@contextmanager
def listening(say: Callable[[str], None]) -> Iterator[Requests]:
    """Let signals ask for a stop or a checkpoint after the round. A second signal to stop acts at once, as usual.

    A signal that is ignored stays ignored, as `nohup` wants it.
    """
    requests = Requests()
    before: dict[int, Any] = {}

    def stop(number: int, _frame: FrameType | None) -> None:
        requests.stop = True
        signal.signal(number, before[number] or signal.SIG_DFL)
        say("stopping after this round; the same signal again stops at once")

    def save(number: int, _frame: FrameType | None) -> None:
        requests.save = True
        earlier = before[number]
        if callable(earlier):
            requests.after_saving.append(lambda: earlier(number, None))
        say("writing a checkpoint after this round")

    try:
        for wanted in (*STOP, SAVE):
            if signal.getsignal(wanted) is not signal.SIG_IGN:
                before[int(wanted)] = signal.signal(wanted, save if wanted is SAVE else stop)
    except ValueError:  # only the main thread can handle signals
        pass
    try:
        yield requests
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
