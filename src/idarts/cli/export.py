"""`idarts export`: a trained network for other programs."""

from argparse import Namespace
from pathlib import Path

from idarts.cli.console import say
from idarts.cli.parser import Parser, one_of
from idarts.training import FORMATS, export, load


def add_arguments(parser: Parser) -> None:
    """A network, where to write it, and in which formats."""
    parser.add_argument("run", metavar="RUN", help="the folder of a fit or of a training run, or a model folder")
    parser.add_argument("-o", "--out", required=True, metavar="DIR", help="new folder to write")
    parser.add_argument(
        "--format",
        nargs="+",
        type=one_of("--format", FORMATS),
        default=["safetensors"],
        help=f"one or more of {', '.join(FORMATS)}; ONNX needs the extra idarts[export] (default: safetensors)",
    )
    parser.add_argument("--overwrite", action="store_true", help="replace the model in the folder")


def run(args: Namespace) -> None:
    """Export, and print how far the outputs of each file differ from the network's."""
    differences = export(load(args.run), Path(args.out), args.format, overwrite=args.overwrite)
    for name, difference in differences.items():
        say(f"{name}: {_checked(name, difference)}")
    say(f"folder: {args.out}")


def _checked(name: str, difference: float | None) -> str:
    if difference is None:
        return "written, but not checked: comparing it with the network needs onnxruntime"
    return "written" if name == "safetensors" else f"written, within {difference:.1e} of the network's outputs"
