"""The outcome of a fit: accuracies on the test images, who won, and the sentence that says so."""

from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

from idarts.arch import Architecture, as_text, parse, space_of
from idarts.data import ImageData
from idarts.engine import folder
from idarts.engine.intervals import wilson
from idarts.errors import InputError, command
from idarts.files import read_json
from idarts.fitting.finals import right_answers
from idarts.fitting.judge import Verdict, verdict
from idarts.fitting.record import FIXED, FOUND, RANDOM, FitResult
from idarts.training import TrainResult


def compared(
    path: Path, found: Architecture, trained: dict[str, TrainResult], data: ImageData
) -> tuple[FitResult, dict[str, Any]]:
    """The result, except for its time, and the facts behind it for the record of the fit."""
    assert data.test is not None
    right = {name: right_answers(run.net, data.test) for name, run in trained.items()}
    sizes = {name: sum(weights.numel() for weights in run.net.parameters()) for name, run in trained.items()}
    images, judged = len(data.test), verdict(right[FOUND], right[FIXED])
    scores = {name: sum(answers) for name, answers in right.items()}
    facts = {
        "p": judged.p,
        "test_images": images,
        "trainings": [
            {"name": name, "accuracy": scores[name] / images, "interval": wilson(scores[name], images)}
            | {"parameters": sizes[name], "epochs": run.rounds[-1]["epoch"] if run.rounds else 0.0}
            for name, run in trained.items()
        ],
    }
    drawn = [name for name in trained if name.startswith(RANDOM)]
    for values in (scores, sizes):
        values["random"] = round(median(values[name] for name in drawn))
    kinds = (FOUND, FIXED, "random")
    result = FitResult(
        architecture=found,
        seconds=0.0,
        accuracy={name: scores[name] / images for name in kinds},
        interval={name: wilson(scores[name], images) for name in kinds},
        parameters={name: sizes[name] for name in kinds},
        winner=judged.winner,
        exported=FIXED if judged.winner == "fixed" else FOUND,
        path=path,
    )
    return replace(result, sentence=result_sentence(result, judged, images, len(drawn))), facts


def to_data(result: FitResult) -> dict[str, Any]:
    """The result as JSON types: the content of result.json, and what `--json` prints."""
    return {
        "architecture": as_text(result.architecture),
        "seconds": result.seconds,
        "accuracy": dict(result.accuracy),
        "interval": {name: list(limits) for name, limits in result.interval.items()},
        "parameters": dict(result.parameters),
        "winner": result.winner,
        "exported": result.exported,
    }


def read_result(path: Path) -> FitResult:
    """The result of a finished fit, from its folder."""
    if not (path / folder.RESULT).is_file():
        raise InputError(
            f"the fit in {path} has not finished, so it has no page yet; follow it with: {command('watch', path)}"
        )
    made = read_json(path / folder.RESULT)
    try:
        intervals = {name: (float(low), float(high)) for name, (low, high) in made["interval"].items()}
        return FitResult(**{**made, "architecture": parse(made["architecture"]), "interval": intervals, "path": path})
    except (AttributeError, KeyError, TypeError, ValueError):
        raise InputError(f"{path / folder.RESULT} is not the result of a fit; run the fit again") from None


def result_sentence(result: FitResult, judged: Verdict, images: int, drawn: int) -> str:
    """Who won, in one sentence, with intervals; and how random networks did."""
    found, fixed = (_score(result, name) for name in ("found", "fixed"))
    tested = f"on {images:,} test images, paired test p = {judged.p:.2g}"
    if judged.winner == "found":
        text = f"The found network won: {found} against {fixed} for the fixed network of the same size ({tested})."
    elif judged.winner == "fixed":
        text = (
            f"The fixed network won: {fixed} against {found} for the found network of the same size ({tested}); "
            "so the fixed network was exported."
        )
    elif result.architecture == space_of(result.architecture).fixed():
        text = f"The search chose the block of the fixed network: both have {found} on {images:,} test images."
    else:
        text = (
            f"Undecided: the found network has {found}, the fixed network of the same size {fixed}, "
            f"and {images:,} test images are too few to tell them apart (paired test p = {judged.p:.2g}); "
            "the found network was exported."
        )
    random = "A random network" if drawn == 1 else f"The median of {drawn} random networks"
    return f"{text} {random} has {_score(result, 'random')}."


def _score(result: FitResult, name: str) -> str:
    low, high = result.interval[name]
    return f"{100 * result.accuracy[name]:.1f} % ({100 * low:.1f}–{100 * high:.1f})"
