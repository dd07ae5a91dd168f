"""Damaged files of every kind: a success or one line, quickly, and in little memory.

`IDARTS_TORTURE=6000` tries 45,600 of them; `make test` tries 608.
"""

import os
import resource
import time

import pytest
from fuzz import TARGETS, Fuzz

TRIES = max(1, int(os.environ.get("IDARTS_TORTURE", "80")) // 10)  # for each target, times its weight
SLOWEST = 10.0  # seconds of CPU time; the usual try takes milliseconds
MEMORY = 1 << 30


@pytest.mark.timeout(300 + 10 * TRIES)
@pytest.mark.parametrize("name", TARGETS)
def test_damaged_files_are_a_success_or_one_line(name, tmp_path):
    fuzz = Fuzz(name, tmp_path / "files")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    problems = []
    for seed in range(TRIES * fuzz.target.weight):
        started = time.process_time()
        problem = fuzz.problem(seed)
        problems += [problem] if problem else []
        assert time.process_time() - started < SLOWEST, f"seed {seed}"
    assert problems == []
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 < MEMORY
