"""
Many devices and many runs
==========================

There are two ways to use more hardware: one run on many devices, or many runs at a
time.

**One run on many devices.** ``torchrun`` starts one process for each device, and
everything else stays the same::

    torchrun --nproc-per-node 8 -m idarts search --data cifar10 --batch 512

``batch`` is the whole batch; each process takes its share. :doc:`/distributed` says
what is averaged, and what it costs.

**Many runs at a time.** A sweep takes an engine: processes on this machine, Ray, or
Slurm::

    idarts sweep grid.yaml --engine local --jobs 4
    idarts sweep grid.yaml --engine slurm --gpus 1 --slurm '{"timeout_min": 600}'
"""

# %%
# A small sweep: two values of a setting and two seeds are four searches.
import subprocess
import sys
import tempfile
from pathlib import Path

folder = Path(tempfile.mkdtemp())
grid = """
preset: smoke
methods: [darts-first-order]
seeds: 2
settings: {rounds: 3, weights.warmup: 0, selection.rule: argmax}
grid: {alpha.rate: [0.003, 0.03]}
"""
(folder / "grid.yaml").write_text(grid)


def idarts(*words):
    """The same as typing it in a terminal."""
    done = subprocess.run(
        [sys.executable, "-m", "idarts", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    print(done.stdout + done.stderr)


idarts("sweep", "grid.yaml", "--out", "grid", "--jobs", "2", "--threads", "1")

# %%
# A job that dies is tried again from its checkpoint. If you stop a sweep, the same
# command continues it: what is done is not run again.
idarts("sweep", "grid.yaml", "--out", "grid", "--jobs", "2", "--threads", "1")
