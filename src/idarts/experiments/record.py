"""The record in an experiment's folder, `experiment.json` or `sweep.json`: which experiment it is, and its jobs."""

import platform
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from idarts._version import __version__
from idarts.engine.lock import locked, require_own
from idarts.errors import InputError
from idarts.experiments.experiment import Experiment, Request
from idarts.experiments.jobs import Job
from idarts.files import dump_json, read_json, write_whole

SWEEP = "sweep"


@contextmanager
def claimed(experiment: Experiment, request: Request) -> Iterator[None]:
    """The folder, for this process alone; one that holds other things, or another experiment, is refused."""
    path = _path(experiment, request)
    require_own(request.out, path.name, experiment.kind)
    with locked(request.out, experiment.kind):
        before = _read(path)
        for key, value in _identity(experiment, request).items():
            if before.get(key, value) != value:
                raise InputError(
                    f"{request.out} holds results of {key} {before[key]}, not {value}; name a new folder with --out"
                )
        yield


def write_record(experiment: Experiment, request: Request, plan: Sequence[Job]) -> None:
    """Write what is planned, so that `compare` knows the jobs that have no result yet."""
    path = _path(experiment, request)
    versions = {"idarts": __version__, "torch": torch.__version__, "python": platform.python_version()}
    jobs = {job.name: list(job.words) or None for job in plan}
    record = {**_identity(experiment, request), **versions, **_read(path), "jobs": jobs}
    write_whole(path, dump_json(record))


def planned_jobs(folder: Path) -> dict[str, Any]:
    """The jobs of the sweep in a folder, each with the parts of its name; none where there is no sweep."""
    path = folder / f"{SWEEP}.json"
    try:
        jobs = _read(path).get("jobs", [])
        return dict.fromkeys(map(str, jobs)) if isinstance(jobs, list) else dict(jobs.items())  # a list: early versions
    except (InputError, AttributeError):
        warnings.warn(f"{path} is damaged, so the names of the sweep's jobs are not known", stacklevel=2)
        return {}


def _identity(experiment: Experiment, request: Request) -> dict[str, Any]:
    return {experiment.kind: experiment.name, **{name: getattr(request, name) for name in experiment.fixed}}


def _path(experiment: Experiment, request: Request) -> Path:
    return request.out / f"{experiment.kind}.json"


def _read(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    try:
        data = read_json(path)
    except ValueError as error:
        raise InputError(f"{path} cannot be read ({error}); name a new folder with --out") from None
    if not isinstance(data, dict):
        raise InputError(f"{path} holds no record of an experiment; name a new folder with --out")
    return data
