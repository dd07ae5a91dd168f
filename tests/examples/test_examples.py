"""The examples run as they stand, and what they claim is true."""

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(name):
    return runpy.run_path(str(EXAMPLES / name))["main"]()


def test_learnt_decays_beat_the_start_and_the_grid(capsys):
    rows = run("hyperparameters.py")
    for model in ("logistic regression", "network"):
        grid, start, learnt = (row[2] for row in rows if row[0] == model)
        assert learnt < grid < start, model
    assert "learnt ones" in capsys.readouterr().out


def test_wrong_labels_are_found(capsys):
    assert run("data_cleaning.py") > 0.9
    assert "area under ROC" in capsys.readouterr().out


def test_a_learnt_representation_beats_pixels_in_new_tasks(capsys):
    results = run("few_shot.py")
    assert results["learnt representation"] > results["pixels"] + 4
    assert "learnt representation" in capsys.readouterr().out


def test_learnt_decays_of_a_transformer_repair_a_bad_start(capsys):
    none, start, best, learnt = (row[1:] for row in run("layer_decay.py"))
    for part in (0, 1):  # validation and test
        assert learnt[part] < start[part] - 0.4 < none[part]
        assert learnt[part] < best[part] + 0.15
    assert "test loss" in capsys.readouterr().out


def test_a_search_from_data_to_a_trained_network(tmp_path, capsys):
    accuracies = runpy.run_path(str(EXAMPLES / "search_digits.py"))["main"](tmp_path / "run")
    assert accuracies["found"] > 0.97
    assert "found cell: |" in capsys.readouterr().out


@pytest.mark.filterwarnings("ignore::idarts.errors.DivergenceWarning")
def test_the_demonstration_orders_the_methods(capsys):
    estimates = run("hypergradients.py")
    exact = estimates["exact (dense)"].grads[0]
    error = {name: ((e.grads[0] - exact).norm() / exact.norm()).item() for name, e in estimates.items()}
    assert error["exact (dense)"] == 0
    assert error["conjugate gradient, 20"] < 0.1
    assert error["Neumann K=2000, γ auto"] < error["Neumann K=100, γ auto"] < error["Neumann K=2, γ auto"]
    assert error["first order"] == pytest.approx(1)  # λ stands in no validation loss
    assert "Neumann K=2" in capsys.readouterr().out
