"""Commands leave the same bits as version 0.1.0 did; `benchmarks/unchanged.py` compares all of them."""

import json
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = runpy.run_path(str(ROOT / "benchmarks" / "unchanged.py"))
RECORDED = json.loads((ROOT / "tests" / "fixtures" / "unchanged.json").read_text())  # written by 0.1.0
QUICK = ["cost-aware", "choice", "training"]


@pytest.mark.parametrize("name", QUICK)
def test_alpha_architecture_and_weights_have_the_bits_of_0_1_0(name, tmp_path):
    here = SCRIPT["machine"]()
    if here != RECORDED["machine"]:
        pytest.skip(f"recorded with {' and '.join(RECORDED['machine'])}, this is {' and '.join(here)}")
    assert SCRIPT["run"](name, ROOT, tmp_path / "run") == RECORDED["runs"][name]


def test_every_command_is_recorded():
    assert list(RECORDED["runs"]) == list(SCRIPT["COMMANDS"])
    assert all({"architecture", "weights"} <= set(run) for run in RECORDED["runs"].values())
    assert sum("alpha" in run for run in RECORDED["runs"].values()) == len(RECORDED["runs"]) - 1  # all but the training
