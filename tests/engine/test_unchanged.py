"""Commands leave the same bits as version 0.1.0 did; `benchmarks/unchanged.py` compares all of them."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).parents[2]
RECORDED = json.loads((ROOT / "tests" / "fixtures" / "unchanged.json").read_text())  # written by 0.1.0
QUICK = ["cost-aware", "choice", "training"]


def test_alpha_architecture_and_weights_have_the_bits_of_0_1_0():
    here = [torch.__version__, torch.backends.cpu.get_cpu_capability()]
    if here != RECORDED["machine"]:
        pytest.skip(f"recorded with {' and '.join(RECORDED['machine'])}, this is {' and '.join(here)}")
    command = [sys.executable, str(ROOT / "benchmarks" / "unchanged.py"), "--only", *QUICK]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["runs"] == {name: RECORDED["runs"][name] for name in QUICK}


def test_eight_commands_and_more_are_recorded():
    assert len(RECORDED["runs"]) >= 8
    assert all({"architecture", "weights"} <= set(run) for run in RECORDED["runs"].values())
    assert sum("alpha" in run for run in RECORDED["runs"].values()) == len(RECORDED["runs"]) - 1  # all but the training
