"""Where the numbers of a run go besides its folder: one logger a file, chosen by the setting `log`.

A logger is a class (or a function without arguments that makes an object) with the four methods of `Logger`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from idarts.arch import as_text, parse
from idarts.engine.settings import PartOf, dotted
from idarts.errors import InputError
from idarts.registry import Registry

Outcome: TypeAlias = Literal["finished", "stopped", "failed"]  # stopped: by a signal, to be resumed


@dataclass(frozen=True)
class Started:
    """What a logger receives when a run starts or resumes."""

    path: Path  # the run folder
    kind: str  # search or train
    settings: Mapping[str, Any]  # groups are mappings
    first: int = 1  # number of the next round; above 1 in a run that resumes
    id: str | None = None  # in a run that resumes: what `start` returned before


class Logger:
    """Receives the settings once, the numbers of each round, and the result. This one ignores them: `--log none`.

    Derive your own from it, and override what you need. An error in `round`, `result` or `end` becomes a warning, and
    the run continues without its logger.

    >>> class Printer(Logger):
    ...     def round(self, entry):
    ...         print(entry["number"], entry["train_loss"])
    >>> Printer().round({"number": 1, "train_loss": 2.5})
    1 2.5
    """

    def start(self, run: Started) -> str | None:
        """Called before the first round. What it returns comes back as `run.id` if the run resumes."""
        return None

    def round(self, entry: Mapping[str, Any]) -> None:
        """Called after every round with its line of metrics.jsonl."""

    def result(self, result: Mapping[str, Any]) -> None:
        """Called with the content of result.json."""

    def end(self, outcome: Outcome) -> None:
        """Called last."""


LOGGERS: Registry[Any] = Registry("logger", "idarts.engine.loggers")
LOGGERS.add("none", Logger)

LogName = Annotated[str, PartOf(lambda: LOGGERS)]  # the type of the setting `log`


def make_logger(name: str) -> Logger:
    """The logger of a name; an error of one line if its package is missing.

    >>> type(make_logger("none")).__name__
    'Logger'
    """
    try:
        logger: Logger = LOGGERS[name]()
    except TypeError as error:  # not a class, or one that needs arguments
        raise InputError(
            f"logger {name} cannot be made without arguments ({error}); pass a class or function"
        ) from error
    missing = [method for method in ("start", "round", "result", "end") if not callable(getattr(logger, method, None))]
    if missing:
        raise InputError(f"logger {name} has no method {missing[0]!r}; derive it from idarts.engine.loggers.Logger")
    return logger


def package(name: str, log: str) -> Any:
    """The package that a logger needs, which is an extra."""
    try:
        return import_module(name)
    except ImportError as error:
        raise InputError(
            f"log is {log}, which cannot be imported ({error}); pip install 'idarts[{log}]', or use --log none"
        ) from None


def numbers(entry: Mapping[str, Any]) -> dict[str, float]:
    """The numbers of a round by their tags; the part before the slash is the group of charts.

    >>> numbers({"number": 3, "train_loss": 0.5, "rate": 0.1, "norm": None, "architecture": "text"})
    {'loss/train': 0.5, 'run/rate': 0.1}
    """
    values = {name: value for name, value in entry.items() if name != "number" and isinstance(value, int | float)}
    return {_tag(name): value for name, value in values.items()}


def _tag(name: str) -> str:
    part, _, measure = name.partition("_")
    return f"{measure}/{part}" if part in ("train", "valid") and measure else f"run/{name}"


def facts(result: Mapping[str, Any]) -> dict[str, float | str]:
    """The numbers and texts of a result, without what the settings and the rounds have said already.

    >>> facts({"accuracy": 0.9, "test": {"loss": 0.3, "interval": [0.8, 1.0]}, "config": {"seed": 1}, "table": None})
    {'accuracy': 0.9, 'test.loss': 0.3}
    """
    left_out = ("config", "metrics", "alpha", "trials", "versions", "data", "macro", "architecture")
    flat = dotted({name: value for name, value in result.items() if name not in left_out})
    said: dict[str, float | str] = {name: value for name, value in flat.items() if isinstance(value, int | float | str)}
    return said if result.get("architecture") is None else {**said, "architecture": _text(result["architecture"])}


def _text(architecture: Any) -> str:
    try:
        return as_text(parse(architecture))
    except InputError:  # of a space that has no text form
        return str(architecture)
