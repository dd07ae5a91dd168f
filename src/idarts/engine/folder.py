"""The run folder. Only this module knows its files; it imports without torch, so that pages can read runs.

config.json                the settings, written first
split.safetensors          which images the run uses, by content (`idarts.data.content`)
made_with.json             digests of settings and data, versions, threads (`idarts.engine.origin`)
metrics.jsonl              one line for each round (`idarts.engine.metrics`); metrics.damaged: lines that were damaged
checkpoints/               the last two states (`idarts.engine.checkpoint`)
events.out.tfevents.*      for TensorBoard, if the setting `log` says so (`idarts.engine.loggers`)
logger.json                the name that the run has in another tool, if `log` names one
result.json                written last: a run with a result is finished
model/                     the network of a finished training (`idarts.training.model_folder`)
report.html, evaluation.*  added by other commands
.lock                      held by the process that runs here (`idarts.engine.lock`)
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idarts.arch import Architecture, parse
from idarts.engine.entries import Floats, as_alpha, as_float, read_object
from idarts.engine.lock import LOCK, locked
from idarts.engine.metrics import DAMAGED, METRICS, drop_rounds, read_lines, read_rounds, round_log, sync_log
from idarts.errors import InputError, WriteError, command
from idarts.files import dump_json, write_whole

# The log is part of a folder for all that know folders.
__all__ = ["METRICS", "Floats", "as_float", "drop_rounds", "read_rounds", "round_log", "sync_log"]

CONFIG, RESULT, CHECKPOINTS, MADE_WITH = "config.json", "result.json", "checkpoints", "made_with.json"
LOGGER, REPORT = "logger.json", "report.html"
EVENTS = ".idarts"  # ends the name of our event files
MODEL, WEIGHTS, ONNX, TORCH_EXPORT = "model", "model.safetensors", "model.onnx", "model.pt2"
EVALUATION, EVALUATION_PAGE = "evaluation.json", "evaluation.html"
SPLIT, README = "split.safetensors", "README.md"
MODEL_FILES = (CONFIG, WEIGHTS, ONNX, TORCH_EXPORT, SPLIT, README, EVALUATION, EVALUATION_PAGE)
_WRITTEN = (  # what a new run deletes; the settings stay until they are replaced, because they make a folder a run
    f"{CHECKPOINTS}/{'[0-9]' * 8}.pt",
    f"events.out.tfevents.*{EVENTS}",
    LOGGER,
    METRICS,
    DAMAGED,
    RESULT,
    SPLIT,
    MADE_WITH,
    *(f"{MODEL}/{name}" for name in MODEL_FILES),
    EVALUATION,
    EVALUATION_PAGE,
    REPORT,
)


def folder_name(*parts: object) -> str:
    """The default name of a run's folder.

    >>> folder_name("darts", "idarts", "folder:/pets/cats", 3)
    'darts-idarts-pets-cats-3'
    """
    words = [str(part).removeprefix("folder:").removeprefix("npz:").strip("/.") for part in parts]
    return "-".join(words).replace("/", "-").replace(":", "-")


def is_run(path: Path) -> bool:
    """Whether a folder holds the settings of a run; if they are damaged, a lock beside them decides."""
    try:
        config = json.loads((path / CONFIG).read_text())
    except OSError:
        return False
    except (ValueError, RecursionError):
        return (path / LOCK).exists()
    return isinstance(config, dict) and "checkpoint_rounds" in config


def is_finished(path: Path) -> bool:
    """Whether a run has a result."""
    return (path / RESULT).is_file()


@contextmanager
def claim(path: Path, resume: bool, overwrite: bool) -> Iterator[None]:
    """Lock a folder for a run, which may be in it already only if `resume` or `overwrite` is given. Deletes nothing."""
    exists = is_run(path)
    if resume and not exists:
        raise InputError(f"{path} holds no run to resume; remove --resume (resume=True in Python) to start one")
    if exists and not resume and not overwrite:
        raise InputError(
            f"{path} already holds a run; continue it with --resume, or replace it with --overwrite "
            "(resume=True, overwrite=True in Python)"
        )
    if path.exists() and not exists and (not path.is_dir() or any(not p.name.startswith(".") for p in path.iterdir())):
        raise InputError(f"{path} exists and is not a run; choose a new folder with --out")
    with locked(path, "run"):
        yield


def clear(path: Path) -> None:
    """Delete all files that a run wrote, and no others; the settings stay."""
    for pattern in _WRITTEN:
        for file in path.glob(pattern):
            try:
                file.unlink(missing_ok=True)
            except OSError as error:
                raise WriteError(f"cannot delete {file}: {error.strerror}") from None


def start(path: Path, config: Mapping[str, Any], files: Mapping[str, bytes] | None = None) -> None:
    """Replace the run in a folder, if there is one, by a new one with these settings and files.

    After a kill at any moment the folder holds settings, so that the same command can be given again.
    """
    clear(path)
    write_whole(path / CONFIG, dump_json(config))
    for name, content in (files or {}).items():
        write_whole(path / name, content)


def extend(path: Path, settings: Mapping[str, Any], entry: Mapping[str, Any]) -> None:
    """Change settings of the run in a folder, which is not finished then, and add an entry to its history."""
    config = read_config(path)
    changed = {**config, **settings, "history": [*config.get("history", []), entry]}
    for name in (RESULT, REPORT):
        (path / name).unlink(missing_ok=True)
    write_whole(path / CONFIG, dump_json(changed))


def write_result(path: Path, result: Mapping[str, Any]) -> None:
    """Write the result, which makes a run a finished one."""
    write_whole(path / RESULT, dump_json(result))


def write_logger_id(path: Path, identity: str) -> None:
    """Keep the name that the run has in its logger's tool, so that a resumed run continues there."""
    write_whole(path / LOGGER, dump_json({"id": identity}))


