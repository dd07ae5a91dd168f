"""`idarts profile`: what a network costs on this machine."""

import json
from argparse import Namespace
from math import inf
from pathlib import Path
from typing import Any

import torch
from rich.table import Table

from idarts.arch import parse, to_data
from idarts.arch.forms import described_forms
from idarts.cli.arch import add_sizes, sizes
from idarts.cli.console import console, say
from idarts.cli.parser import Parser, add_option
from idarts.engine.device import device_named
from idarts.engine.folder import MODEL
from idarts.errors import InputError
from idarts.spaces import Skeleton, network
from idarts.spaces.networks import resolve
from idarts.training import find_model, profile, read_card
from idarts.training.model_folder import is_model
from idarts.training.profiling import BATCHES, SECONDS


def add_arguments(parser: Parser) -> None:
    """An architecture or a network, its skeleton, and how to measure."""
    parser.add_argument("arch", metavar="ARCH", help=f"{described_forms()}, or a trained network's folder")
    parser.add_argument("--skeleton", help="published skeleton around the cell, such as cifar or imagenet")
    add_sizes(parser)
    add_option(parser, "--in-channels", type=int, help="channels of the images (default: 3, or the trained network's)")
    parser.add_argument(
        "--batches",
        type=int,
        nargs="+",
        default=BATCHES,
        help=f"batch sizes to measure (default: {' '.join(map(str, BATCHES))})",
    )
    parser.add_argument("--seconds", type=float, default=SECONDS, help="shortest time to measure each of them")
    parser.add_argument("--threads", type=int, help="threads on the CPU (default: torch's own number)")
    parser.add_argument("--device", default="auto", help="auto, cpu, or a device such as cuda")
    parser.add_argument("--json", action="store_true", help="print JSON, in seconds and bytes")


def run(args: Namespace) -> None:
    """Build the network, measure it, print."""
    if args.threads is not None:
        if args.threads < 1:
            raise InputError(f"--threads is {args.threads}, expected at least 1")
        torch.set_num_threads(args.threads)
    if not 0 <= args.seconds < inf:
        raise InputError(f"--seconds is {args.seconds:g}, expected a number of at least 0")
    if min(args.batches) < 1:
        raise InputError(f"--batches is {min(args.batches)}, expected at least 1")
    device = device_named(args.device)
    architecture, skeleton, in_channels, (height, width) = _described(args)
    net = network(architecture, skeleton, in_channels=in_channels).to(device)
    cost = profile(net, (in_channels, height, width), args.batches, args.seconds)
    facts = {"architecture": to_data(architecture), "macro": vars(skeleton), **cost}
    if args.json:
        say(json.dumps(facts, ensure_ascii=False))
    else:
        _print(architecture.space, skeleton, facts)


def _described(args: Namespace) -> tuple[Any, Skeleton, int, tuple[int, int]]:
    """Architecture, skeleton, channels and size of the images: those of the trained network, else the skeleton's."""
    path = Path(args.arch)
    if path.is_dir() and ((path / MODEL).is_dir() or is_model(path)):
        card = read_card(find_model(path))
        if card.macro is None:
            raise InputError(f"{path} holds a user's own module; measure it from Python with idarts.training.profile")
        if args.skeleton is not None:
            raise InputError(f"{path} has its own skeleton; remove --skeleton")
        image = card.image if args.image is None else (args.image, args.image)
        in_channels = card.in_channels if args.in_channels is None else args.in_channels
        return card.architecture, resolve(card.architecture, card.macro, **sizes(args)), in_channels, image
    architecture = parse(args.arch)
    skeleton = resolve(architecture, args.skeleton, **sizes(args))
    in_channels = 3 if args.in_channels is None else args.in_channels
    return architecture, skeleton, in_channels, (skeleton.image, skeleton.image)


def _print(space: str, skeleton: Skeleton, facts: dict[str, Any]) -> None:
    screen = console()
    channels, height, width = facts["image"]
    screen.print(
        f"{space}: depth {skeleton.depth}, {skeleton.channels} channels, {skeleton.classes} classes, "
        f"images of {channels} × {height} × {width}",
        style="bold",
    )
    screen.print(f"parameters:    {facts['params']:,}")
    for convention, number in facts["multiply_adds"].items():
        screen.print(f"multiply-adds: {number:,} ({convention})")
    table = Table("batch", "fastest", "median", "runs", "images per second", "peak memory")
    for column in table.columns:
        column.justify = "right"
    for cost in facts["batches"]:
        table.add_row(
            str(cost["batch"]),
            _time(cost["minimum"]),
            _time(cost["median"]),
            str(cost["runs"]),
            f"{cost['images_per_second']:,.0f}",
            _memory(cost["peak"]),
        )
    screen.print(table)
    machine = facts["machine"]
    counted = "as the allocator counts" if facts["peak_is"] == "allocator" else "without working memory"
    screen.print(f"peak memory: weights, images and activations, {counted}")
    screen.print(f"this process at its peak, with Python and torch: {_memory(facts['resident'])} resident")
    threads = f", {machine['threads']} thread{'s' if machine['threads'] > 1 else ''}"
    screen.print(f"machine: {machine['name']} ({machine['device']}{threads}), torch {machine['torch']}")


def _time(seconds: float) -> str:
    return f"{1000 * seconds:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


def _memory(size: int) -> str:
    return f"{size / 2**20:,.1f} MiB"
