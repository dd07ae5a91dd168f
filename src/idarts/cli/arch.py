"""`idarts arch`: list, show, draw and convert architectures. WHAT is anything that `idarts.arch.parse` reads."""

import json
from argparse import Namespace
from pathlib import Path
from typing import Any

from rich.table import Table

from idarts.arch import Architecture, convert, draw, parse, registry, space_of, to_data
from idarts.arch.forms import described_forms, form_names
from idarts.cli.console import console, say
from idarts.cli.parser import Parser, add_action
from idarts.files import make_parents, write_whole
from idarts.pages.gallery import write_gallery


def add_arguments(parser: Parser) -> None:
    """The actions and what each needs."""
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    listing = add_action(actions, "list", "List the published cells", _list)
    listing.add_argument("--json", action="store_true", help="print JSON")
    show = add_action(actions, "show", "Show an architecture, its origin, parameters and multiply-adds", _show)
    show.add_argument("what", metavar="WHAT", help=described_forms())
    show.add_argument("--json", action="store_true", help="print JSON with plain integers")
    add_sizes(show)
    drawing = add_action(actions, "draw", "Draw an architecture's cells for a paper", _draw)
    drawing.add_argument("what", metavar="WHAT", help=described_forms())
    drawing.add_argument("-o", "--output", required=True, help="file to write: .svg, .png, .pdf or .dot")
    conversion = add_action(actions, "convert", "Write an architecture in another form", _convert)
    conversion.add_argument("what", metavar="WHAT", help=described_forms())
    conversion.add_argument("--to", required=True, metavar="FORM", help=f"one of {', '.join(form_names())}")
    conversion.add_argument("-o", "--output", metavar="FILE", help="file to write instead of printing")
    gallery = add_action(actions, "gallery", "Draw all published cells onto one offline web page", _gallery)
    gallery.add_argument("-o", "--output", required=True, metavar="FOLDER", help="folder to write index.html into")


def run(args: Namespace) -> None:
    """Run the chosen action."""
    args.run_action(args)


def add_sizes(parser: Parser) -> None:
    """The sizes of a network that replace those of a published skeleton."""
    for size, meaning in {
        "depth": "cells (in NAS-Bench: cells per stage)",
        "channels": "channels of the first cells",
        "classes": "number of classes",
        "image": "side of the images in pixels",
    }.items():
        parser.add_argument(f"--{size}", type=int, help=f"{meaning} (default: the skeleton's)")


def sizes(args: Namespace) -> dict[str, int | None]:
    """The sizes that were typed; None where the skeleton's is used."""
    return {size: getattr(args, size) for size in ("depth", "channels", "classes", "image")}


def _list(args: Namespace) -> None:
    entries = [registry.entry(name) for name in registry.names()]
    if args.json:
        say(json.dumps([{"name": e.name, "space": e.architecture.space, "provenance": e.provenance} for e in entries]))
        return
    table = Table("name", "space", "CIFAR-10 test error", "paper", title="Published cells")
    for entry in entries:
        paper = entry.provenance["paper"].split(",")[0]
        table.add_row(entry.name, entry.architecture.space, _error(entry.provenance.get("published", {})), paper)
    console().print(table)


def _error(published: dict[str, float]) -> str:
    if "cifar10_test_accuracy_percent" in published:
        return f"{100 - published['cifar10_test_accuracy_percent']:.2f} %"
    return f"{published['cifar10_test_error_percent']:.2f} %" if "cifar10_test_error_percent" in published else ""


def _show(args: Namespace) -> None:
    architecture = parse(args.what)
    published = registry.entry_of(architecture)
    report = {
        "name": published.name if published else None,
        "space": architecture.space,
        "architecture": to_data(architecture),
        "provenance": published.provenance if published else None,
        "networks": _networks(architecture, sizes(args)),
    }
    if args.json:
        say(json.dumps(report, ensure_ascii=False))
    else:
        _print_report(architecture, report)


def _networks(architecture: Architecture, changes: dict[str, int | None]) -> dict[str, Any]:
    from idarts.spaces import count  # noqa: PLC0415 (the other actions need no torch)

    skeletons = space_of(architecture).skeletons
    counted = {name: count(architecture, skeleton.changed(**changes)) for name, skeleton in skeletons.items()}
    return {
        name: {
            "params": counts.params,
            "params_with_auxiliary": counts.params_with_auxiliary,
            "multiply_adds": counts.multiply_adds,
        }
        for name, counts in counted.items()
    }


def _print_report(architecture: Architecture, report: dict[str, Any]) -> None:
    screen = console(soft_wrap=True)  # long lines stay whole, to be copied
    screen.print(f"{report['name'] or 'unpublished cell'} ({architecture.space})", style="bold")
    for form, write in space_of(architecture).forms.items():
        screen.print(f"{form}: {write(architecture)}")
    for choice, branch in architecture.choices.items():
        screen.print(f"{choice}: {branch}")
    for name, value in (report["provenance"] or {}).items():
        listed = isinstance(value, dict)
        facts = ", ".join(f"{key.replace('_', ' ')} {fact}" for key, fact in value.items()) if listed else value
        screen.print(f"{name}: {facts}")
    if report["networks"]:
        screen.print(_counts_table(report["networks"]))


def _counts_table(networks: dict[str, Any]) -> Table:
    columns = {"parameters": "params", "with auxiliary head": "params_with_auxiliary"}
    if all(counts["params"] == counts["params_with_auxiliary"] for counts in networks.values()):
        del columns["with auxiliary head"]
    table = Table("network", *columns, "multiply-adds conv+fc", "conv+fc+bn")
    for column in table.columns[1:]:
        column.justify = "right"
    for name, counts in networks.items():
        numbers = [*(counts[key] for key in columns.values()), *counts["multiply_adds"].values()]
        table.add_row(name, *(f"{number:,}" for number in numbers))
    return table


def _draw(args: Namespace) -> None:
    say(draw(args.what, args.output))


def _convert(args: Namespace) -> None:
    text = convert(args.what, args.to)
    if args.output:
        write_whole(make_parents(Path(args.output)), f"{text}\n")
        say(args.output)
    else:
        say(text)


def _gallery(args: Namespace) -> None:
    say(write_gallery(Path(args.output)))
