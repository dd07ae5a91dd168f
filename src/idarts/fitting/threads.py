"""One thread or all: whichever is faster now.

On a busy machine the threads of a process wait for each other, which can take thirty times as long as one thread. The
measurement before the plan sees the machine as it is then; a fit takes minutes, in which other programs start and end.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

import torch

FASTER = 0.9  # of the time: a smaller gain is noise
SLOWER = 2.0  # times the lap before: the machine has become busy, so the other number is tried at once
VALUES, REPEATS = 2**19, 50  # of the operation that shows whether cores are free: a tenth of a second in all
PAUSE = 8  # laps until the other number is tried again; doubled each time that it is slower


def share_work(threads: int) -> bool:
    """Whether so many threads finish an operation sooner than one does: other programs leave the cores to them.

    The load average would also count programs that have just ended, such as the fit before this one.

    >>> share_work(1)
    False
    """
    before = torch.get_num_threads()
    try:
        return _seconds(threads) < FASTER * _seconds(1)
    finally:
        torch.set_num_threads(before)


@dataclass
class Threads:
    """Chooses between one thread and `most` by the time of a step, lap by lap, and tries the other now and then.

    All threads are tried only where a small operation shows that they share the work: on a busy machine a lap with
    them can take thirty times as long.

    >>> used = []
    >>> threads = Threads(most=4, count=4, use=used.append)
    >>> for seconds in (20.0, 1.0, 1.1):  # with four threads, then with one
    ...     threads.note(seconds)
    >>> used, threads.count
    ([1], 1)
    """

    most: int
    count: int  # that is used
    use: Callable[[int], None] = torch.set_num_threads
    free: Callable[[int], bool] = share_work

    def __post_init__(self) -> None:
        self.last = 0.0  # seconds of a step with `count` threads, in the last lap
        self.left, self.pause = 1, PAUSE  # laps until a try; after the next one that fails
        self.trying = False

    def note(self, seconds: float) -> None:
        """Take note of the time of a step in the lap that ended, and choose the threads of the next lap."""
        if self.most == 1:
            return
        other = 1 if self.count == self.most else self.most
        if self.trying:
            self._judge(other, seconds)
            return
        sudden = 0 < SLOWER * self.last < seconds
        self.last, self.left = seconds, 0 if sudden else self.left - 1
        if self.left:
            return
        if other == 1 or self.free(other):
            self.trying = True
            self.use(other)
        else:
            self._rest()

    def _judge(self, other: int, seconds: float) -> None:
        """Keep the number that was tried if it is faster; else go back."""
        self.trying = False
        if seconds < FASTER * self.last:
            self.count, self.pause = other, PAUSE
        else:
            self.use(self.count)
        self._rest()

    def _rest(self) -> None:
        self.left, self.pause = self.pause, 2 * self.pause


def _seconds(threads: int) -> float:
    """The time of a small operation, many times over: on a busy machine the threads wait for each other in each."""
    torch.set_num_threads(threads)
    values = torch.ones(VALUES)
    torch.exp(values)  # starts the threads
    started = time.perf_counter()
    for _ in range(REPEATS):
        torch.exp(values)
    return time.perf_counter() - started
