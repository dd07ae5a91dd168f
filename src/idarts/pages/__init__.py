"""Pages that open offline: reports of runs, evaluations, experiments, comparisons, and the gallery of cells."""

from idarts.pages.report import page, write_report
from idarts.pages.run_folder import Run, read_run

__all__ = ["Run", "page", "read_run", "write_report"]
