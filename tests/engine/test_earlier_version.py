"""Run folders of idarts 0.1.0 are read, reported and loaded, and stopped runs resume bit for bit."""

import json
import shutil
from pathlib import Path

import pytest
import torch
import yaml

from idarts.cli import main
from idarts.data import load as load_data
from idarts.engine import checkpoint
from idarts.engine.folder import read_result, read_rounds, read_run
from idarts.pages import write_report
from idarts.training import evaluate, load

FIXTURES = Path(__file__).parents[1] / "fixtures" / "v0_1_0"
FINISHED = [*(path.parent.relative_to(FIXTURES) for path in sorted(FIXTURES.rglob("result.json")))]
# Elsewhere sums may be taken in another order.
SAME_MACHINE = (torch.__version__, torch.backends.cpu.get_cpu_capability()) == ("2.13.0+cpu", "AVX2")


@pytest.fixture
def copy(tmp_path):
    """A copy of a fixture, which may be changed."""
    return lambda name: Path(shutil.copytree(FIXTURES / name, tmp_path / name))


def same(actual, expected, where=""):
    """Trees of tensors, numbers and texts are equal; floats bit for bit, if this is the machine that wrote them."""
    if isinstance(expected, dict):
        assert set(actual) == set(expected), where
        for key in expected:
            same(actual[key], expected[key], f"{where}.{key}")
    elif isinstance(expected, list | tuple):
        assert len(actual) == len(expected), where
        for place, parts in enumerate(zip(actual, expected, strict=True)):
            same(*parts, f"{where}.{place}")
    elif isinstance(expected, torch.Tensor):
        tolerance = {"rtol": 0, "atol": 0} if SAME_MACHINE else {"rtol": 1e-4, "atol": 1e-5}
        torch.testing.assert_close(actual, expected, **tolerance, equal_nan=True, msg=where)
    elif isinstance(expected, float) and not SAME_MACHINE:
        assert actual == pytest.approx(expected, rel=1e-3), where
    else:
        assert actual == expected, where


def without(entry, *keys):
    return {key: value for key, value in entry.items() if key not in keys}


def log(path):
    """The rounds without their time, what depends on tables that are not here, and what 0.1.0 did not know."""
    return [without(entry, "seconds", "table_accuracy", "stage", "valid_images") for entry in read_rounds(path)]


@pytest.mark.parametrize("name", FINISHED, ids=str)
def test_finished_runs_are_read_and_reported(name, tmp_path):
    run = read_run(FIXTURES / name)
    assert run.result["versions"]["idarts"] == "0.1.0"
    assert run.trains == name.name.startswith("train")
    assert run.rounds[-1]["number"] == len(run.rounds)
    assert run.architecture().space == "nas-bench-201"
    page = write_report(FIXTURES / name, tmp_path / "report.html").read_text()
    assert run.result["config"]["data"] in page


@pytest.mark.parametrize(
    ("command", "typed"),
    [
        ("search", ["--preset", "smoke", "--method", "enas"]),
        ("train", ["DARTS_V2", "--data", "digits", "--preset", "cpu"]),
    ],
)
def test_printed_settings_are_read(command, typed, capsys):
    printed = []
    for arguments in (typed, ["--config", str(FIXTURES / f"{command}-settings.yaml")]):
        assert main([command, *arguments, "--print-config"]) == 0
        text = capsys.readouterr().out.replace("image: null", "image: own")  # 0.1.0's name for it
        printed.append(yaml.safe_load(text))
        printed[-1].pop("evaluator", None)  # newer than these files: smoke shortens its trials
        printed[-1].pop("depth")  # 1 is what `auto` stands for there
    assert printed[0] == printed[1]


def test_a_folder_in_a_file_of_settings_is_refused(tmp_path, capsys):
    (tmp_path / "settings.yaml").write_text("out: elsewhere\nresume: false\n")
    assert main(["search", "--config", str(tmp_path / "settings.yaml"), "--print-config"]) == 2
    assert "out is not read from a file; remove it, and type --out" in capsys.readouterr().err


def test_a_stopped_training_resumes_to_the_same_bits(copy):
    stopped, finished = copy("train-stopped"), FIXTURES / "train-finished"
    assert main(["train", "--resume", "--out", str(stopped)]) == 0
    same(log(stopped), log(finished))
    last = [checkpoint.latest(path / "checkpoints", "train") for path in (stopped, finished)]
    same(*last)
    assert last[0][0] == 3
    same(*(load(path).state_dict() for path in (stopped, finished)))
    changing = ("config", "seconds", "versions", "metrics", "rounds")
    results = [without(read_result(path), *changing) for path in (stopped, finished)]
    low, high = results[0]["test"].pop("interval")  # 0.1.0 wrote none
    assert low < results[0]["accuracy"] < high
    same(*results)


def test_a_trained_network_is_loaded_and_evaluated():
    result = read_result(FIXTURES / "train-finished")
    found = evaluate(load(FIXTURES / "train-finished"), load_data("digits"))
    assert found["accuracy"] == result["accuracy"]
    assert found["loss"] == pytest.approx(result["test"]["loss"], rel=1e-6)


SEARCHED = ("architecture", "argmax", "alpha", "trials", "gradient_evaluations", "space", "method", "seed")


def test_a_stopped_search_resumes_to_the_same_bits(copy):
    stopped = copy("search-stopped")
    expected = json.loads((FIXTURES / "search-stopped-expected.json").read_text())
    assert checkpoint.latest(stopped / "checkpoints")[0] == 4
    before = log(stopped)
    assert main(["search", "--resume", "--out", str(stopped)]) == 0
    same(log(stopped), before)
    result = read_result(stopped)
    same({key: result[key] for key in SEARCHED}, {key: expected[key] for key in SEARCHED})


def test_the_controller_of_a_search_is_resumed(copy):
    """From the checkpoint of the last round: the selection draws its paths."""
    run = copy("search-enas")
    expected = read_result(run)
    (run / "result.json").unlink()
    assert main(["search", "--resume", "--out", str(run)]) == 0
    same({key: read_result(run)[key] for key in SEARCHED}, {key: expected[key] for key in SEARCHED})
