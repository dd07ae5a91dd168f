"""Commands leave the bits that were recorded; `benchmarks/unchanged.py` compares all of them.

Version 0.1.0 left the same bits up to commit 845dfa4. The record was made again where a change rounds otherwise: layers
with few values use torch's own kernels, depthwise weight gradients are computed in parts, small depthwise chains run as
one, γ is a Python number, and the gradient of α sums pixels in another order.
"""

import json
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = runpy.run_path(str(ROOT / "benchmarks" / "unchanged.py"))
RECORDED = json.loads((ROOT / "tests" / "fixtures" / "unchanged.json").read_text())
QUICK = ["cost-aware", "choice", "training"]


@pytest.mark.parametrize("name", QUICK)
def test_alpha_architecture_and_weights_have_the_recorded_bits(name, tmp_path):
    here = SCRIPT["machine"]()
    if here != RECORDED["machine"]:
        pytest.skip(f"recorded with {' and '.join(RECORDED['machine'])}, this is {' and '.join(here)}")
    assert SCRIPT["run"](name, ROOT, tmp_path / "run") == RECORDED["runs"][name]


def test_every_command_is_recorded():
    assert list(RECORDED["runs"]) == list(SCRIPT["COMMANDS"])
    assert all({"architecture", "weights"} <= set(run) for run in RECORDED["runs"].values())
    assert sum("alpha" in run for run in RECORDED["runs"].values()) == len(RECORDED["runs"]) - 1  # all but the training
