"""Pages that open offline: reports of runs, evaluations, experiments, comparisons, and the gallery of cells."""

from idarts.engine.folder import Run, read_run
from idarts.pages.report import page, write_report

__all__ = ["Run", "page", "read_run", "write_report"]
