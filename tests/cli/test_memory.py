"""What a command's tensors free stays with the process."""

import os
import platform
import subprocess
import sys

import pytest

# Allocate and free 40 blocks of 1 MB ten times: page faults in the last nine of them.
LOOP = """
import resource, torch
from idarts.cli.memory import keep_freed_memory
keep_freed_memory()
for turn in range(10):
    before = before if turn > 1 else resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    blocks = [torch.ones(2**18) for _ in range(40)]
    del blocks
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""
PAGES = 9 * 40 * 256  # of 4 kB, in nine turns


def page_faults(**environment):
    environment = {name: value for name, value in os.environ.items() if "MALLOC_" not in name} | environment
    run = subprocess.run([sys.executable, "-c", LOOP], env=environment, capture_output=True, text=True, check=True)
    return int(run.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc's allocator has these settings")
def test_freed_memory_is_used_again_unless_the_user_decides_otherwise():
    assert page_faults() < PAGES / 20
    assert page_faults(MALLOC_TRIM_THRESHOLD_="131072") > PAGES / 2
