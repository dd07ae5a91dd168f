"""`idarts watch`: pages that follow runs, served on this machine."""

import webbrowser
from argparse import Namespace
from pathlib import Path

from idarts.cli.console import say
from idarts.cli.parser import Parser
from idarts.pages.watch import Server


def add_arguments(parser: Parser) -> None:
    """Runs, and where to serve their pages."""
    parser.add_argument("runs", nargs="+", metavar="RUN", help="run folders, or folders of runs such as a sweep's")
    parser.add_argument("--port", type=int, default=0, help="port on 127.0.0.1 (default: any free one)")
    parser.add_argument("--open", action="store_true", help="open the page in a browser")


def run(args: Namespace) -> None:
    """Print the address, and serve until Ctrl-C."""
    server = Server([Path(run) for run in args.runs], args.port)
    say(f"{server.url}\nPress Ctrl-C to stop.", flush=True)
    if args.open:
        webbrowser.open(server.url)
    server.run()
