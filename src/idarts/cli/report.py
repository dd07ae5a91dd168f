"""`idarts report`: a run as one HTML file that opens offline."""

from pathlib import Path

from jsonargparse import ArgumentParser, Namespace

from idarts.pages import write_report


def add_arguments(parser: ArgumentParser) -> None:
    """A run, and where its report goes."""
    parser.add_argument("run", type=str, metavar="RUN", help="a run folder, finished or in progress")
    parser.add_argument("-o", "--output", type=str, help="file to write instead of RUN/report.html")


def run(args: Namespace) -> None:
    """Write the report and print where it is."""
    print(write_report(Path(args.run), Path(args.output) if args.output else None))
