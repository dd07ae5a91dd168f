"""TensorBoard's event files: the numbers of every round as scalars, if the setting `log` is `tensorboard`."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from idarts.engine.folder import EVENTS
from idarts.errors import InputError

Log = Literal["none", "tensorboard"]


def require_installed(log: Log) -> None:
    """Refuse to log for TensorBoard where it is not installed."""
    if log == "tensorboard":
        _summary_writer()


@contextmanager
def event_log(log: Log, path: Path, first: int) -> Iterator[Callable[[Mapping[str, Any]], None]]:
    """A function that writes the numbers of a round's log entry as scalars; the step is the round's number.

    `first` is the number of the next round. Readers forget that round and later ones of earlier event files, so a run
    that resumes from a checkpoint has every step once.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, event_log("tensorboard", Path(folder), first=1) as write:
    ...     write({"number": 1, "valid_loss": 2.4})
    ...     b"loss/valid" in next(Path(folder).iterdir()).read_bytes()
    True
    """
    if log == "none":
        yield lambda _: None
        return
    with _summary_writer()(str(path), purge_step=first, filename_suffix=EVENTS) as writer:

        def write(entry: Mapping[str, Any]) -> None:
            for name, value in entry.items():
                if name != "number" and isinstance(value, int | float):
                    writer.add_scalar(tag(name), value, entry["number"])
            writer.flush()  # a kill must not lose rounds before a checkpoint

        yield write


def tag(name: str) -> str:
    """The tag of a field; the part before the slash is the group of charts.

    >>> tag("train_loss"), tag("valid_accuracy"), tag("rate")
    ('loss/train', 'accuracy/valid', 'run/rate')
    """
    part, _, measure = name.partition("_")
    return f"{measure}/{part}" if part in ("train", "valid") and measure else f"run/{name}"


def _summary_writer() -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter  # noqa: PLC0415 (an extra)
    except ImportError as error:
        raise InputError(
            f"log is tensorboard, which cannot be imported ({error}); "
            "pip install 'idarts[tensorboard]', or use --log none"
        ) from None
    return SummaryWriter
