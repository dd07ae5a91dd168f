"""What the report of a search says: where it stands, what it costs, and what to do with its architecture."""

import shlex
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from idarts.arch import Architecture
from idarts.engine.entries import as_float
from idarts.engine.folder import Run
from idarts.pages.about import (
    About,
    Head,
    Trial,
    amount,
    cost_target,
    data_name,
    round_counts,
    table_measure,
    tested_accuracy,
    total,
)
from idarts.pages.cell import Shown, small
from idarts.pages.measures import SEARCH, charts
from idarts.pages.notes import notes
from idarts.pages.numbers import duration, number, percent, with_interval

_ROOM = 60_000  # letters for the drawings of trials: more would make a page large
_RECENT = 10  # rounds: the accuracy of a single batch says little


def about(run: Run, architecture: Architecture | str | None, shown: Shown) -> About:
    """The words, tiles, notes, charts and commands of a search's report.

    >>> from pathlib import Path
    >>> made = about(Run(Path("run"), {"rounds": 9}, [{"number": 1, "valid_accuracy": 0.5}]), None, Shown())
    >>> made.state, made.tiles
    ('Search in progress', [('rounds', '1 of 9'), ('validation accuracy, last round', '50.0 %')])
    """
    finished, result = run.result is not None, run.result or {}
    return About(
        **head(run)._asdict(),
        architecture_title="The final architecture" if finished else "The current architecture",
        notes=notes(run, architecture),
        progress=charts(run, SEARCH),
        costs=list(_costs(run)),
        commands=list(_commands(run, architecture, shown.text or "")),
        trials=_trials(result),
        argmax=small(result["argmax"]) if isinstance(result.get("argmax"), str) else None,
    )


def head(run: Run) -> Head:
    """What a search's report begins with.

    >>> from pathlib import Path
    >>> head(Run(Path("run"), {"space": "darts", "method": "idarts", "data": "digits"}, [{"number": 1}])).subtitle
    'searched by idarts on digits'
    """
    by = f" by {run.config['method']}" if "method" in run.config else ""
    return Head(
        state="Search in progress" if run.result is None else "Search finished",
        heading=str(run.config.get("space", "own space")),
        subtitle=f"searched{by} on {data_name(run)}",
        tiles=list(_tiles(run)),
    )


def _tiles(run: Run) -> Iterator[tuple[str, str]]:
    done, planned = round_counts(run)
    yield "rounds", f"{done:,}" if planned is None else f"{done:,} of {planned:,}"
    if (test := tested_accuracy(run)) is not None:
        yield "test accuracy, with its 95 % interval", test
    yield from _final(run)
    whose = " of the supernet" if run.alphas() else ""
    for name, key, text in (("accuracy", "valid_accuracy", percent), ("loss", "valid_loss", number)):
        values = run.series(key)[-_RECENT:]
        finite = values[np.isfinite(values)]
        if finite.size:
            over = "last round" if finite.size == 1 else f"mean of the last {finite.size} rounds"
            spread = f" (± {text(float(finite.std(ddof=1)))} from round to round)" if finite.size > 1 else ""
            mean = float(finite.mean())
            alone = finite.size == 1 and name == "accuracy"
            shown = with_interval(mean, as_float(run.config.get("batch"))) if alone else text(mean)
            yield f"validation {name}{whose}, {over}", f"{shown}{spread}"
            break
    if np.isfinite(evaluations := total(run, "gradient_evaluations")):
        yield "gradient evaluations", f"{evaluations:,.0f}"


def _final(run: Run) -> Iterator[tuple[str, str]]:
    """The values of the architecture that a finished search returned."""
    result = run.result or {}
    if np.isfinite(accuracy := as_float(result.get("table_accuracy"))):
        yield ", ".join(filter(None, ("final architecture by the table", table_measure(run)))), f"{accuracy:.2f} %"
    reached, (unit, target) = result.get("cost"), cost_target(run)
    if isinstance(reached, Mapping) and unit:
        yield f"{unit} of the final network", f"{amount(as_float(reached.get('reached')))} (target {amount(target)})"


def _costs(run: Run) -> Iterator[tuple[str, str]]:
    (done, planned), seconds = round_counts(run), as_float(run.last("seconds"))  # without those of a selection
    if seconds > 0:
        yield "rounds per second", number(done / seconds)
        if run.result is None and planned is not None and planned > done:
            yield "time left at this pace", duration((planned - done) * seconds / done)
    if np.isfinite(evaluations := total(run, "gradient_evaluations")):
        yield "gradient evaluations", f"{evaluations:,.0f}"
        if np.isfinite(of_rounds := as_float(run.last("gradient_evaluations"))):
            yield "gradient evaluations per round", number(of_rounds / done)
        if (whole := total(run, "seconds")) > 0:
            yield "gradient evaluations per second", number(evaluations / whole)


def _commands(run: Run, architecture: Architecture | str | None, text: str) -> Iterator[tuple[str, str]]:
    folder = shlex.quote(str(run.folder))
    if run.result is None:
        yield "Resume the search from its last checkpoint", f"idarts search --resume --out {folder}"
    if isinstance(architecture, Architecture) and architecture.cells:
        what = folder if run.result is not None else shlex.quote(text)
        data = shlex.quote(data_name(run)) if "data" in run.config else "DATA"
        yield "Train it from scratch", f"idarts train {what} --data {data}"
        yield "Count the cell’s parameters and multiply-adds", f"idarts arch show {what}"
        yield "Draw it for a paper", f"idarts arch draw {what} -o cell.svg"
        yield "Write it as JSON for other programs", f"idarts arch convert {what} --to json"


def _trials(result: Mapping[str, Any]) -> list[Trial]:
    """Candidates and their loss each time that they were trained, those that were trained longest first.

    >>> made = _trials({"trials": [{"architecture": name, "steps": 8, "loss": 2.5} for name in "ab"]})
    >>> [(trial.cell.text, trial.losses) for trial in made]
    [('a', '2.500 after 8 steps'), ('b', '2.500 after 8 steps')]
    """
    trials: dict[str, list[tuple[float, str]]] = {}
    for trial in result.get("trials") or []:
        loss, steps = as_float(trial["loss"]), f"after {trial['steps']} steps"
        shown = (loss, f"{loss:.3f} {steps}") if np.isfinite(loss) else (np.inf, f"not finite {steps}")
        trials.setdefault(trial["architecture"], []).append(shown)
    longest = sorted(trials.items(), key=lambda item: (-len(item[1]), item[1][-1][0]))
    made, room = list[Trial](), _ROOM
    for name, losses in longest:
        cell = small(name, drawn=room > 0)
        room -= len(cell.svg or "")
        made.append(Trial(cell, ", ".join(text for _, text in losses)))
    return made
