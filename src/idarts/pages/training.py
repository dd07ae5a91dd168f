"""What the report of a training says in place of a search's: the network trained, how it went, how to use it."""

import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from idarts.engine.folder import Run, as_float
from idarts.pages.chart import Chart, chart, value_text


def about(run: Run) -> dict[str, Any]:
    """The page's words, tiles, notes, curves and commands.

    >>> from pathlib import Path
    >>> config = {"architecture": "DARTS_V2", "data": "digits", "epochs": 2}
    >>> found = about(Run(Path("run"), config, [{"number": 1, "epoch": 0.5, "train_loss": 2.3}]))
    >>> found["tiles"], [chart.title for chart in found["curves"]]
    ([('epochs', '0.5 of 2')], ['Loss'])
    """
    return {
        "state": "Training finished" if run.result is not None else "Training in progress",
        "heading": _name(run),
        "told": f"trained from scratch on {run.config.get('data', 'own data')}",
        "architecture_title": "The trained architecture",
        "across": "epochs",
        "tiles": list(_tiles(run)),
        "notes": list(_notes(run)),
        "curves": curves(run),
        "commands": list(_commands(run)),
        "seconds": list(_seconds(run)),
    }


def curves(run: Run) -> list[Chart]:
    """How the training went, over epochs.

    >>> from pathlib import Path
    >>> rounds = [{"number": n, "epoch": n / 2, "train_accuracy": 0.5, "rate": 0.1} for n in (1, 2)]
    >>> [found.title for found in curves(Run(Path("run"), {}, rounds))]
    ['Accuracy', 'Learning rate']
    """
    epochs, across = run.series("epoch").tolist(), "epochs"
    drawn = [
        chart(
            "Loss",
            epochs,
            {"training": run.series("train_loss"), "held out": run.series("valid_loss")},
            "The training loss contains what the settings add: smoothed labels, the auxiliary head, dropped paths. "
            "Both should fall; if the held-out one rises for long, the network learns by heart.",
            across=across,
            sparse="held out",
        ),
        chart(
            "Accuracy",
            epochs,
            {"training": run.series("train_accuracy"), "held out": run.series("valid_accuracy")},
            "Held-out images are neither cropped nor cut, so that they may be ahead of the training images. "
            "The gap at the end is what the network has learnt by heart.",
            percent=True,
            across=across,
            sparse="held out",
        ),
        chart(
            "Learning rate",
            epochs,
            {"rate": run.series("rate")},
            "Most of the accuracy is gained while it is small, in the last third.",
            across=across,
        ),
        chart(
            "Drop-path",
            epochs,
            {"probability": run.series("drop_path")} if run.series("drop_path").any() else {},
            "With this probability an operation's output is left out for an image; it rises with the epochs.",
            across=across,
        ),
    ]
    return [found for found in drawn if found]


def _name(run: Run) -> str:
    architecture = (run.result or {}).get("architecture")
    if isinstance(architecture, Mapping) and architecture.get("space") != "choice":
        return str(architecture["space"])
    found = run.architecture()
    return getattr(found, "space", None) or str(run.config["architecture"])


def _tiles(run: Run) -> Iterator[tuple[str, str]]:
    result = run.result or {}
    done, total = as_float(run.last("epoch")), run.config.get("epochs")
    yield "epochs", f"{done:g} of {total:,}" if isinstance(total, int) else f"{done:g}"
    test = result.get("test")
    if isinstance(test, Mapping) and "accuracy" in test:
        yield "test accuracy", value_text(as_float(test["accuracy"]), percent=True)
    elif run.last("valid_accuracy") is not None:
        yield "held-out accuracy", value_text(as_float(run.last("valid_accuracy")), percent=True)
    if "parameters" in result:
        yield "parameters", f"{result['parameters']:,}"


def _seconds(run: Run) -> Iterator[tuple[str, float]]:
    done, spent, total = as_float(run.last("epoch")), as_float(run.last("seconds")), run.config.get("epochs")
    if done > 0 and spent > 0:
        yield "time of an epoch", spent / done
        if run.result is None and isinstance(total, int):
            yield "time left at this pace", (total - done) * spent / done


def _notes(run: Run) -> Iterator[str]:
    if run.result is None:
        yield "The training is in progress, or was stopped: there is no result yet. This is what there is so far."
    if run.cut:
        yield "The last line of metrics.jsonl was cut in the middle of writing, as by a kill; that round is not shown."
    skipped = int(sum(as_float(found.get("skipped", 0)) for found in run.rounds))
    if skipped:
        yield (
            f"{skipped:,} steps had a loss or gradient that was not finite and moved nothing. "
            "If there are many: lower weights.rate, or use precision float32."
        )


def _commands(run: Run) -> Iterator[tuple[str, str]]:
    folder = shlex.quote(str(run.folder))
    if run.result is None:
        yield "Go on with the training from its last checkpoint", f"idarts train --resume --out {folder}"
        return
    yield "Look closer at what it confuses", f"idarts evaluate {folder} --data {_data(run)}"
    yield "Name the classes of image files", f"idarts predict {folder} IMAGE …"
    yield "Hand the network to other programs", f"idarts export {folder} -o exported --format onnx"
    yield "Measure what it costs on this machine", f"idarts profile {folder}"
    yield "Train the same cells on other data", f"idarts train {folder} --data DATA"


def _data(run: Run) -> str:
    return shlex.quote(str(run.config.get("data", "DATA")))
