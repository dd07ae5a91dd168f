"""The surrogate of NAS-Bench-301: five models, each fitted to four fifths of the trained cells; their mean predicts.

The fifth that a model has not seen gives an honest error. It is stored with the models and is the smallest deviation
that a prediction states; where the five disagree, the deviation is larger.
"""

import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idarts.errors import InputError
from idarts.files import write_whole
from idarts.tables.nas_bench_301.boosting import Answers, Boosting, Trees
from idarts.tables.nas_bench_301.features import features
from idarts.tables.registry import Progress

FOLDS = 5
_RARE = 20  # a question that fewer cells answer with yes, or with no, is not asked
_ARRAYS = ("feature", "threshold", "base", "questions", "values", "held_out_error", "table")


@dataclass(frozen=True)
class Surrogate:
    """A question is `features[:, feature] >= threshold`. `table` is the checksum of the table that it was fitted to."""

    feature: NDArray[np.int16]
    threshold: NDArray[np.uint8]
    models: tuple[Trees, ...]
    held_out_error: float  # root mean square, over cells that a model has not seen
    table: int

    def __call__(self, codes: NDArray[np.uint64]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Accuracies in percent and their standard deviations, for pairs of codes (n, 2)."""
        answers = _answers(codes, self.feature, self.threshold)
        predictions = np.stack([model(answers) for model in self.models])
        return predictions.mean(axis=0), np.hypot(predictions.std(axis=0, ddof=1), np.float32(self.held_out_error))

    def save(self, file: Path) -> None:
        """Write plain arrays, in one atomic step."""
        content = io.BytesIO()
        np.savez(
            content,
            allow_pickle=False,
            feature=self.feature,
            threshold=self.threshold,
            base=np.array([model.base for model in self.models]),
            questions=np.stack([model.questions for model in self.models]),
            values=np.stack([model.values for model in self.models]),
            held_out_error=np.array(self.held_out_error),
            table=np.array(self.table, np.uint64),
        )
        write_whole(file, content.getvalue())


def load(file: Path) -> Surrogate:
    """A surrogate that `save` wrote; a damaged file is refused."""
    try:
        with file.open("rb") as stream, np.load(stream, allow_pickle=False) as stored:
            part: dict[str, NDArray[Any]] = {name: stored[name] for name in _ARRAYS}
        models = tuple(
            Trees(float(base), questions, values)
            for base, questions, values in zip(part["base"], part["questions"], part["values"], strict=True)
        )
        known = part["feature"].shape == part["threshold"].shape and (part["questions"] >= 0).all()
        if not models or not known or part["questions"].max() >= len(part["feature"]):
            raise ValueError("its arrays do not fit together")
        error, table = float(part["held_out_error"]), int(part["table"])
    except Exception as problem:  # damaged bytes can raise anything in zipfile and numpy
        raise InputError(
            f"{file} is damaged ({' '.join(str(problem).split())}); delete it, then run: idarts table fit nas-bench-301"
        ) from None
    return Surrogate(part["feature"], part["threshold"], models, error, table)


@dataclass(frozen=True)
class Fit:
    """A surrogate, and what each of its models says about the cells that it has not seen."""

    surrogate: Surrogate
    targets: NDArray[np.float32]
    held_out: NDArray[np.float32]
    deviations: NDArray[np.float32]

    def figures(self) -> dict[str, float]:
        """How well held-out cells are ranked and predicted."""
        errors = np.abs(self.held_out - self.targets)
        predicted, true = (np.argsort(np.argsort(values)) for values in (self.held_out, self.targets))
        return {
            "cells": len(self.targets),
            "spearman": float(np.corrcoef(predicted, true)[0, 1]),
            "mean_error": float(errors.mean()),
            "within_two_deviations": float((errors <= 2 * self.deviations).mean()),
        }


def fit(
    codes: NDArray[np.uint64],
    targets: NDArray[np.float32],
    table: int,
    boosting: Boosting | None = None,
    progress: Progress | None = None,
) -> Fit:
    """Fit the five models to cells (n, 2) and their accuracies; the folds are the same in every call."""
    feature, threshold = _questions(features(codes))
    answers = _answers(codes, feature, threshold)
    fold = np.random.default_rng(0).permutation(len(targets)) % FOLDS
    models, held_out = [], np.zeros_like(targets)
    for number in range(FOLDS):
        own = fold != number
        models.append((boosting or Boosting()).fit(answers[own], targets[own], seed=number))
        held_out[~own] = models[-1](answers[~own])
        if progress:
            progress(number + 1, FOLDS)
    error = float(np.sqrt(np.mean((held_out - targets) ** 2)))
    surrogate = Surrogate(feature, threshold, tuple(models), error, table)
    return Fit(surrogate, targets, held_out, surrogate(codes)[1])


def _questions(numbers: NDArray[np.uint8]) -> tuple[NDArray[np.int16], NDArray[np.uint8]]:
    """Every different question that enough cells answer with yes and enough with no."""
    kept: dict[bytes, tuple[int, int]] = {}
    for column in range(numbers.shape[1]):
        for least in np.unique(numbers[:, column])[1:]:
            answer = numbers[:, column] >= least
            if _RARE <= answer.sum() <= len(answer) - _RARE:
                kept.setdefault(np.packbits(answer).tobytes(), (column, int(least)))
    feature, threshold = np.array(list(kept.values()), np.int16).reshape(-1, 2).T
    return feature, threshold.astype(np.uint8)


def _answers(codes: NDArray[np.uint64], feature: NDArray[np.int16], threshold: NDArray[np.uint8]) -> Answers:
    return np.asarray(features(codes)[:, feature] >= threshold)
