"""What the report of a training says: which network, how far it is, and how to use it."""

import shlex
from collections.abc import Iterator

import numpy as np

from idarts.engine.entries import as_float
from idarts.engine.folder import Run
from idarts.pages.about import About, Head, data_name, tested_accuracy
from idarts.pages.measures import TRAINING, Measure, charts
from idarts.pages.notes import about_progress
from idarts.pages.numbers import MISSING, duration, with_interval


def about(run: Run) -> About:
    """The words, tiles, notes, charts and commands of a training's report.

    >>> from pathlib import Path
    >>> config = {"architecture": "DARTS_V2", "data": "digits", "epochs": 2}
    >>> made = about(Run(Path("run"), config, [{"number": 1, "epoch": 0.5, "train_loss": 2.3, "drop_path": 0.0}]))
    >>> made.tiles, [chart.title for chart in made.progress]
    ([('epochs', '0.5 of 2')], ['Loss'])
    """
    return About(
        **head(run)._asdict(),
        architecture_title="The trained architecture",
        notes=list(_notes(run)),
        progress=charts(run, [measure for measure in TRAINING if _used(run, measure)]),
        costs=list(_costs(run)),
        commands=list(_commands(run)),
        trials=[],
    )


def head(run: Run) -> Head:
    """What a training's report begins with.

    >>> from pathlib import Path
    >>> head(Run(Path("run"), {"architecture": "DARTS_V2", "data": "digits"}, [{"number": 1}])).subtitle
    'trained from scratch on digits'
    """
    return Head(
        state="Training finished" if run.result is not None else "Training in progress",
        heading=_name(run),
        subtitle=f"trained from scratch on {data_name(run)}",
        tiles=list(_tiles(run)),
    )


def _used(run: Run, measure: Measure) -> bool:
    """A setting that is 0 throughout, e.g. drop-path, is not used."""
    return any(run.series(key).any() for key in measure.fields.values())


def _name(run: Run) -> str:
    return getattr(run.architecture(), "space", None) or str(run.config["architecture"])


def _tiles(run: Run) -> Iterator[tuple[str, str]]:
    result = run.result or {}
    done, planned = as_float(run.last("epoch")), run.config.get("epochs")
    epochs = f"{round(done, 2):g}" if done >= 0 else MISSING
    yield "epochs", f"{epochs} of {planned:,}" if isinstance(planned, int) else epochs
    if (test := tested_accuracy(run)) is not None:
        yield "test accuracy, with its 95 % interval", test
    elif run.last("valid_accuracy") is not None:
        held = with_interval(as_float(run.last("valid_accuracy")), as_float(run.last("valid_images")))
        yield f"held-out accuracy{', with its 95 % interval' if '(' in held else ''}", held
    if "parameters" in result:
        yield "parameters", f"{result['parameters']:,}"


def _costs(run: Run) -> Iterator[tuple[str, str]]:
    done, seconds, planned = as_float(run.last("epoch")), as_float(run.last("seconds")), run.config.get("epochs")
    if done > 0 and seconds > 0:
        yield "time per epoch", duration(seconds / done)
        if run.result is None and isinstance(planned, int):
            yield "time left at this pace", duration((planned - done) * seconds / done)


def _notes(run: Run) -> Iterator[str]:
    yield from about_progress(run, "training")
    skipped = int(np.nansum(run.series("skipped")))
    if skipped:
        yield (
            f"{skipped:,} steps had a loss or gradient that was not finite and were skipped. "
            "If there are many: lower weights.rate, or use precision float32."
        )


def _commands(run: Run) -> Iterator[tuple[str, str]]:
    folder, data = shlex.quote(str(run.folder)), shlex.quote(str(run.config.get("data", "DATA")))
    if run.result is None:
        yield "Resume the training from its last checkpoint", f"idarts train --resume --out {folder}"
        return
    yield "See which classes it confuses", f"idarts evaluate {folder} --data {data}"
    yield "Classify image files", f"idarts predict {folder} IMAGE …"
    yield "Export the network for other programs", f"idarts export {folder} -o exported --format onnx"
    yield "Measure its speed and memory on this machine", f"idarts profile {folder}"
    yield "Train the same cells on other data", f"idarts train {folder} --data DATA"
