"""On NAS-Bench-1Shot1's space 3: the error along the search, for T (Figure 1) and for K (Appendix C's figure)."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from idarts.arch import parse
from idarts.experiments.experiment import Experiment, Request
from idarts.experiments.jobs import Job, SearchJob
from idarts.experiments.paper import add
from idarts.experiments.paper.published import FIGURE_1_CLAIMS, FIGURE_K_CLAIMS
from idarts.experiments.paper.sensitivity import BY_ALPHA
from idarts.experiments.runs import Run
from idarts.experiments.searches import search_jobs
from idarts.experiments.store import Row
from idarts.pages.chart import Chart, Curve, banded, chart
from idarts.pages.experiment import Section, column
from idarts.pages.numbers import mean_std
from idarts.tables import table

SPACE = "nas-bench-1shot1-s3"
POINTS = 40  # of a search at which its cell is looked up
_ERRORS = ("valid_error", "test_error")
_COLUMNS = ("setting", "T", "K", "seed", "share", "round", "gradient_evaluations", *_ERRORS, "hash")
_NOTE = (
    "Errors after 108 epochs by NAS-Bench-101; where the table has no validation values, there is no curve of them. "
    "All settings see the training images equally often, so equal shares of the search are equal epochs."
)
_READING = "The mean over seeds with a band of one standard deviation; lower is better."

# label → (method, T, K). In the study of T, K = 3; K = 0 at T = 1 is DARTS. The paper's figure names no K.
Settings = Mapping[str, tuple[str, int, int]]
_FIGURE_1: Settings = {
    "DARTS": ("darts-one-step", 1, 0),
    "T=1": ("idarts", 1, 3),
    "T=2": ("idarts", 2, 3),
    "T=5": ("idarts", 5, 3),
}
_TERMS = {"paper": (0, 1, 2, 3, 4), "cpu": (0, 1, 3), "smoke": (0, 2)}


def _plan(request: Request, settings: Settings) -> Iterator[Job]:
    table(SPACE, request.tables)  # an error if there is none
    for label, (method, T, K) in settings.items():
        own = {"inner_steps": T, "hypergradient": {"terms": K}} if method == "idarts" else {}
        facts = {"setting": label, "T": T, "K": K}
        name = label.replace("=", "").replace(" ", "-")
        yield from search_jobs(request, SPACE, name, BY_ALPHA | own, method=method, facts=facts)


def _rows(job: SearchJob, run: Run, request: Request) -> Iterator[Row]:
    """The errors of the cell that α selects, at equal shares of the search."""
    known = table(SPACE, request.tables)
    with_cell = [one for one in run.rounds if one.get("architecture")]
    last = run.rounds[-1]["number"]
    errors: dict[str, Row] = {}
    for place in range(POINTS + 1):
        share = place / POINTS
        now = [one for one in with_cell if one["number"] <= max(share * last, 1)][-1]
        cell = now["architecture"]
        if cell not in errors:
            errors[cell] = _errors(known.query(parse(cell)))
        head = {"share": share, "round": now["number"], "gradient_evaluations": now["gradient_evaluations"]}
        yield {**job.facts, **head, **errors[cell]}


def _errors(answer: Mapping[str, Any]) -> Row:
    values = {f"{split}_error": answer[split] for split in ("valid", "test")}
    known = {name: round(100 - value, 4) for name, value in values.items() if value is not None}
    return {**known, "hash": answer["hash"]}


def _section(rows: list[Row], title: str, name: str, claims: Sequence[str]) -> Section:
    labels = dict.fromkeys(str(row["setting"]) for row in rows)
    groups = {label: _by_seed([row for row in rows if row["setting"] == label]) for label in labels}
    lines = [
        [label, str(len(runs)), mean_std(_last_errors(runs)), mean_std(_mean_errors(runs))]
        for label, runs in groups.items()
    ]
    header = ("setting", "seeds", "test error at the end", "mean test error along the search")
    drawn = [one for error in _ERRORS if column(rows, error) for one in _figures(groups, error, title, name)]
    text = f"The paper prints a picture without numbers and says: {'; '.join(claims)}."
    return Section(f"{title} (errors in percent)", [text], header, lines, drawn, [_NOTE])


def _figures(groups: Mapping[str, list[list[Row]]], error: str, title: str, name: str) -> list[Chart]:
    """An error over the share of the search, and over its cost."""
    words, up = error.replace("_", " "), f"{error.replace('_', ' ')} in percent"
    stem = name if error == "test_error" else f"{name}-valid"
    shares = [_curve(label, runs, "share", error, 100) for label, runs in groups.items()]
    costs = [_curve(label, runs, "gradient_evaluations", error) for label, runs in groups.items()]
    across = "share of the search in percent"
    return [
        chart(stem, f"{title}: {words} along the search", (across, up), shares, _READING),
        chart(f"{stem}-cost", f"{title}: {words} by cost", ("gradient evaluations", up), costs, _READING),
    ]


def _by_seed(rows: list[Row]) -> list[list[Row]]:
    return [[row for row in rows if row["seed"] == seed] for seed in dict.fromkeys(row["seed"] for row in rows)]


def _last_errors(runs: list[list[Row]]) -> list[float]:
    return [float(rows[-1]["test_error"]) for rows in runs]


def _mean_errors(runs: list[list[Row]]) -> list[float]:
    return [float(np.mean(column(rows, "test_error"))) for rows in runs]


def _curve(label: str, runs: list[list[Row]], across: str, error: str, scale: float = 1) -> Curve:
    x = scale * np.mean([column(rows, across) for rows in runs], axis=0)
    return banded(label, x, np.array([column(rows, error) for rows in runs]))


def _plan_figure_1(request: Request) -> Iterator[Job]:
    return _plan(request, _FIGURE_1)


def _show_figure_1(rows: list[Row], _: Request) -> list[Section]:
    return [_section(rows, "Figure 1", "figure-1", FIGURE_1_CLAIMS)]


def _plan_figure_k(request: Request) -> Iterator[Job]:
    return _plan(request, {f"T={T} K={K}": ("idarts", T, K) for T in (1, 5) for K in _TERMS[request.preset]})


def _show_figure_k(rows: list[Row], _: Request) -> list[Section]:
    by_steps = {T: [row for row in rows if row["T"] == T] for T in (1, 5)}
    title, name = "Ablation of K at T = {}", "figure-k-t{}"
    return [_section(mine, title.format(T), name.format(T), FIGURE_K_CLAIMS) for T, mine in by_steps.items()]


_ABOUT_1 = "Figure 1: NAS-Bench-1Shot1 space 3, test error along the search for T = 1, 2, 5 and DARTS."
_ABOUT_K = "Ablation of K on NAS-Bench-1Shot1 space 3 at T = 1 and T = 5 (Appendix C's figure)."
add(Experiment("figure-1", _ABOUT_1, _plan_figure_1, _show_figure_1, _rows, _COLUMNS))
add(Experiment("figure-k", _ABOUT_K, _plan_figure_k, _show_figure_k, _rows, _COLUMNS))
