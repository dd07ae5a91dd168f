"""`idarts predict`: the classes of image files."""

import json
import sys

from jsonargparse import ArgumentParser, Namespace

from idarts.engine.device import device_named
from idarts.errors import InputError
from idarts.training import Prediction, load, predict


def add_arguments(parser: ArgumentParser) -> None:
    """A network and images."""
    parser.add_argument("model", type=str, metavar="MODEL", help="a model folder, or a training run's folder")
    parser.add_argument("images", type=str, nargs="+", metavar="IMAGE", help="image files, of any kind and size")
    parser.add_argument("--top", type=int, default=5, help="how many classes to name")
    parser.add_argument("--json", action="store_true", help="print JSON, a line for each image")
    parser.add_argument("--device", type=str, default="auto", help="auto, cpu, or one such as cuda")


def run(args: Namespace) -> None:
    """Name the classes of each image; images that cannot be read are told of, and make the exit code 2."""
    net = load(args.model, device=device_named(args.device))
    bad = 0
    for found in predict(net, args.images, args.top):
        bad += found.problem is not None
        if args.json:
            print(json.dumps(_data(found), ensure_ascii=False))
        elif found.problem is None:
            print(f"{found.file}: " + ", ".join(f"{label} {100 * share:.1f} %" for label, share in found.classes))
        else:
            print(f"idarts: {found.problem}", file=sys.stderr)
    if bad:
        raise InputError(f"{bad} of {len(args.images)} images could not be read; the others were classified")


def _data(found: Prediction) -> dict[str, object]:
    if found.problem is not None:
        return {"file": str(found.file), "error": found.problem}
    return {
        "file": str(found.file),
        "classes": [{"label": label, "probability": share} for label, share in found.classes],
    }