def read_logger_id(path: Path) -> str | None:
    """The name of the run in its logger's tool; None if it has none yet."""
    if not (path / LOGGER).is_file():
        return None
    identity = read_object(path / LOGGER, "delete it: the run then starts anew in its logger").get("id")
    return identity if isinstance(identity, str) else None


def read_config(path: Path) -> dict[str, Any]:
    """The settings that a run started with."""
    return read_object(path / CONFIG, "put it back, or start again with --overwrite (overwrite=True in Python)")


def read_result(path: Path) -> dict[str, Any]:
    """The result of a finished run."""
    return read_object(path / RESULT, "delete it, and --resume writes it again")


def read_made_with(path: Path) -> dict[str, Any] | None:
    """What a run was made with; None for a run of 0.1.0."""
    file = path / MADE_WITH
    return read_object(file, "delete it to resume without comparing the data") if file.exists() else None


@dataclass(frozen=True)
class Run:
    """The content of a run folder. `result` is None until the run is finished; `cut`: the log's last line was cut.

    `problems` says in sentences what is wrong with the log.
    """

    folder: Path
    config: dict[str, Any]
    rounds: list[dict[str, Any]]  # by number
    result: dict[str, Any] | None = None
    cut: bool = False
    problems: tuple[str, ...] = ()

    @property
    def trains(self) -> bool:
        """Whether it is a training, whose settings name the architecture, and not a search."""
        return "architecture" in self.config

    @property
    def number(self) -> int:
        """The number of the last round."""
        return int(self.rounds[-1]["number"])

    def fields(self) -> list[str]:
        """The names of all fields that hold numbers.

        >>> Run(Path("run"), {}, [{"number": 1, "norm": None}, {"number": 2, "loss": 0.5}]).fields()
        ['number', 'loss']
        """
        return list(
            dict.fromkeys(key for one in self.rounds for key, value in one.items() if type(value) in (int, float))
        )

    def series(self, key: str) -> Floats:
        """A field over the rounds, NaN where it is missing or not finite.

        >>> Run(Path("run"), {}, [{"number": 1, "norm": None}, {"number": 2, "norm": 0.5}]).series("norm").tolist()
        [nan, 0.5]
        """
        return np.array([as_float(entry.get(key)) for entry in self.rounds])

    def nulls(self, key: str) -> NDArray[np.bool_]:
        """In which rounds a field was logged as null: its number was not finite.

        >>> Run(Path("run"), {}, [{"number": 1, "norm": None}, {"number": 2}]).nulls("norm").tolist()
        [True, False]
        """
        return np.array([entry.get(key, 0) is None for entry in self.rounds])

    def last(self, key: str) -> Any:
        """The last value of a field, or None.

        >>> Run(Path("run"), {}, [{"number": 1, "entropy": 0.9}, {"number": 2, "entropy": None}]).last("entropy")
        0.9
        """
        return next((entry[key] for entry in reversed(self.rounds) if entry.get(key) is not None), None)

    def alphas(self) -> list[tuple[int, dict[str, Floats]]]:
        """α, with the number of the round, where it is known."""
        known = self.logged_alphas()
        final = as_alpha(RESULT, (self.result or {}).get("alpha"))
        return [*known, (self.number, final)] if final and (not known or known[-1][0] < self.number) else known

    def logged_alphas(self) -> list[tuple[int, dict[str, Floats]]]:
        """α of those rounds that logged it."""
        return [(entry["number"], entry["alpha"]) for entry in self.rounds if entry.get("alpha")]

    def architecture(self) -> Architecture | str | None:
        """The architecture of the result or of the last round; a text that no space can read stays a text.

        A training that has not finished has that of its settings.
        """
        written = (self.result or {}).get("architecture", self.last("architecture"))
        known = self.config.get("architecture") if written is None else written
        try:
            return None if known is None else parse({"architecture": known})  # so it is never the name of a file
        except InputError:
            return None if written is None else str(written)


