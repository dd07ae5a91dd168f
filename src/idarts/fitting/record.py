"""The folder of a fit: what it holds, and what is read back from it.

fit.json       settings, look, plan and time used so far, written first
search/        the run folder of the search
found/ fixed/ random-1/ …   the run folders of the trainings
model/         the network that was exported
result.json    written last
report.html
"""

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from idarts.arch import Architecture
from idarts.engine import folder
from idarts.engine.lock import locked, require_own
from idarts.errors import InputError
from idarts.files import dump_json, read_json, write_whole
from idarts.fitting.judge import Winner

FIT, SEARCH, FOUND, FIXED, RANDOM = "fit.json", "search", "found", "fixed", "random-"
FORMAT = "idarts-fit-1"


@dataclass(frozen=True)
class FitResult:
    """The result of a fit. `exported` is the network in `path / "model"`, which `idarts.load` takes."""

    architecture: Architecture
    seconds: float
    accuracy: Mapping[str, float]  # of found, fixed, random (the median)
    interval: Mapping[str, tuple[float, float]]
    parameters: Mapping[str, int]
    winner: Winner
    exported: str
    path: Path
    sentence: str = ""


@contextmanager
def claim(out: Path, resume: bool, overwrite: bool) -> Iterator[None]:
    """Lock the folder of a fit, which may be there already only if `resume` or `overwrite` is given."""
    exists = (out / FIT).is_file()
    if resume and not exists:
        raise InputError(f"{out} holds no fit to resume; remove --resume (resume=True in Python) to start one")
    if exists and not resume and not overwrite:
        raise InputError(
            f"{out} already holds a fit; continue it with --resume, or replace it with --overwrite "
            "(resume=True, overwrite=True in Python)"
        )
    require_own(out, FIT, "fit")
    with locked(out, "fit"):
        if overwrite and not resume:
            clear(out)
        yield


def clear(out: Path) -> None:
    """Delete what a fit wrote; its record last, because it makes the folder a fit."""
    for part in [SEARCH, FOUND, FIXED, *(path.name for path in out.glob(f"{RANDOM}[0-9]*"))]:
        if folder.is_run(out / part):
            shutil.rmtree(out / part)
    for pattern in [*(f"{folder.MODEL}/{name}" for name in folder.MODEL_FILES), folder.RESULT, folder.REPORT, FIT]:
        for file in out.glob(pattern):
            file.unlink()


def write(out: Path, record: Mapping[str, Any]) -> None:
    """Write the record of a fit."""
    write_whole(out / FIT, dump_json({"format": FORMAT, **record}))


def read(out: Path) -> dict[str, Any]:
    """The record of a fit."""
    record = read_json(out / FIT)
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        raise InputError(
            f"{out / FIT} is not the record of a fit; start again with --overwrite (overwrite=True in Python)"
        )
    return record


def seconds_of(run: Path) -> float:
    """The seconds that a run has used so far, 0 for one that has not started."""
    if not folder.is_run(run):
        return 0.0
    if folder.is_finished(run):
        return float(folder.read_result(run)["seconds"])
    rounds = folder.read_rounds(run)
    return float(rounds[-1]["seconds"]) if rounds else 0.0
