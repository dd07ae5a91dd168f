"""An evaluation as one HTML file that opens offline."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idarts.arch import from_data
from idarts.data import short_name
from idarts.pages.cell import shown
from idarts.pages.chart import WIDTH, Scale, frame
from idarts.pages.images import data_url, shaded, thumbnail
from idarts.pages.numbers import MISSING, interval, number, percent, with_interval
from idarts.pages.template import render
from idarts.training.evaluation import Mistake, confusions

_TABLE = 20  # classes up to which the confusion matrix has numbers; beyond, it is a picture
_STRONGEST = 0.55  # of a cell's colour: its number stays readable on a light and on a dark page


def page(evaluation: Mapping[str, Any], model: str, mistakes: Sequence[Mistake] = ()) -> str:
    """The evaluation of the network in the folder `model` as one HTML text, with images of its mistakes."""
    architecture, data = from_data(evaluation["architecture"]), evaluation["data"]
    classes, bins = evaluation["classes"], evaluation["calibration"]["bins"]
    small = len(classes) <= _TABLE
    return render(
        "evaluation.html.j2",
        space=architecture.space,
        data=short_name(data["source"]),
        about_split=about_split(data),
        part=data["part"],
        images=f"{data['images']:,}",
        tiles=list(_tiles(evaluation)),
        labels=[one["label"] for one in classes],
        matrix=_matrix(evaluation["confusion"]) if small else None,
        picture=None if small else _picture(np.array(evaluation["confusion"])),
        mistakes=[(true, taken, f"{count:,}", percent(share)) for true, taken, count, share in confusions(evaluation)],
        pictures=[
            (thumbnail(one.image.numpy()), one.label, one.predicted, percent(one.confidence)) for one in mistakes
        ],
        reliability=_reliability([one for one in bins if one["count"]]),
        bins=[
            (_range(one), f"{one['count']:,}", *map(percent, _both(one)), interval(one["accuracy"], one["count"]))
            for one in bins
            if one["count"]
        ],
        scores=[(one["label"], f"{one['images']:,}", *_scores(one)) for one in classes],
        commands=list(_commands(model, data)),
        cell=shown(architecture),
        environment=list(evaluation["versions"].items()),
    )


def about_split(data: Mapping[str, Any]) -> str:
    """One sentence on the images that the network was trained on.

    >>> about_split({"part": "test", "left_out": 10}), about_split({"part": "all", "images": 42, "trained_on": 10})
    ('10 images that it was trained on were left out.', '10 of these 42 images were also used in its training.')
    """
    if data.get("left_out") is not None:
        return f"{data['left_out']:,} images that it was trained on were left out."
    if data.get("trained_on") is not None:
        return f"{data['trained_on']:,} of these {data['images']:,} images were also used in its training."
    return ""


def _tiles(evaluation: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    images = evaluation["data"]["images"]
    yield "accuracy, with its 95 % interval", with_interval(evaluation["accuracy"], images)
    if len(evaluation["classes"]) > 5:
        yield "top-5 accuracy, with its 95 % interval", with_interval(evaluation["top5"], images)
    yield "loss", number(evaluation["loss"])
    yield "expected calibration error", percent(evaluation["calibration"]["error"])


def _scores(one: Mapping[str, Any]) -> Iterator[str]:
    yield percent(one["recall"])
    yield interval(one["recall"], one["images"]) or MISSING
    yield percent(one["precision"])
    yield interval(one["precision"], one["predicted"]) or MISSING
    yield percent(one["f1"])


def _matrix(counts: Sequence[Sequence[int]]) -> list[list[tuple[int, str, str]]]:
    """Rows of counts, each with its kind and the strength of its colour."""
    strengths = _STRONGEST * _strength(np.array(counts))
    return [
        [
            (count, "right" if row == column else "wrong", f"{strengths[row, column]:.2f}")
            for column, count in enumerate(line)
        ]
        for row, line in enumerate(counts)
    ]


def _strength(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """The root of the share of its row: mistakes are few, and should be visible."""
    shares: NDArray[np.float64] = np.sqrt(counts / np.maximum(counts.sum(axis=1, keepdims=True), 1))
    return shares


def _picture(counts: NDArray[np.int64]) -> str:
    """A pixel for each pair of classes; the page stretches it."""
    return data_url(shaded(np.eye(len(counts), dtype=bool), _strength(counts)))


def _reliability(bins: Sequence[Mapping[str, Any]]) -> str:
    """Bars of accuracy over confidence; the root of a bin's share of the images is its bar's width."""
    place = frame(Scale(0, 1, percent=True), Scale(0, 1, percent=True), ("confidence", "accuracy"))
    most = max((one["count"] for one in bins), default=1)
    values = ", ".join(f"{percent(one['accuracy'])} at {_range(one)}" for one in bins)
    alt = escape(f"Accuracy by confidence: {values}")
    parts = [f'<svg viewBox="0 0 {WIDTH} {place.height:.0f}" role="img" aria-label="{alt}">', *place.parts()]
    for one in bins:
        left, right = (float(place.across(one[side])) for side in ("low", "high"))
        width = max(0.9 * (right - left) * (one["count"] / most) ** 0.5, 1.5)
        top = float(place.down(one["accuracy"]))
        parts.append(
            f'<rect class="bar" x="{(left + right - width) / 2:.1f}" y="{top:.1f}" '
            f'width="{width:.1f}" height="{place.bottom - top:.1f}">'
            f"<title>{percent(one['accuracy'])} of {one['count']:,} images at {_range(one)}</title></rect>"
        )
    diagonal = f"M{place.left:.1f} {place.bottom:.1f}L{place.right:.1f} {place.top:.1f}"
    return "".join([*parts, f'<path class="limit" d="{diagonal}"/></svg>'])


def _both(one: Mapping[str, Any]) -> tuple[float, float]:
    return one["confidence"], one["accuracy"]


def _range(one: Mapping[str, Any]) -> str:
    return f"{100 * one['low']:.0f}–{100 * one['high']:.0f} %"


def _commands(model: str, data: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    folder, exported = shlex.quote(model), shlex.quote(f"{Path(model).resolve().name}-onnx")
    part = "" if data["part"] == "test" else f" --part {data['part']}"
    yield "Classify your own images", f"idarts predict {folder} image.png"
    yield "Export it for other programs", f"idarts export {folder} -o {exported} --format onnx"
    yield "Measure its speed and memory on this machine", f"idarts profile {folder}"
    yield "Write this page again", f"idarts evaluate {folder} --data {shlex.quote(data['source'])}{part}"
