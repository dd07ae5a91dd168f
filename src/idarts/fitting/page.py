"""The page of a fit: who won, the architecture, how the time was spent."""

import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from idarts.engine import folder
from idarts.files import write_whole
from idarts.fitting.record import SEARCH, FitResult
from idarts.pages.cell import shown
from idarts.pages.numbers import duration, percent, with_interval
from idarts.pages.report import write_report
from idarts.pages.template import render

PARTS = {"prepare": "look and plan", "search": "search and selection", "training": "trainings", "end": "comparison"}
NAMES = {"found": "found network", "fixed": "fixed network"}


def write_page(result: FitResult, record: Mapping[str, Any]) -> Path:
    """Write the page of a fit, and the reports of its parts, to which it links."""
    for part in [SEARCH, *(one["name"] for one in record["trainings"])]:
        write_report(result.path / part)
    target = result.path / folder.REPORT
    write_whole(target, page(result, record))
    return target


def page(result: FitResult, record: Mapping[str, Any]) -> str:
    """The page as one HTML text."""
    plan, look = record["plan"], record["look"]
    return render(
        "fit.html.j2",
        source=look["source"],
        sentence=record["sentence"],
        winner=result.winner,
        exported=result.exported,
        tiles=list(_tiles(result, record)),
        networks=list(_networks(record)),
        cell=shown(result.architecture),
        times=list(_times(record)),
        commands=list(_commands(result, record)),
        plan=[(name.replace("_", " "), str(value)) for name, value in plan.items() if name not in ("seconds", "notes")],
        look=[(name, str(value)) for name, value in look.items()],
    )


def _tiles(result: FitResult, record: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    accuracy = with_interval(result.accuracy[result.exported], record["test_images"])
    yield "test accuracy of the exported network, with its 95 % interval", accuracy
    if cost := record.get("cost"):
        yield (
            f"{cost['kind'].replace('_', '-')} of the found network",
            f"{cost['reached']:,.4g} of {cost['target']:,.4g}",
        )
    yield "test images", f"{record['test_images']:,}"
    yield "time", duration(result.seconds)


def _times(record: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    planned = dict(record["plan"]["seconds"])
    planned["search"] += planned.pop("selection")
    for name, seconds in record["times"].items():
        yield PARTS[name], f"{duration(seconds)} (planned: {duration(planned[name])})"


def _networks(record: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    for one in record["trainings"]:
        name, (low, high) = one["name"], one["interval"]
        interval = f"{percent(low)} – {percent(high)}"
        title = NAMES.get(name, name.replace("-", " network "))
        yield name, title, percent(one["accuracy"]), interval, f"{one['parameters']:,}", f"{one['epochs']:.1f}"


def _commands(result: FitResult, record: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    where, python = shlex.quote(str(result.path)), record["settings"]["data"] == "python"
    yield "Classify image files", f"idarts predict {where} IMAGE …"
    yield "See which classes it confuses", f"idarts evaluate {where}{' --data folder:PATH' if python else ''}"
    if not python:
        seen = next(one["epochs"] for one in record["trainings"] if one["name"] == result.exported)
        config, longer = (shlex.quote(f"{result.path}{end}") for end in (f"/{result.exported}/config.json", "-longer"))
        text = "Train it ten times as long, on the same images (in the fit, all networks shared the time)"
        yield text, f"idarts train --config {config} --epochs {max(1, round(10 * seen))} --out {longer}"
    yield "Export the network for other programs", f"idarts export {where} -o exported --format onnx"
