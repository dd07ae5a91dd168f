"""On NAS-Bench-1Shot1's space 3: the error along the search, for T (Figure 1) and for K (Appendix C's figure)."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from idarts.arch import parse
from idarts.engine.folder import read_run
from idarts.experiments.frame import Experiment, Job, Request
from idarts.experiments.paper.published import FIGURE_1_CLAIMS, FIGURE_K_CLAIMS
from idarts.experiments.searches import BY_ALPHA, SPACE_3, search_jobs
from idarts.experiments.store import Row
from idarts.pages.chart import Curve, banded, chart
from idarts.pages.experiment import Section, column
from idarts.pages.numbers import mean_std
from idarts.tables import Table, table

POINTS = 40  # of a search at which its cell is looked up
_ERRORS = ("valid_error", "test_error")
_COLUMNS = ("setting", "T", "K", "seed", "share", "round", "gradient_evaluations", *_ERRORS, "hash")
_NOTE = (
    "Errors after 108 epochs by NAS-Bench-101; where the table has no validation values, there is no curve of them. "
    "Settings see the training images equally often, so equal shares of the search are equal epochs."
)
# label → (method, T, K). In the study of T, K = 3; K = 0 at T = 1 is DARTS. The paper's figure names no K.
_FIGURE_1 = {"DARTS": ("darts", 1, 0), "T=1": ("idarts", 1, 3), "T=2": ("idarts", 2, 3), "T=5": ("idarts", 5, 3)}
_TERMS = {"paper": (0, 1, 2, 3, 4), "cpu": (0, 1, 3), "smoke": (0, 2)}


def _jobs(request: Request, plan: dict[str, tuple[str, int, int]]) -> Iterable[Job]:
    known = table(SPACE_3, request.tables)
    for label, (method, T, K) in plan.items():
        changes = BY_ALPHA | ({} if method == "darts" else {"inner_steps": T, "hypergradient": {"terms": K}})
        head: Row = {"setting": label, "T": T, "K": K}
        yield from search_jobs(
            request, SPACE_3, label.replace("=", "").replace(" ", "-"), changes, _rows(known, head), method
        )


def _rows(known: Table, head: Row) -> Any:
    def rows(_: dict[str, Any], folder: Path, seed: int) -> Sequence[Row]:
        rounds = read_run(folder).rounds
        with_cell = [found for found in rounds if found.get("architecture")]
        last, lines = rounds[-1]["number"], []
        known_errors: dict[str, Row] = {}
        for place in range(POINTS + 1):
            share = place / POINTS
            found = [one for one in with_cell if one["number"] <= max(share * last, 1)][-1]
            text = found["architecture"]
            if text not in known_errors:
                known_errors[text] = _errors(known.query(parse(text)))
            facts = {"share": share, "round": found["number"], "gradient_evaluations": found["gradient_evaluations"]}
            lines.append({**head, "seed": seed, **facts, **known_errors[text]})
        return lines

    return rows


def _errors(answer: dict[str, Any]) -> Row:
    values = {f"{split}_error": answer[split] for split in ("valid", "test")}
    return {
        **{name: round(100 - value, 4) for name, value in values.items() if value is not None},
        "hash": answer["hash"],
    }


def _sections(rows: list[Row], title: str, name: str, claims: Sequence[str]) -> list[Section]:
    labels = list(dict.fromkeys(str(row["setting"]) for row in rows))
    curves = {label: [row for row in rows if row["setting"] == label] for label in labels}
    lines = [
        [label, str(len(_by_seed(mine))), *(mean_std(values) for values in (_at_end(mine), _on_the_way(mine)))]
        for label, mine in curves.items()
    ]
    header = ("setting", "seeds", "test error at the end", "mean test error along the search")
    reading = "The mean over seeds with a band of one standard deviation; lower is better."
    drawn = []
    for error in (error for error in _ERRORS if column(rows, error)):
        of, up = error.replace("_", " "), f"{error.replace('_', ' ')} in percent"
        stem = name if error == "test_error" else f"{name}-valid"
        shares = [_curve(label, mine, "share", error, 100) for label, mine in curves.items()]
        costs = [_curve(label, mine, "gradient_evaluations", error) for label, mine in curves.items()]
        drawn += [
            chart(stem, f"{title}: {of} along the search", ("share of the search in percent", up), shares, reading),
            chart(f"{stem}-cost", f"{title}: {of} by cost", ("gradient evaluations", up), costs, reading),
        ]
    said = f"The paper prints a picture without numbers and says: {'; '.join(claims)}."
    return [Section(f"{title} (errors in percent)", [said], header, lines, drawn, [_NOTE])]


def _by_seed(rows: list[Row]) -> list[list[Row]]:
    return [[row for row in rows if row["seed"] == seed] for seed in dict.fromkeys(row["seed"] for row in rows)]


def _at_end(rows: list[Row]) -> list[float]:
    return [float(mine[-1]["test_error"]) for mine in _by_seed(rows)]


def _on_the_way(rows: list[Row]) -> list[float]:
    return [float(np.mean(column(mine, "test_error"))) for mine in _by_seed(rows)]


def _curve(label: str, rows: list[Row], across: str, error: str, scale: float = 1) -> Curve:
    runs = _by_seed(rows)
    x = scale * np.mean([column(mine, across) for mine in runs], axis=0)
    return banded(label, x, np.array([column(mine, error) for mine in runs]))


def _figure_k(request: Request) -> dict[str, tuple[str, int, int]]:
    return {f"T={T} K={K}": ("idarts", T, K) for T in (1, 5) for K in _TERMS[request.preset]}


def _show_k(rows: list[Row], _: Request) -> list[Section]:
    return [
        section
        for T in (1, 5)
        for section in _sections(
            [row for row in rows if row["T"] == T], f"Ablation of K at T = {T}", f"figure-k-t{T}", FIGURE_K_CLAIMS
        )
    ]


FIGURE_1 = Experiment(
    "Figure 1: NAS-Bench-1Shot1 space 3, test error along the search for T = 1, 2, 5 and DARTS.",
    _COLUMNS,
    lambda request: _jobs(request, _FIGURE_1),
    lambda rows, _: _sections(rows, "Figure 1", "figure-1", FIGURE_1_CLAIMS),
)
FIGURE_K = Experiment(
    "Ablation of K on NAS-Bench-1Shot1 space 3 at T = 1 and T = 5 (Appendix C's figure).",
    _COLUMNS,
    lambda request: _jobs(request, _figure_k(request)),
    _show_k,
)
