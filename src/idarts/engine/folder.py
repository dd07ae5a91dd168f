"""The run folder. Only this module knows its files; it imports without torch, so that pages can read runs.

config.json                the settings, written first
split.safetensors          which images the run uses, by content (`idarts.data.content`)
metrics.jsonl              one line for each round
checkpoints/               the last two states (`idarts.engine.checkpoint`)
events.out.tfevents.*      for TensorBoard, if the setting `log` says so (`idarts.engine.loggers`)
logger.json                the name that the run has in another tool, if `log` names one
result.json                written last: a run with a result is finished
model/                     the network of a finished training (`idarts.training.model_folder`)
report.html, evaluation.*  added by other commands
.lock                      held by the process that runs here (`idarts.engine.lock`)
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from reprlib import repr as short
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idarts.arch import Architecture, parse
from idarts.engine.entries import Floats, NotJsonError, as_alpha, as_float, parse_entry
from idarts.engine.lock import LOCK, locked
from idarts.errors import IdartsError, InputError, command
from idarts.files import dump_json, finite, load_json, open_safely, write_whole

CONFIG, METRICS, RESULT, CHECKPOINTS = "config.json", "metrics.jsonl", "result.json", "checkpoints"
LOGGER, REPORT = "logger.json", "report.html"
EVENTS = ".idarts"  # ends the name of our event files
MODEL, WEIGHTS, ONNX, TORCH_EXPORT = "model", "model.safetensors", "model.onnx", "model.pt2"
EVALUATION, EVALUATION_PAGE = "evaluation.json", "evaluation.html"
SPLIT, README = "split.safetensors", "README.md"
MODEL_FILES = (CONFIG, WEIGHTS, ONNX, TORCH_EXPORT, SPLIT, README, EVALUATION, EVALUATION_PAGE)
_WRITTEN = (  # what `clear` deletes; the settings last, because they make a folder a run
    f"{CHECKPOINTS}/{'[0-9]' * 8}.pt",
    f"events.out.tfevents.*{EVENTS}",
    LOGGER,
    METRICS,
    RESULT,
    SPLIT,
    *(f"{MODEL}/{name}" for name in MODEL_FILES),
    EVALUATION,
    EVALUATION_PAGE,
    REPORT,
    CONFIG,
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
        raise InputError(f"{path} holds no run to resume; remove --resume to start one")
    if exists and not resume and not overwrite:
        raise InputError(f"{path} already holds a run; continue it with --resume, or replace it with --overwrite")
    if path.exists() and not exists and (not path.is_dir() or any(not p.name.startswith(".") for p in path.iterdir())):
        raise InputError(f"{path} exists and is not a run; choose a new folder with --out")
    with locked(path, "run"):
        for partial in (
            file for pattern in (".*.json*.*", f".{SPLIT}.*") for file in path.glob(pattern)
        ):  # left by a kill while a file was written
            partial.unlink(missing_ok=True)
        yield


def clear(path: Path) -> None:
    """Delete all files that a run wrote, and no others."""
    for pattern in _WRITTEN:
        for file in path.glob(pattern):
            file.unlink(missing_ok=True)


def start(path: Path, config: Mapping[str, Any], files: Mapping[str, bytes] | None = None) -> None:
    """Replace the run in a folder, if there is one, by a new one with these settings and files."""
    clear(path)
    for name, content in (files or {}).items():
        write_whole(path / name, content)
    write_whole(path / CONFIG, dump_json(config))


def extend(path: Path, settings: Mapping[str, Any], entry: Mapping[str, Any]) -> None:
    """Change settings of the run in a folder, which is not finished then, and add an entry to its history."""
    config = read_config(path)
    changed = {**config, **settings, "history": [*config.get("history", []), entry]}
    for name in (RESULT, REPORT):
        (path / name).unlink(missing_ok=True)
    write_whole(path / CONFIG, dump_json(changed))


@contextmanager
def round_log(path: Path) -> Iterator[Callable[[Mapping[str, Any]], None]]:
    """A function that appends the entry of one round to the log; it is on disk when the function returns."""
    with _writing(path / METRICS):
        file = open_safely(path / METRICS, "a")

    def append(entry: Mapping[str, Any]) -> None:
        with _writing(path / METRICS):
            file.write(json.dumps(finite(entry)) + "\n")
            file.flush()

    try:
        yield append
    finally:
        with suppress(OSError):  # a full disk fails a second time here
            file.close()


@contextmanager
def _writing(file: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = f"cannot write {file} ({error.strerror})"
        raise IdartsError(f"{reason}; correct that, then continue with --resume") from None


def drop_rounds(path: Path, after: int) -> None:
    """Delete the rounds after a number from the log: a resumed run computes them again."""
    kept = [json.dumps(entry) + "\n" for entry in read_rounds(path) if entry["number"] <= after]
    write_whole(path / METRICS, "".join(kept).encode())


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
    identity = _read_object(path / LOGGER, "delete it: the run then starts anew in its logger").get("id")
    return identity if isinstance(identity, str) else None


def read_config(path: Path) -> dict[str, Any]:
    """The settings that a run started with."""
    return _read_object(path / CONFIG, "put it back, or start again with --overwrite")


def read_result(path: Path) -> dict[str, Any]:
    """The result of a finished run."""
    return _read_object(path / RESULT, "delete it, and --resume writes it again")


def read_rounds(path: Path) -> list[dict[str, Any]]:
    """The log's rounds by number. A last line that a kill cut off is left out."""
    return _by_number(_read_lines(path / METRICS)[0])


