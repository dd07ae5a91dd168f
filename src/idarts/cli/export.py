"""`idarts export`: a trained network for other programs."""

from pathlib import Path

from jsonargparse import ArgumentParser, Namespace

from idarts.training import FORMATS, export, load


def add_arguments(parser: ArgumentParser) -> None:
    """A network, where it goes, and as what."""
    parser.add_argument("run", type=str, metavar="RUN", help="a training run's folder, or a model folder")
    parser.add_argument("-o", "--out", type=str, required=True, metavar="DIR", help="new folder to write")
    parser.add_argument(
        "--format",
        nargs="+",
        choices=[*FORMATS],
        default=["safetensors"],
        help="one or more of them; ONNX needs the extra idarts[export]",
    )
    parser.add_argument("--overwrite", action="store_true", help="replace the model that is in the folder")


def run(args: Namespace) -> None:
    """Export, and say what was written and how exactly it computes the same."""
    differences = export(load(args.run), Path(args.out), args.format, overwrite=args.overwrite)
    for name, difference in differences.items():
        print(f"{name}: {_checked(name, difference)}")
    print(f"folder: {args.out}")


def _checked(name: str, difference: float | None) -> str:
    if difference is None:
        return "written, but not compared with the network: that needs onnxruntime"
    return "written" if name == "safetensors" else f"written, within {difference:.1e} of the network's outputs"
