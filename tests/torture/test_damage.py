"""Flipped bits, zeroed ranges and truncations in every file that is read again: none may change anything silently.

`IDARTS_TORTURE=5000 pytest tests/torture` tries that many; `make test` tries a few of each kind.
"""

import os
import random
import shutil
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from counting_job import StoppedError, count, outcome

from idarts.data import read_split
from idarts.engine import checkpoint, folder
from idarts.errors import IdartsError
from idarts.experiments import Experiment, FunctionJob, Request, run_experiment
from idarts.experiments.record import planned_jobs
from idarts.experiments.store import RESULTS, Store
from idarts.searching import RunConfig
from idarts.searching import run as search
from idarts.tables.storage.columns import Columns, write_columns
from idarts.training import load, train

TRIES = int(os.environ.get("IDARTS_TORTURE", "300"))
SMALL = {"depth": 1, "channels": 4, "batch": 16}


def damage(content, rng):
    """A file with one accident: a bit that flips, a range of zeros, or a missing end."""
    place, kind = rng.randrange(len(content)), rng.choice(["flip", "flip", "zeros", "cut"])
    if kind == "flip":
        changed = bytearray(content)
        changed[place] ^= 1 << rng.randrange(8)
        return bytes(changed)
    if kind == "cut":
        return content[:place]
    length = rng.choice([1, 16, 512, 4096])
    return content[:place] + bytes(len(content[place : place + length])) + content[place + length :]


def plain(data):
    """Data with tensors and arrays as lists, so that it can be compared."""
    if isinstance(data, torch.Tensor | np.ndarray):
        return [str(data.dtype), data.tolist()]
    if isinstance(data, dict):
        return {name: plain(value) for name, value in data.items()}
    return [plain(part) for part in data] if isinstance(data, list | tuple) else data


def square(number):
    return [{"number": number, "square": number**2}, {"number": -number, "square": number**2}]


def squares(out):
    jobs = [FunctionJob(f"job-{n}", function=square, arguments={"number": n}) for n in (1, 2, 3)]
    return run_experiment(Experiment("squares", "Squares.", lambda _: jobs), Request(out=out), tell=lambda _: None)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A search with its checkpoints, a training with its model, an experiment, a sweep's record, a table."""
    root = tmp_path_factory.mktemp("made")
    search(RunConfig(space="nas-bench-201", data="digits", rounds=3, checkpoint_rounds=2, **SMALL), root / "search")
    train("nas-bench-201:0", "digits", out=root / "train", epochs=1, checkpoint_rounds=50, **SMALL)
    squares(root / "squares")
    (root / "sweep").mkdir()
    shutil.copy(root / "squares" / "experiment.json", root / "sweep" / "sweep.json")
    write_columns(
        root / "table.npz", {"test": np.linspace(0, 1, 50, dtype=np.float32), "hash": np.arange(50, dtype="<u8")}
    )
    return root


def read_checkpoint(file):
    number, state, problems = checkpoint.latest(file.parent, "train" if "train" in str(file) else "search")
    for problem in problems:
        warnings.warn(problem, stacklevel=2)
    return number, plain(state)


def read_log(file):
    run = folder.read_run(file.parent)
    for problem in [*run.problems, *(["cut"] if run.cut else [])]:
        warnings.warn(problem, stacklevel=2)
    return plain(run.rounds)


def read_model(file):
    net = load(file.parent)
    return plain(net.state_dict()), net.card.to_data()


def read_table(file):
    columns = Columns(file)
    return {name: list(columns[name]) for name in ("test", "hash")}, "test" in columns, len(columns)


READERS = {  # every file that is read again → how
    "search/config.json": lambda file: folder.read_config(file.parent),
    "search/made_with.json": lambda file: folder.read_made_with(file.parent),
    "search/split.safetensors": lambda file: plain(vars(read_split(file))),
    "search/metrics.jsonl": read_log,
    "search/result.json": lambda file: folder.read_result(file.parent),
    "search/checkpoints/00000003.pt": read_checkpoint,
    "train/config.json": lambda file: folder.read_config(file.parent),
    "train/metrics.jsonl": read_log,
    "train/result.json": lambda file: folder.read_result(file.parent),
    "train/checkpoints/*.pt": read_checkpoint,
    "train/model/config.json": read_model,
    "train/model/model.safetensors": read_model,
    "train/model/split.safetensors": lambda file: plain(vars(read_split(file))),
    "squares/results.csv": lambda file: squares(file.parent) and Store(file).rows,  # jobs that are lost run again
    "squares/experiment.json": lambda file: squares(file.parent) and Store(file.parent / RESULTS).rows,
    "sweep/sweep.json": lambda file: planned_jobs(file.parent),
    "table.npz": read_table,
}


def spoken(read, file):
    """What a file says, or None if there was an error or a warning. Anything but one clear line is raised."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            said = read(file)
        except IdartsError as error:
            if "\n" in str(error):
                raise
            return None
    return None if caught else said


@pytest.mark.parametrize("name", READERS)
def test_no_damage_changes_what_is_read_without_a_word(made, name):
    (file,) = made.glob(name) if "*" not in name else sorted(made.glob(name))[-1:]
    read, whole, rng = READERS[name], file.read_bytes(), random.Random(name)
    expected = spoken(read, file)
    assert expected is not None
    try:
        for number in range(max(5, TRIES // len(READERS))):
            file.write_bytes(damage(whole, rng))
            said = spoken(read, file)
            assert said is None or said == expected, f"{name}, try {number}"
    finally:
        file.write_bytes(whole)


def test_all_files_that_a_run_writes_are_covered(made):
    """A new file must come with a reader here, or be one that only people and other programs read."""
    others = {"README.md", "index.html", "results.md", ".lock"}
    written = {str(path.relative_to(made)) for path in made.rglob("*") if path.is_file() and path.name not in others}
    known = {str(path.relative_to(made)) for name in READERS for path in made.glob(name)}
    events = {name for name in written if "tfevents" in name}  # TensorBoard's own checksums
    older = {name for name in written if name.endswith("2.pt")}  # like the newer ones
    assert written - known - events - older - {"train/made_with.json", "train/split.safetensors"} == set()


def test_a_resume_after_any_damage_ends_the_same_or_says_so(tmp_path):
    count(tmp_path / "whole")
    expected = outcome(tmp_path / "whole")
    with pytest.raises(StoppedError):
        count(tmp_path / "stopped", stop_after=5)
    rng, tries = random.Random(5), max(10, TRIES // 10)
    for number in range(tries):
        run = tmp_path / "run"
        shutil.copytree(tmp_path / "stopped", run)
        file = rng.choice(sorted(path for path in run.rglob("*") if path.is_file() and path.name != ".lock"))
        file.write_bytes(damage(file.read_bytes(), rng))

        def resumed(path: Path):
            count(path, resume=True)
            return outcome(path)

        said = spoken(resumed, run)
        assert said is None or said == expected, f"try {number}: {file}"
        shutil.rmtree(run)