@dataclass(frozen=True)
class Run:
    """The content of a run folder. `result` is None until the run is finished; `cut`: the log's last line was cut."""

    folder: Path
    config: dict[str, Any]
    rounds: list[dict[str, Any]]  # by number
    result: dict[str, Any] | None = None
    cut: bool = False

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
        """The architecture of the result or of the last round; a text that no space can read stays a text."""
        written = (self.result or {}).get("architecture", self.last("architecture"))
        try:
            return None if written is None else parse(written)
        except InputError:
            return str(written)


def read_run(path: Path) -> Run:
    """The run in a folder, finished or not.

    >>> read_run(Path("no-such-run"))
    Traceback (most recent call last):
    idarts.errors.InputError: no-such-run is not there; expected a run folder, as `idarts search --out DIR` makes it
    """
    expected = "expected a run folder, as `idarts search --out DIR` makes it"
    if not path.exists():
        raise InputError(f"{path} is not there; {expected}")
    if not (path / CONFIG).is_file():
        raise InputError(f"{path} is not a run folder: it has no {CONFIG}; {expected}")
    config = read_config(path)
    result = read_result(path) if is_finished(path) else None
    lines, cut = _read_lines(path / METRICS)
    for line, entry in lines:
        entry["alpha"] = as_alpha(f"{path / METRICS} line {line}", entry.get("alpha"))
    if not lines:
        kind = "train" if "architecture" in config else "search"
        start_it = command(kind, "--resume", "--out", path)
        raise InputError(f"{path / METRICS} has no rounds yet; wait for the first one, or start it with `{start_it}`")
    return Run(path, config, _by_number(lines), result, cut)


def current_architecture(path: Path) -> Architecture:
    """What the run in a folder stands for now: its result or, before the end, its α at the last checkpoint.

    Without a checkpoint, the last round counts.
    """
    run = read_run(path)
    if run.result is None:
        saved = [int(file.stem) for file in (path / CHECKPOINTS).glob(f"{'[0-9]' * 8}.pt")]
        run = replace(run, rounds=[entry for entry in run.rounds if not saved or entry["number"] <= max(saved)])
    architecture = run.architecture()
    if not isinstance(architecture, Architecture):
        raise InputError(f"{path} has logged no architecture yet; wait for its first rounds")
    return architecture


def _read_object(file: Path, remedy: str) -> dict[str, Any]:
    return parse_object(file, _read(file), remedy)


def parse_object(file: Path, content: bytes, remedy: str) -> dict[str, Any]:
    """The object that a JSON file of a run holds; an InputError says what is wrong with it, and what to do."""
    try:
        data = load_json(content.decode())
    except (InputError, UnicodeDecodeError) as error:
        raise InputError(f"{file} is damaged ({error}); {remedy}") from None
    if not isinstance(data, dict):
        raise InputError(f"{file} holds {short(data)}, expected an object with keys; {remedy}")
    return data


def _read_lines(file: Path) -> tuple[list[tuple[int, dict[str, Any]]], bool]:
    """The entries of a log with the numbers of their lines, and whether a kill cut the last line off."""
    lines = [line for line in _read(file).split(b"\n") if line.strip()] if file.is_file() else []
    entries: list[tuple[int, dict[str, Any]]] = []
    for line, text in enumerate(lines, start=1):
        try:
            entries.append((line, parse_entry(f"{file} line {line}", text)))
        except NotJsonError:
            if line < len(lines):
                raise
            return entries, True
    return entries, False


def _by_number(lines: list[tuple[int, dict[str, Any]]]) -> list[dict[str, Any]]:
    """Each round once, as it was logged last: a round may have run again after a kill."""
    rounds = {entry["number"]: entry for _, entry in lines}
    return [rounds[number] for number in sorted(rounds)]


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror}") from None
