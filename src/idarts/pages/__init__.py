"""A run as one HTML file that opens offline: what was found, how the search went, what it cost, how to go on."""

from idarts.engine.folder import Run, read_run
from idarts.pages.run_page import page, write_report

__all__ = ["Run", "page", "read_run", "write_report"]
