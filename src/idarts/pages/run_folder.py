"""Reading a run folder, finished or not, as a search or a training leaves it or as a kill left it."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from reprlib import repr as short
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idarts.arch import Architecture, parse
from idarts.arch.forms import RESULT
from idarts.arch.json_form import load
from idarts.errors import InputError

CONFIG, METRICS = "config.json", "metrics.jsonl"
_LARGEST = 1e30  # beyond it a number is as good as infinite, and differences would overflow

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Run:
    """What a run folder holds. `result` is None while the search goes on; `cut` says that the last line was."""

    folder: Path
    config: dict[str, Any]
    rounds: list[dict[str, Any]]  # by number
    result: dict[str, Any] | None = None
    cut: bool = False

    @property
    def trains(self) -> bool:
        """Whether it is the training of an architecture, which its settings then name."""
        return "architecture" in self.config

    def series(self, key: str) -> Floats:
        """A field over the rounds, NaN where it is missing or not finite.

        >>> Run(Path("run"), {}, [{"number": 1, "norm": None}, {"number": 2, "norm": 0.5}]).series("norm").tolist()
        [nan, 0.5]
        """
        return np.array([as_float(found.get(key)) for found in self.rounds])

    def last(self, key: str) -> Any:
        """A field's last value that is there.

        >>> Run(Path("run"), {}, [{"number": 1, "entropy": 0.9}, {"number": 2, "entropy": None}]).last("entropy")
        0.9
        """
        return next((found[key] for found in reversed(self.rounds) if found.get(key) is not None), None)

    def alphas(self) -> list[tuple[int, dict[str, Floats]]]:
        """The rounds whose α is known, and their α."""
        known = [(found["number"], found["alpha"]) for found in self.rounds if found.get("alpha")]
        final = _alpha(RESULT, (self.result or {}).get("alpha"))
        number = self.rounds[-1]["number"]
        return [*known, (number, final)] if final and (not known or known[-1][0] < number) else known

    def architecture(self) -> Architecture | str | None:
        """What was found, or what would be now; text that no space knows stays text."""
        found = (self.result or {}).get("architecture", self.last("architecture"))
        try:
            return None if found is None else parse(found)
        except InputError:
            return str(found)


def read_run(folder: Path) -> Run:
    """The run in a folder; an InputError says what to do about a folder that holds none.

    >>> read_run(Path("no-such-run"))
    Traceback (most recent call last):
    idarts.errors.InputError: no-such-run is not there; expected a run folder, which `idarts search --out DIR` makes
    """
    if not folder.exists():
        raise InputError(f"{folder} is not there; expected a run folder, which `idarts search --out DIR` makes")
    if not (folder / CONFIG).is_file():
        raise InputError(
            f"{folder} is no run folder: it has no {CONFIG}; expected what `idarts search --out DIR` makes"
        )
    config = _object(folder / CONFIG, "put it back, or search again into a new folder")
    result = folder / RESULT
    finished = _object(result, "delete it, and `idarts search --resume` writes it anew") if result.is_file() else None
    rounds, cut = _read_rounds(folder / METRICS)
    if not rounds:
        raise InputError(
            f"{folder / METRICS} has no rounds yet; wait for the first one, or start it with "
            f"`idarts search --resume --out {folder}`"
        )
    return Run(folder, config, rounds, finished, cut)


def as_float(value: object) -> float:
    """A number as a float, anything else and what is not finite as NaN.

    >>> as_float(2), as_float(float("inf")), as_float("2")
    (2.0, nan, nan)
    """
    number = float(value) if isinstance(value, int | float) and not isinstance(value, bool) else np.nan
    return number if abs(number) < _LARGEST else np.nan


def _object(file: Path, remedy: str) -> dict[str, Any]:
    try:
        found = load(_read(file).decode())
    except (InputError, UnicodeDecodeError) as error:
        raise InputError(f"{file} is damaged ({error}); {remedy}") from None
    if not isinstance(found, dict):
        raise InputError(f"{file} holds {short(found)}, expected an object with keys; {remedy}")
    return found


def _read_rounds(file: Path) -> tuple[list[dict[str, Any]], bool]:
    """The rounds by number, and whether the last line was cut: a kill may come in the middle of writing it."""
    lines = [line for line in _read(file).split(b"\n") if line.strip()] if file.is_file() else []
    rounds: dict[int, dict[str, Any]] = {}
    for position, line in enumerate(lines, start=1):
        try:
            found = load(line.decode())
        except (InputError, UnicodeDecodeError) as error:
            if position == len(lines):
                return _sorted(rounds), True
            raise InputError(f"{file} line {position} is damaged ({error}); delete that line") from None
        where = f"{file} line {position}"
        number = found.get("number") if isinstance(found, dict) else None
        if type(number) is not int or number < 1:
            raise InputError(f"{where} is {short(found)}, expected an object with a round's number; delete that line")
        found["alpha"] = _alpha(where, found.get("alpha"))
        rounds[number] = found  # a round that was run again after a kill counts as it was last
    return _sorted(rounds), False


def _sorted(rounds: Mapping[int, dict[str, Any]]) -> list[dict[str, Any]]:
    return [rounds[number] for number in sorted(rounds)]


def _alpha(where: str, alpha: Any) -> dict[str, Floats]:
    """As arrays, which are a tenth of the size of lists."""
    if alpha is None:
        return {}
    try:
        matrices = {name: np.array(rows, dtype=np.float64) for name, rows in alpha.items()}
    except (AttributeError, TypeError, ValueError):
        matrices = {"": np.empty(0)}
    if not all(matrix.ndim == 2 and matrix.size for matrix in matrices.values()):
        raise InputError(f"{where}: alpha is {short(alpha)}, expected a matrix for each group; delete that line")
    return matrices


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror}") from None
