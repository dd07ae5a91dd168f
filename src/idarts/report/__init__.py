"""A run as one HTML file that opens offline: what was found, how the search went, what it cost, how to go on."""

from idarts.report.page import page, write_report
from idarts.report.run import Run, read_run

__all__ = ["Run", "page", "read_run", "write_report"]
