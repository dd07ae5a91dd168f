"""`idarts predict`: the classes of image files."""

import json
import sys
from argparse import Namespace

from idarts.cli.console import say
from idarts.cli.parser import Parser
from idarts.engine.device import device_named
from idarts.errors import InputError
from idarts.training import Prediction, load, predict


def add_arguments(parser: Parser) -> None:
    """A network and images."""
    parser.add_argument("model", metavar="MODEL", help="a model folder, or a training run's folder")
    parser.add_argument("images", nargs="+", metavar="IMAGE", help="image files, of any kind and size")
    parser.add_argument("--top", type=int, default=5, help="number of classes to print")
    parser.add_argument("--json", action="store_true", help="print JSON, a line for each image")
    parser.add_argument("--device", default="auto", help="auto, cpu, or a device such as cuda")


def run(args: Namespace) -> None:
    """Print the classes of each image; an image that cannot be read is reported, and the exit code becomes 2."""
    net = load(args.model, device=device_named(args.device))
    bad = 0
    for prediction in predict(net, args.images, args.top):
        bad += prediction.problem is not None
        if args.json:
            say(json.dumps(_data(prediction), ensure_ascii=False))
        elif prediction.problem is None:
            say(f"{prediction.file}: {_classes(prediction)}")
        else:
            say(f"idarts: {prediction.problem}", file=sys.stderr)
    if bad:
        raise InputError(f"{bad} of {len(args.images)} images could not be read; the others were classified")


def _classes(prediction: Prediction) -> str:
    return ", ".join(f"{label} {100 * share:.1f} %" for label, share in prediction.classes)


def _data(prediction: Prediction) -> dict[str, object]:
    if prediction.problem is not None:
        return {"file": str(prediction.file), "error": prediction.problem}
    return {
        "file": str(prediction.file),
        "classes": [{"label": label, "probability": share} for label, share in prediction.classes],
    }
