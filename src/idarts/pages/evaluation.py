"""An evaluation as one HTML file that opens offline, in the look of a run's report."""

import base64
import io
import shlex
from collections.abc import Iterator, Mapping
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from idarts.arch import from_data
from idarts.pages.chart import value_text
from idarts.pages.run_page import cell_drawing, cell_text, template
from idarts.training.evaluation import confusions

_TABLE = 20  # classes up to which the confusion matrix has numbers; beyond, it is a picture
_RIGHT, _WRONG = (38, 139, 210), (224, 112, 30)  # the report's colours of more and less
_STRONGEST = 0.55  # of a cell's colour, so that its number can be read on it, on a light page and on a dark one
_LEFT, _TOP, _SIDE = 46, 10, 200  # of the drawing of the calibration


def page(evaluation: Mapping[str, Any], model: str) -> str:
    """The evaluation of the network in the folder `model` as one HTML text."""
    architecture = from_data(evaluation["architecture"])
    data, classes = evaluation["data"], evaluation["classes"]
    small = len(classes) <= _TABLE
    wrong = [(true, taken, f"{count:,}", _percent(share)) for true, taken, count, share in confusions(evaluation)]
    return template("evaluation.html.j2").render(
        space=architecture.space,
        data=data["source"],
        part=data["part"],
        images=f"{data['images']:,}",
        tiles=list(_tiles(evaluation)),
        matrix=list(_rows(evaluation)) if small else None,
        picture=None if small else _picture(evaluation["confusion"]),
        confusions=wrong,
        reliability=_reliability(evaluation["calibration"]["bins"]),
        bins=[_bin(found) for found in evaluation["calibration"]["bins"] if found["count"]],
        classes=[
            (found["label"], f"{found['images']:,}", *(_percent(found[key]) for key in ("recall", "precision", "f1")))
            for found in classes
        ],
        commands=list(_commands(model, data)),
        drawing=cell_drawing(architecture)[0],
        cell=cell_text(architecture),
        environment=list(evaluation["versions"].items()),
    )


def _tiles(evaluation: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield "accuracy", _percent(evaluation["accuracy"])
    if len(evaluation["classes"]) > 5:
        yield "top-5 accuracy", _percent(evaluation["top5"])
    yield "loss", value_text(evaluation["loss"])
    yield "expected calibration error", _percent(evaluation["calibration"]["error"])


def _rows(evaluation: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for row, (found, counts) in enumerate(zip(evaluation["classes"], evaluation["confusion"], strict=True)):
        strengths = _strength(np.array([counts]))[0]
        cells = [
            {"count": count, "kind": "right" if row == column else "wrong", "share": f"{_STRONGEST * strength:.2f}"}
            for column, (count, strength) in enumerate(zip(counts, strengths, strict=True))
        ]
        yield {"label": found["label"], "cells": cells}


def _strength(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """The root of the share of its row: mistakes are few, and should be seen."""
    shares: NDArray[np.float64] = np.sqrt(counts / np.maximum(counts.sum(axis=1, keepdims=True), 1))
    return shares


def _picture(matrix: list[list[int]]) -> str:
    """A PNG with a pixel for each pair of classes; the page stretches it."""
    counts = np.array(matrix)
    pixels: NDArray[np.uint8] = np.empty((*counts.shape, 4), dtype=np.uint8)
    pixels[..., :3] = np.where(np.eye(len(counts), dtype=bool)[..., None], _RIGHT, _WRONG)
    pixels[..., 3] = np.round(255 * _strength(counts))
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG", optimize=True)
    return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"


def _reliability(bins: list[dict[str, Any]]) -> str:
    """Bars of accuracy over confidence; a bar's width is the share of images, by the root, that it speaks for."""
    right, bottom = _LEFT + 1.7 * _SIDE, _TOP + _SIDE
    most = max(found["count"] for found in bins)
    told = ", ".join(f"{_percent(found['accuracy'])} at {_range(found)}" for found in bins if found["count"])
    parts = [f'<svg viewBox="0 0 420 240" role="img" aria-label="{escape(f"Accuracy by confidence: {told}")}">']
    for tick in (0, 0.25, 0.5, 0.75, 1):
        x, y = _LEFT + tick * (right - _LEFT), bottom - tick * _SIDE
        parts.append(f'<path class="grid" d="M{_LEFT} {y:.1f}H{right:.1f}"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{100 * tick:g} %</text>')
        parts.append(f'<text x="{x:.1f}" y="{bottom + 18:.1f}" text-anchor="middle">{100 * tick:g} %</text>')
    for found in bins:
        if found["count"]:
            slot = (found["high"] - found["low"]) * (right - _LEFT)
            width = max(0.9 * slot * (found["count"] / most) ** 0.5, 1.5)
            middle = _LEFT + (found["low"] + found["high"]) / 2 * (right - _LEFT)
            height = found["accuracy"] * _SIDE
            parts.append(
                f'<rect class="bar" x="{middle - width / 2:.1f}" y="{bottom - height:.1f}" '
                f'width="{width:.1f}" height="{height:.1f}"/>'
            )
    parts.append(f'<path class="limit" d="M{_LEFT} {bottom}L{right:.1f} {_TOP}"/>')
    parts.append(f'<path class="axis" d="M{_LEFT} {bottom}H{right:.1f}"/></svg>')
    return "".join(parts)


def _bin(found: Mapping[str, Any]) -> tuple[str, ...]:
    return _range(found), f"{found['count']:,}", _percent(found["confidence"]), _percent(found["accuracy"])


def _range(found: Mapping[str, Any]) -> str:
    return f"{100 * found['low']:.0f}–{100 * found['high']:.0f} %"


def _percent(share: float | None) -> str:
    return "–" if share is None else value_text(share, percent=True)


def _commands(model: str, data: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    folder, exported = shlex.quote(model), shlex.quote(f"{Path(model).resolve().name}-onnx")
    part = "" if data["part"] == "test" else f" --part {data['part']}"
    yield "Ask it about images of your own", f"idarts predict {folder} image.png"
    yield "Hand it to other programs", f"idarts export {folder} -o {exported} --format onnx"
    yield "Measure what it costs here", f"idarts profile {folder}"
    yield "Write this page anew", f"idarts evaluate {folder} --data {shlex.quote(data['source'])}{part}"
