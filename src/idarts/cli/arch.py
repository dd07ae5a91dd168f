"""`idarts arch`: list, show, draw and convert architectures. WHAT is anything that `idarts.arch.parse` reads."""

import json
from pathlib import Path
from typing import Any

from jsonargparse import ArgumentParser, Namespace
from rich.console import Console
from rich.table import Table

from idarts.arch import Architecture, convert, draw, parse, registry, space_of, to_data
from idarts.arch.forms import described_forms, form_names
from idarts.cli.actions import add_actions, run_action
from idarts.files import write_whole
from idarts.pages.gallery import write_gallery

_SIZES = ("depth", "channels", "classes", "image")


def add_arguments(parser: ArgumentParser) -> None:
    """An action and what it needs."""
    add_actions(parser, _ACTIONS)


def run(args: Namespace) -> None:
    """Run the chosen action."""
    run_action(args, _ACTIONS)


def _add_list(parser: ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")


def _list(args: Namespace) -> None:
    entries = [registry.entry(name) for name in registry.names()]
    if args.json:
        print(
            json.dumps([{"name": e.name, "space": e.architecture.space, "provenance": e.provenance} for e in entries])
        )
        return
    table = Table("name", "space", "CIFAR-10 test error", "paper", title="Published cells")
    for found in entries:
        paper = found.provenance["paper"].split(",")[0]
        table.add_row(found.name, found.architecture.space, _error(found.provenance.get("published", {})), paper)
    Console().print(table)


def _error(published: dict[str, float]) -> str:
    if "cifar10_test_accuracy_percent" in published:
        return f"{100 - published['cifar10_test_accuracy_percent']:.2f} %"
    return f"{published['cifar10_test_error_percent']:.2f} %" if "cifar10_test_error_percent" in published else ""


def _add_show(parser: ArgumentParser) -> None:
    _add_what(parser)
    parser.add_argument("--json", action="store_true", help="print JSON with plain integers")
    parser.add_argument("--depth", type=int, help="cells (in NAS-Bench: cells per stage) instead of the usual")
    parser.add_argument("--channels", type=int, help="channels of the first cells instead of the usual")
    parser.add_argument("--classes", type=int, help="classes instead of the usual")
    parser.add_argument("--image", type=int, help="side of the images in pixels instead of the usual")


def _show(args: Namespace) -> None:
    architecture = parse(args.what)
    published = registry.entry_of(architecture)
    report = {
        "name": published.name if published else None,
        "space": architecture.space,
        "architecture": to_data(architecture),
        "provenance": published.provenance if published else None,
        "networks": _networks(architecture, {size: args[size] for size in _SIZES}),
    }
    if args.json:
        print(json.dumps(report, ensure_ascii=False))
    else:
        _print_report(architecture, report)


def _networks(architecture: Architecture, sizes: dict[str, int | None]) -> dict[str, Any]:
    from idarts.spaces import count  # noqa: PLC0415 (the other actions need no torch)

    skeletons = space_of(architecture).skeletons
    counted = {name: count(architecture, skeleton.changed(**sizes)) for name, skeleton in skeletons.items()}
    return {
        name: {
            "params": counts.params,
            "params_with_auxiliary": counts.params_with_auxiliary,
            "multiply_adds": counts.multiply_adds,
        }
        for name, counts in counted.items()
    }


def _print_report(architecture: Architecture, report: dict[str, Any]) -> None:
    console = Console(soft_wrap=True, markup=False, highlight=False)  # long lines stay whole, to be copied
    console.print(f"{report['name'] or 'unpublished cell'} ({architecture.space})", style="bold")
    for form, write in space_of(architecture).forms.items():
        console.print(f"{form}: {write(architecture)}")
    for choice, branch in architecture.choices.items():
        console.print(f"{choice}: {branch}")
    for name, value in (report["provenance"] or {}).items():
        listed = isinstance(value, dict)
        facts = ", ".join(f"{key.replace('_', ' ')} {fact}" for key, fact in value.items()) if listed else value
        console.print(f"{name}: {facts}")
    if report["networks"]:
        console.print(_counts_table(architecture, report["networks"]))


def _counts_table(architecture: Architecture, networks: dict[str, Any]) -> Table:
    columns = {"parameters": "params", "with auxiliary head": "params_with_auxiliary"}
    if not space_of(architecture).has_auxiliary:
        del columns["with auxiliary head"]
    table = Table("network", *columns, "multiply-adds conv+fc", "conv+fc+bn")
    for column in table.columns[1:]:
        column.justify = "right"
    for name, counts in networks.items():
        numbers = [*(counts[key] for key in columns.values()), *counts["multiply_adds"].values()]
        table.add_row(name, *(f"{number:,}" for number in numbers))
    return table


def _add_draw(parser: ArgumentParser) -> None:
    _add_what(parser)
    parser.add_argument("-o", "--output", type=str, required=True, help="file to write: .svg, .png, .pdf or .dot")


def _draw(args: Namespace) -> None:
    print(draw(args.what, args.output))


def _add_convert(parser: ArgumentParser) -> None:
    _add_what(parser)
    parser.add_argument("--to", type=str, required=True, help=f"one of {', '.join(form_names())}")
    parser.add_argument("-o", "--output", type=str, help="file to write instead of printing")


def _convert(args: Namespace) -> None:
    text = convert(args.what, args.to)
    if args.output:
        write_whole(Path(args.output), f"{text}\n".encode())
        print(args.output)
    else:
        print(text)


def _add_gallery(parser: ArgumentParser) -> None:
    parser.add_argument("-o", "--output", type=str, required=True, help="folder to write index.html into")


def _gallery(args: Namespace) -> None:
    print(write_gallery(Path(args.output)))


def _add_what(parser: ArgumentParser) -> None:
    parser.add_argument("what", type=str, metavar="WHAT", help=described_forms())


# action → (one line of help, declares its arguments, does it)
_ACTIONS = {
    "list": ("List the published cells", _add_list, _list),
    "show": ("Show an architecture, its origin, parameters and multiply-adds", _add_show, _show),
    "draw": ("Draw an architecture's cells for a paper", _add_draw, _draw),
    "convert": ("Write an architecture in another form", _add_convert, _convert),
    "gallery": ("Draw all published cells onto one offline web page", _add_gallery, _gallery),
}
