"""The report of a run: one HTML file that opens offline."""

import shlex
from pathlib import Path
from typing import Any

from idarts.engine.folder import Run, read_run
from idarts.files import make_parents, write_whole
from idarts.pages import search, training
from idarts.pages.about import rows, total
from idarts.pages.cell import shown
from idarts.pages.heat import SPAN, heat
from idarts.pages.measures import ALPHA, HYPERGRADIENT, MOST_OTHERS, charts, others
from idarts.pages.numbers import duration
from idarts.pages.template import render

REPORT, TEMPLATE = "report.html", "run.html.j2"


def write_report(run: Path, output: Path | None = None) -> Path:
    """Write a run's report, as `report.html` into the run folder or to a file of your choice.

    >>> import json, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "config.json").write_text(json.dumps({"space": "nas-bench-201", "method": "idarts"}))
    ...     _ = Path(folder, "metrics.jsonl").write_text(json.dumps({"number": 1, "train_loss": 2.3}))
    ...     write_report(Path(folder)).name
    'report.html'
    """
    content = page(read_run(run))
    target = output or run / REPORT
    write_whole(make_parents(target), content)
    return target


def page(run: Run) -> str:
    """The report as one HTML text; a section is there only if the run has logged its data.

    >>> "in progress" in page(Run(Path("run"), {"space": "darts"}, [{"number": 1, "train_loss": 2.3}]))
    True
    """
    return render(TEMPLATE, **content(run))


def content(run: Run) -> dict[str, Any]:
    """The values that the template shows: a live page makes them anew, and redraws its charts from their `json`.

    >>> content(Run(Path("run"), {"space": "darts"}, [{"number": 1, "train_loss": 2.3}]))["about"].state
    'Search in progress'
    """
    architecture, result = run.architecture(), run.result or {}
    cell = shown(architecture)
    about = training.about(run) if run.trains else search.about(run, architecture, cell)
    spent, own = duration(total(run, "seconds")), others(run)
    return {
        "about": about,
        "finished": run.result is not None,
        "cell": cell,
        "tiles": [*about.tiles, ("time", spent)],
        "heat": heat(run),
        "span": SPAN,
        "alpha": charts(run, ALPHA),
        "hypergradient": charts(run, HYPERGRADIENT),
        "others": charts(run, own[:MOST_OTHERS]),
        "left_out": len(own[MOST_OTHERS:]),
        "costs": [("time so far" if run.result is None else "time", spent), *about.costs],
        "commands": [*about.commands, ("Write this page again", f"idarts report {shlex.quote(str(run.folder))}")],
        "settings": rows(run.config),
        "data": rows(result.get("data", {})),
        "environment": [
            *rows(result.get("versions", {})),
            *rows({key: result[key] for key in result if key == "device"}),
        ],
    }
