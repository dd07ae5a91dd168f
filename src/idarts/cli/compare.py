"""`idarts compare`: runs side by side."""

import json
from argparse import Namespace
from pathlib import Path
from shutil import get_terminal_size

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from idarts.cli.console import console, say
from idarts.cli.parser import Parser
from idarts.experiments.comparison import compare
from idarts.experiments.facts import facts
from idarts.pages.comparison import sections, write_comparison
from idarts.pages.experiment import Section

_ENDLESS = 10_000  # columns where the output is not a terminal


def add_arguments(parser: Parser) -> None:
    """Runs, how to group them, and where to write."""
    parser.add_argument("runs", nargs="+", metavar="RUN", help="folders of runs, or of sweeps")
    by = "settings that make groups, separated by commas, such as method (default: all that differ except the seed)"
    parser.add_argument("--by", metavar="NAMES", help=by)
    measure = "measure to test, such as cifar10_test or valid_accuracy (default: the table's, if all runs have it)"
    parser.add_argument("--measure", metavar="NAME", help=measure)
    parser.add_argument("--out", metavar="DIR", help="folder for a page, its figures, and a CSV table")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: Namespace) -> None:
    """Print the comparison, and write it if --out was given."""
    by = [name.strip() for name in (args.by or "").split(",") if name.strip()]
    comparison = facts(compare([Path(run) for run in args.runs], by, args.measure))
    page = write_comparison(comparison, Path(args.out)) if args.out else None
    if args.json:
        say(json.dumps(comparison, allow_nan=False))
        return
    columns = get_terminal_size((_ENDLESS, 1)).columns
    for whole, brief in zip(sections(comparison), sections(comparison, brief=True), strict=True):
        _print(whole if _width(_table(whole)) <= columns else brief, columns)
    if page:
        say(page)


def _print(section: Section, columns: int) -> None:
    if not section.rows and not section.text:  # figures are for the page
        return
    console = _console(columns)
    console.print(section.title, style="bold")
    for paragraph in section.text:
        console.print(paragraph)
    if section.rows:
        table = _table(section)
        _console(max(columns, _width(table))).print(table)  # a cell that is cut is of no use
    for note in section.notes:
        console.print(note)
    console.print()


def _table(section: Section) -> Table:
    """As narrow as it can be with every cell in one line."""
    table = Table(box=SIMPLE, collapse_padding=True, pad_edge=False)
    for place, title in enumerate(section.header):
        table.add_column(
            "\n".join(title.split()), justify="right" if place else "left", vertical="bottom", no_wrap=True
        )
    for row in section.rows:
        table.add_row(*row)
    return table


def _width(table: Table) -> int:
    return _console(_ENDLESS).measure(table).maximum


def _console(width: int) -> Console:
    return console(width=width)
