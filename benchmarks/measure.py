"""Time and memory that can be compared: interleaved rounds in one process, and the allocator's own events."""

import gc
import time
from collections.abc import Callable, Mapping
from itertools import accumulate
from typing import Any

from torch.profiler import ProfilerActivity, profile

Run = Callable[[], Any]


def fastest(
    runs: Mapping[str, Run],
    rounds: int,
    progress: Callable[[str], None],
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, float]:
    """Seconds of each run: the least of several rounds over all of them, as a shared machine only ever adds time."""
    seconds = dict.fromkeys(runs, float("inf"))
    for number in range(rounds):
        progress(f"round {number + 1} of {rounds}")
        for name, run in runs.items():
            gc.collect()
            start = clock()
            run()
            seconds[name] = min(seconds[name], clock() - start)
    return seconds


def peak_bytes(run: Run) -> int:
    """The most that tensors held at once above what they held at entry.

    Torch counts no peak on the CPU. Its profiler reports every allocation and release, also those inside the autograd
    engine and in the convolution library's scratch buffers, which a dispatch mode would not see.
    """
    gc.collect()
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True, acc_events=True) as profiler:
        run()
    results: Any = profiler.profiler.kineto_results
    events = [event for event in results.events() if event.name() == "[memory]"]
    events.sort(key=lambda event: event.start_ns())
    held: list[int] = list(accumulate((event.nbytes() for event in events), initial=0))
    return max(held)
