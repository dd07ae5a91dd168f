"""`idarts report`: a run as one HTML file that opens offline."""

from argparse import Namespace
from pathlib import Path

from idarts.cli.console import say
from idarts.cli.parser import Parser
from idarts.pages import write_report


def add_arguments(parser: Parser) -> None:
    """A run, and where to write its report."""
    parser.add_argument("run", metavar="RUN", help="a run folder, finished or in progress")
    parser.add_argument("-o", "--output", help="file to write instead of RUN/report.html")


def run(args: Namespace) -> None:
    """Write the report and print its path."""
    say(write_report(Path(args.run), Path(args.output) if args.output else None))