def read_run(path: Path) -> Run:
    """The run in a folder, finished or not.

    >>> read_run(Path("no-such-run"))
    Traceback (most recent call last):
    idarts.errors.InputError: no-such-run does not exist; expected a run folder, as `idarts search --out DIR` makes it
    """
    expected = "expected a run folder, as `idarts search --out DIR` makes it"
    if not path.exists():
        raise InputError(f"{path} does not exist; {expected}")
    if not (path / CONFIG).is_file():
        raise InputError(f"{path} is not a run folder: it has no {CONFIG}; {expected}")
    config = read_config(path)
    result = read_result(path) if is_finished(path) else None
    lines = read_lines(path)
    for line in lines.every:
        if line.entry:
            line.entry["alpha"] = as_alpha(f"{path / METRICS} line {line.place}", line.entry.get("alpha"))
    rounds = lines.rounds
    if not rounds:
        kind = "train" if "architecture" in config else "search"
        start_it = command(kind, "--resume", "--out", path)
        state = "only damaged lines" if lines.damaged else "no rounds yet"
        raise InputError(f"{path / METRICS} has {state}; wait for the first round, or start it with `{start_it}`")
    return Run(path, config, rounds, result, lines.cut, tuple(lines.problems(_last_round(path, result))))


def _last_round(path: Path, result: dict[str, Any] | None) -> int:
    """The last round that was certainly logged: that of the result or of a checkpoint."""
    known = (result or {}).get("rounds")
    return max([known if type(known) is int else 0, *saved_rounds(path)])


def saved_rounds(path: Path) -> list[int]:
    """The rounds whose checkpoints are in a folder."""
    return [int(file.stem) for file in (path / CHECKPOINTS).glob(f"{'[0-9]' * 8}.pt")]


def current_architecture(path: Path) -> Architecture:
    """The current architecture of a run: that of its result or, before the end, of its last checkpoint.

    Without a checkpoint, the last round counts.
    """
    run = read_run(path)
    if run.result is None:
        saved = saved_rounds(path)
        run = replace(run, rounds=[entry for entry in run.rounds if not saved or entry["number"] <= max(saved)])
    architecture = run.architecture()
    if not isinstance(architecture, Architecture):
        raise InputError(f"{path} has logged no architecture yet; wait for its first rounds")
    return architecture
