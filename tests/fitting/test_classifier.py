"""`ImageClassifier`: scikit-learn's own checks, images of any layout, and a whole fit behind `fit`."""

import json
import os
import pickle
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch

import idarts

pytest.importorskip("sklearn", minversion="1.6", reason="needs idarts[cli]")
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.model_selection import cross_val_score
from sklearn.utils.estimator_checks import estimator_checks_generator

from idarts.fitting.classifier import ImageClassifier
from idarts.training import probabilities

CELL = "nas-bench-201:1462"
TINY = {"epochs": 1, "depth": 1, "channels": 2, "batch": 32, "log_steps": 1000}
SMALL = {**TINY, "epochs": 6, "channels": 8, "weights": {"rate": 0.1}}
LEARNING = ("check_classifiers_train", "check_classifiers_classes")  # they want a high accuracy


def tiny(**changes):
    return ImageClassifier(architecture=CELL, settings=TINY | changes)


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:800], y[:800]


def long(check):
    """The longest check once more, with float32 or read-only data: only with IDARTS_TORTURE set."""
    return check.func.__name__ == LEARNING[0] and bool(check.keywords)


# No check is expected to fail: rows of numbers, which the checks use, are images, too.
CHECKS = [check for _, check in estimator_checks_generator(tiny())]
SHORT = [check for check in CHECKS if "IDARTS_TORTURE" in os.environ or not long(check)]


@pytest.mark.parametrize("check", SHORT, ids=lambda check: f"{check.func.__name__}{len(check.keywords) or ''}")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@pytest.mark.filterwarnings("ignore:equal images in different classes")  # few values, and random labels
def test_scikit_learns_own_checks(check, monkeypatch):
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")  # or scikit-learn skips its check of array libraries
    check(tiny(**SMALL) if check.func.__name__ in LEARNING else tiny())


def test_the_checks_are_those_that_scikit_learn_has():
    names = {check.func.__name__ for check in CHECKS}
    assert len(CHECKS) > 45
    assert {"check_estimators_pickle", "check_fit_idempotent", "check_classifiers_train"} <= names


def test_all_layouts_are_the_same_images(digits):
    X, y = digits[0][:100], digits[1][:100]
    images = X.reshape(-1, 8, 8)
    expected = tiny().fit(X, y).predict_proba(X)
    for layout in (images, images[..., None], images[:, None]):
        model = tiny().fit(layout, y)
        assert np.array_equal(model.predict_proba(layout), expected)
        assert np.array_equal(model.predict_proba(X), expected)  # rows, too
        assert model.n_features_in_ == 64
    colours = np.stack([images] * 3, axis=-1)
    model = tiny().fit(colours, y)
    assert model.network_.card.in_channels == 3
    with pytest.raises(ValueError, match=r"X has images of shape \(3, 8, 8\), but fit had \(8, 8, 3\)"):
        model.predict(colours.transpose(0, 3, 1, 2))


def test_numbers_become_pixels_without_loss(digits):
    X, y = digits[0][:100], digits[1][:100]
    expected = tiny().fit(X, y).network_.card.mean
    assert tiny().fit(X.astype(np.uint8), y).network_.card.mean == expected == pytest.approx((X.mean() / 255,))
    assert tiny().fit(X / 16, y).network_.card.mean == pytest.approx((X.mean() / 16,), abs=0.002)
    shifted = tiny().fit(X / 16 - 0.5, y)
    assert shifted.range_ == (-0.5, 0.5)
    assert shifted.network_.card.mean == pytest.approx((X.mean() / 16,), abs=0.002)


def test_it_learns_names_of_classes_and_keeps_its_folder(digits, tmp_path):
    X, y = digits
    names = np.array(["even", "odd"])[y % 2]
    model = tiny(**SMALL).set_params(out=tmp_path / "run").fit(X[:600], names[:600])
    assert list(model.classes_) == ["even", "odd"]
    assert model.score(X[600:], names[600:]) > 0.75
    assert model.predict_proba(X).sum(1) == pytest.approx(np.ones(len(X)))
    pixels = torch.tensor(X.reshape(-1, 1, 8, 8), dtype=torch.uint8)  # the folder's network takes the same pixels
    assert np.array_equal(probabilities(idarts.load(tmp_path / "run"), pixels), model.predict_proba(X))
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict_proba(X), model.predict_proba(X))


def test_it_works_where_scikit_learns_estimators_do(digits):
    X, y = digits[0][:90], digits[1][:90] % 3
    assert len(cross_val_score(tiny(), X, y, cv=3)) == 3
    copy = clone(ImageClassifier(3.0, random_state=7))
    assert copy.get_params() == {"minutes": 3.0, "architecture": None, "settings": None, "random_state": 7, "out": None}


def test_a_whole_fit(digits, tmp_path, monkeypatch):
    """How well it learns in seconds depends on the machine; that it is a fit does not."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(time, "monotonic", time.process_time)  # whatever else the machine does
    X, y = digits
    names = np.array([f"digit {label}" for label in y])
    model = idarts.ImageClassifier(minutes=0.1, settings={"random": 1}, out="mine").fit(X[:600], names[:600])
    assert json.loads(Path("mine", "result.json").read_text())["winner"] in ("found", "fixed", "undecided")
    pixels = torch.tensor(X.reshape(-1, 1, 8, 8), dtype=torch.uint8)
    expected = probabilities(idarts.load("mine"), pixels).argmax(1)
    assert list(model.predict(X)) == [f"digit {label}" for label in expected]
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_without_scikit_learn_it_is_one_line():
    code = "import sys; sys.modules['sklearn'] = None; from idarts import *; import idarts; idarts.ImageClassifier"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120)
    expected = "ImportError: idarts.ImageClassifier needs scikit-learn 1.6 or later: pip install 'idarts[cli]'"
    assert done.stderr.splitlines()[-1] == expected
