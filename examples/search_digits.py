"""The main job, from data to a trained network: search on the digits, train the network, compare, report.

    python examples/search_digits.py [FOLDER]    # runs/digits; a second call replaces its runs

The cell is searched in the NAS-Bench-201 space. Its network is then trained from scratch, and compared with that of a
fixed residual cell, whose width is chosen so that it has as many parameters.
"""

import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

from idarts.arch import Architecture, parse
from idarts.cli.progress import Progress
from idarts.pages import write_report
from idarts.searching import RunConfig, run
from idarts.searching.settings import Alpha
from idarts.spaces import count, nas_bench_201
from idarts.training import train

RESIDUAL = "|nor_conv_3x3~0|+|none~0|nor_conv_3x3~1|+|skip_connect~0|none~1|skip_connect~2|"
CHANNELS, EPOCHS = 16, 8


def size(architecture: Architecture, channels: int) -> int:
    return count(architecture, depth=1, channels=channels, classes=10, image=8, in_channels=1).params


def trained(architecture: Architecture, channels: int, out: Path) -> float:
    """Test accuracy of the architecture's network after training from scratch."""
    weights = {"rate": 0.1, "nesterov": True, "decay": 5e-4, "clip": 0.0}
    accuracy = train(
        architecture,
        "digits",
        out=out,
        overwrite=True,
        depth=1,
        channels=channels,
        epochs=EPOCHS,
        crop=1,
        weights=weights,
    ).accuracy
    assert accuracy is not None
    return accuracy


def main(out: Path = Path("runs/digits")) -> dict[str, float]:
    console = Console()
    settings = RunConfig(depth=1, channels=8, batch=32, rounds=40, alpha=Alpha(rate=0.02))
    console.print("searching on the digits, in the NAS-Bench-201 space")
    with Progress() as progress:
        found = run(settings, out, overwrite=True, on_round=progress).architecture
    residual = parse(RESIDUAL)
    channels = min(range(8, 65), key=lambda width: abs(size(residual, width) - size(found, CHANNELS)))
    table = Table("network", "parameters", "test accuracy")
    accuracies = {}
    for name, architecture, width in (("found", found, CHANNELS), ("fixed, residual", residual, channels)):
        console.print(f"training the {name} network from scratch")
        accuracies[name] = trained(architecture, width, out / name.split(",")[0])
        table.add_row(name, f"{size(architecture, width):,}", f"{100 * accuracies[name]:.1f} %")
    console.print(table)
    console.print(f"found cell: {nas_bench_201.to_string(found)}", soft_wrap=True)
    console.print(f"report: {write_report(out)}")
    return accuracies


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]))
