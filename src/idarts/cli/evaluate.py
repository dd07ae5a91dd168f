"""`idarts evaluate`: a trained network on labelled images."""

import json
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.table import Table
from torch import nn

from idarts.cli.console import console, printable, say
from idarts.cli.parser import Parser, add_option, one_of
from idarts.data import ImageData, load_typed, source_names
from idarts.engine.device import device_named
from idarts.engine.folder import EVALUATION, EVALUATION_PAGE, is_run, read_config
from idarts.errors import InputError
from idarts.files import write_whole
from idarts.fitting import record
from idarts.pages.evaluation import about_split, page
from idarts.pages.numbers import MISSING, interval, number, percent
from idarts.training import data_for, find_model, load
from idarts.training.card import card_of
from idarts.training.choosing import PARTS, divided
from idarts.training.evaluation import confusions, examine

_MATRIX = 12  # classes up to which the confusion matrix fits a terminal
_HEAD = 4  # letters of a class that fit above its column; longer ones are numbered
NOT_BY_NAME = ("python", "arrays", "raw", "")  # what a run calls data that came from Python
_CLASSES = 20  # rows of the table of classes at most: the worst


def add_arguments(parser: Parser) -> None:
    """A network, data, and where to write the results."""
    parser.add_argument("run", metavar="RUN", help="the folder of a fit or of a training run, or a model folder")
    sources = f"data source: {', '.join(source_names())} (default: the run's own)"
    parser.add_argument("--data", help=sources)
    add_option(parser, "--data-root", help="folder of the data's files (default: the run's own, or IDARTS_DATA)")
    part = "test: images it was never trained on; valid, train: those of its training; all: every image of the data"
    parser.add_argument("--part", type=one_of("--part", PARTS), default="test", help=part)
    parser.add_argument("--out", help=f"folder for {EVALUATION} and {EVALUATION_PAGE} (default: RUN)")
    parser.add_argument("--batch", type=int, default=250, help="images in a batch")
    parser.add_argument("--device", default="auto", help="auto, cpu, or a device such as cuda")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")


def run(args: Namespace) -> None:
    """Evaluate, print the results, and write them as JSON and as a page."""
    if args.data:
        load_typed(args.data)
    net = load(args.run, device=device_named(args.device))
    data = _data(net, args, args.data, args.data_root) if args.data else _own_data(net, args)
    results, mistakes = examine(net, data, args.part, batch=args.batch)
    out = Path(args.out or args.run)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{out} is not a folder that can be written to: {error.strerror}") from None
    text, html = json.dumps(results, indent=1, ensure_ascii=False), page(results, args.run, mistakes)
    write_whole(out / EVALUATION, f"{text}\n")
    write_whole(out / EVALUATION_PAGE, html)
    if args.json:
        say(json.dumps(results, ensure_ascii=False))
        return
    _print(results)
    say(f"results: {out / EVALUATION}")
    say(f"page:    {out / EVALUATION_PAGE}")


def _data(net: nn.Module, args: Namespace, source: str, root: str | None) -> ImageData:
    return divided(net, data_for(card_of(net), source, root, hold_out=0), args.part)


def _own_data(net: nn.Module, args: Namespace) -> ImageData:
    """The data that the run was trained on. Its settings are next to the model folder."""
    model = find_model(args.run)
    if (model.parent / record.FIT).is_file():
        config = record.read(model.parent)["settings"]
    elif is_run(model.parent):
        config = read_config(model.parent)
    else:
        raise InputError(f"{args.run} does not say where its data is; give --data, such as folder:PATH")
    source = config.get("data")
    if source in NOT_BY_NAME or not isinstance(source, str):
        raise InputError(f"{args.run} was trained on data from Python; give --data, such as folder:PATH")
    try:
        return _data(net, args, source, args.data_root or config.get("data_root"))
    except InputError as error:
        raise InputError(f"the data of {args.run} cannot be read ({error}); give it with --data") from None


def _print(results: dict[str, Any]) -> None:
    screen = console()
    data, classes = results["data"], results["classes"]
    title = f"{data['images']:,} {data['part']} images of {data['source']}"
    screen.print(title, style="bold", soft_wrap=True)
    if about := about_split(data):
        screen.print(about, soft_wrap=True)
    accuracy, top5 = results["accuracy"], results["top5"]
    screen.print(f"accuracy {percent(accuracy)} (95 % interval {interval(accuracy, data['images'])})", end="")
    screen.print(f", top-5 {percent(top5)} ({interval(top5, data['images'])})" if len(classes) > 5 else "", end="")
    screen.print(f", loss {number(results['loss'])}", end="")
    screen.print(f", calibration error {percent(results['calibration']['error'])}")
    screen.print(_class_table(classes))
    if len(classes) <= _MATRIX:
        screen.print(_matrix(results))
    else:
        screen.print(_mistakes(results))
    screen.print(_bins(results["calibration"]["bins"]))


def _class_table(classes: list[dict[str, Any]]) -> Table:
    title = "Classes"
    if len(classes) > _CLASSES:
        title = f"The {_CLASSES} classes with the lowest F1, of {len(classes)}"
        classes = sorted(classes, key=lambda one: 1.0 if one["f1"] is None else one["f1"])[:_CLASSES]
    rows = [
        (
            printable(one["label"]),
            f"{one['images']:,}",
            percent(one["recall"]),
            interval(one["recall"], one["images"]) or MISSING,
            percent(one["precision"]),
            percent(one["f1"]),
        )
        for one in classes
    ]
    return _table(title, ("class", "images", "recall", "95 % interval", "precision", "f1"), rows)


def _matrix(results: dict[str, Any]) -> Table:
    names = [printable(one["label"]) for one in results["classes"]]
    heads = names
    if max(map(len, names)) > _HEAD:
        heads = [str(place) for place in range(len(names))]
        names = [f"{place} {name}" for place, name in zip(heads, names, strict=True)]
    rows = [
        (name, *(str(count) if count else "·" for count in counts))
        for name, counts in zip(names, results["confusion"], strict=True)
    ]
    return _table("Confusion matrix (rows: true classes, columns: predicted classes)", ("", *heads), rows)


def _mistakes(results: dict[str, Any]) -> Table:
    rows = [
        (printable(true), printable(taken), f"{count:,}", percent(share))
        for true, taken, count, share in confusions(results)
    ]
    return _table("Most frequent mistakes", ("true", "predicted", "images", "of its class"), rows)


def _bins(bins: list[dict[str, Any]]) -> Table:
    rows = [
        (
            f"{100 * one['low']:.0f}–{100 * one['high']:.0f} %",
            f"{one['count']:,}",
            percent(one["confidence"]),
            percent(one["accuracy"]),
            interval(one["accuracy"], one["count"]),
        )
        for one in bins
        if one["count"]
    ]
    return _table("Calibration", ("confidence", "images", "mean confidence", "accuracy", "95 % interval"), rows)


def _table(title: str, columns: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> Table:
    table = Table(*columns, title=title, title_justify="left")
    for column in table.columns[1:]:
        column.justify = "right"
    for row in rows:
        table.add_row(*row)
    return table
