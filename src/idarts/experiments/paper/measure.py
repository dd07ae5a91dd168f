"""The quality and the cost of a hypergradient, measured: direction, error, products, time, memory."""

import os
import time
from collections.abc import Callable
from itertools import accumulate
from typing import Any

import torch
from torch import Tensor
from torch.profiler import ProfilerActivity, profile

from idarts.experiments.store import Row
from idarts.hypergrad import Estimate


def quality(estimate: Estimate, exact: Tensor, steps: int = 0) -> Row:
    """Cosine and relative error against the exact hypergradient, and its cost with the `steps` gradients before it."""
    grads = torch.cat([part.flatten() for part in estimate.grads])
    return {
        "cosine": float(torch.nn.functional.cosine_similarity(grads, exact, dim=0)),
        "error": float((grads - exact).norm() / exact.norm()),
        "hvps": estimate.diagnostics.hvps,
        "gradient_evaluations": round(steps + estimate.diagnostics.gradient_evaluations, 2),
    }


def cost(call: Callable[[], object], repeats: int = 3) -> Row:
    """Milliseconds (the least of some repeats) and the peak kilobytes of tensors above those at the start."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return {"milliseconds": round(1e3 * min(times), 3), "kilobytes": round(peak_bytes(call) / 1024, 1)}


def peak_bytes(call: Callable[[], object]) -> int:
    """The peak of tensor memory during a call, above the memory before it; on a CPU, from the profiler's events.

    >>> peak_bytes(lambda: torch.zeros(1000, dtype=torch.float64) + 1) >= 16000
    True
    """
    os.environ.setdefault("KINETO_LOG_LEVEL", "9")  # or the profiler logs its start and stop to stderr
    if torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        call()
        if torch.cuda.max_memory_allocated() > before:
            return torch.cuda.max_memory_allocated() - before
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        call()
    results: Any = profiler.profiler.kineto_results
    changes: list[tuple[int, int]] = [
        (event.start_ns(), event.nbytes()) for event in results.events() if event.name() == "[memory]"
    ]
    return max(accumulate((size for _, size in sorted(changes)), initial=0))
