"""`idarts report`: a run or a fit as HTML that opens offline."""

from argparse import Namespace
from pathlib import Path

from idarts.cli.console import say
from idarts.cli.parser import Parser
from idarts.errors import InputError
from idarts.fitting import record
from idarts.fitting.outcome import read_result
from idarts.fitting.page import write_page
from idarts.pages import write_report


def add_arguments(parser: Parser) -> None:
    """A run, and where to write its report."""
    parser.add_argument("run", metavar="RUN", help="a run folder, finished or in progress; or the folder of a fit")
    parser.add_argument("-o", "--output", help="file to write instead of RUN/report.html; not for a fit")


def run(args: Namespace) -> None:
    """Write the report and print its path."""
    if (Path(args.run) / record.FIT).is_file():
        say(_fit(Path(args.run), args.output))
        return
    say(write_report(Path(args.run), Path(args.output) if args.output else None))


def _fit(path: Path, output: str | None) -> Path:
    """The page of a fit stays in its folder, because it links to the reports of its parts."""
    if output:
        raise InputError(f"the page of a fit links to files beside it; remove -o, and copy the folder {path}")
    return write_page(read_result(path), record.read(path))
