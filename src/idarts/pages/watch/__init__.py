"""Runs as pages that follow them: `idarts watch` serves them on this machine."""

from idarts.pages.watch.server import Server
from idarts.pages.watch.site import Site

__all__ = ["Server", "Site"]
