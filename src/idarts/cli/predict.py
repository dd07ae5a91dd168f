"""`idarts predict`: the classes of image files."""

import json
import os
import sys
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

from idarts.cli.console import printable, say
from idarts.cli.parser import Parser
from idarts.engine.device import device_named
from idarts.errors import InputError, WriteError
from idarts.files import csv_text, utf8, write_whole
from idarts.training import Prediction, load, predict
from idarts.training.prediction import image_files

_WIDEST = 60  # of the column of file names


def add_arguments(parser: Parser) -> None:
    """A network, images, and where to write their classes."""
    parser.add_argument("model", metavar="MODEL", help="the folder of a fit or of a training run, or a model folder")
    parser.add_argument(
        "images", nargs="+", metavar="IMAGE", help="image files of any kind and size, folders of them, or patterns"
    )
    parser.add_argument("--top", type=int, default=5, help="number of classes for each image")
    parser.add_argument("--csv", metavar="FILE", help="write a table to this file, a row for each image")
    parser.add_argument("--jsonl", metavar="FILE", help="write JSON to this file, a line for each image")
    parser.add_argument("--json", action="store_true", help="print JSON, a line for each image")
    parser.add_argument("--device", default="auto", help="auto, cpu, or a device such as cuda")


def run(args: Namespace) -> None:
    """Print and write the classes of each image; images that cannot be read are listed last, with exit code 2."""
    targets = {Path(name): form for name, form in ((args.csv, as_csv), (args.jsonl, as_jsonl)) if name}
    for target in targets:
        _require_writable(target)
    net = load(args.model, device=device_named(args.device))
    files = image_files(args.images)
    width = min(max(len(printable(str(file))) for file in files), _WIDEST)
    done: list[Prediction] = []
    for prediction in predict(net, files, args.top):
        if targets or prediction.problem is not None:
            done.append(prediction)
        if args.json:
            say(as_jsonl([prediction]), end="")
        elif prediction.problem is None and not targets:
            say(f"{printable(str(prediction.file)):<{width}}  {_classes(prediction)}")
    for target, form in targets.items():
        _write(target, form(done))
        say(f"written: {target}", file=sys.stderr if args.json else sys.stdout)
    _report([one.problem for one in done if one.problem is not None], len(files))


def as_jsonl(predictions: Sequence[Prediction]) -> str:
    r"""A line of JSON for each image; a byte in a file's name that is no UTF-8 becomes an escape.

    >>> as_jsonl([Prediction(Path("a.png"), (("cat", 0.75),))])
    '{"file": "a.png", "classes": [{"label": "cat", "probability": 0.75}]}\n'
    """
    lines = (json.dumps(_data(one), ensure_ascii=False) + "\n" for one in predictions)
    return utf8("".join(lines)).decode()


def as_csv(predictions: Sequence[Prediction]) -> str:
    r"""A table with a row for each image.

    >>> as_csv([Prediction(Path("=1.png"), (("cat", 0.75),)), Prediction(Path("b.png"), problem="b.png is damaged")])
    "file,label,probability,error\n'=1.png,cat,0.750000,\nb.png,,,b.png is damaged\n"
    """
    most = max((len(one.classes) for one in predictions), default=1) or 1
    heads = [word for place in range(most) for word in (_numbered("label", place), _numbered("probability", place))]
    return csv_text(["file", *heads, "error"], map(_csv_row, predictions))


def _csv_row(prediction: Prediction) -> dict[str, str]:
    row = {"file": str(prediction.file), "error": prediction.problem or ""}
    for place, (label, share) in enumerate(prediction.classes):
        row |= {_numbered("label", place): label, _numbered("probability", place): f"{share:.6f}"}
    return row


def _numbered(name: str, place: int) -> str:
    return name if place == 0 else f"{name}_{place + 1}"


def _require_writable(target: Path) -> None:
    """Before the work, not after it."""
    try:
        _behind(target).parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot write {target}: {error.strerror}") from None
    if target.is_dir():
        raise InputError(f"cannot write {target}: it is a folder; give the name of a file")


def _write(target: Path, text: str) -> None:
    """Replace or create a file at once; write directly into a pipe or a device."""
    if target.is_file() or not target.exists():
        write_whole(_behind(target), text)
        return
    try:
        target.write_bytes(utf8(text))
    except OSError as error:
        raise WriteError(f"cannot write {target}: {error.strerror}") from None


def _behind(target: Path) -> Path:
    """The file behind a link, which itself stays a link."""
    return Path(os.path.realpath(target))


def _report(problems: Sequence[str], total: int) -> None:
    for problem in problems:
        say(f"idarts: {problem}", file=sys.stderr)
    if problems:
        raise InputError(f"{len(problems)} of {total} images could not be read; the others were classified")


def _classes(prediction: Prediction) -> str:
    return ", ".join(f"{printable(label)} {100 * share:.1f} %" for label, share in prediction.classes)


def _data(prediction: Prediction) -> dict[str, object]:
    if prediction.problem is not None:
        return {"file": str(prediction.file), "error": prediction.problem}
    return {
        "file": str(prediction.file),
        "classes": [{"label": label, "probability": share} for label, share in prediction.classes],
    }
