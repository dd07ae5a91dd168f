"""On NAS-Bench-201: Figure 2 (iDARTS's sensitivity to T, γ and γ_α) and the ablation of K (Appendix C)."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from idarts.arch import convert
from idarts.experiments.frame import Experiment, Job, Request
from idarts.experiments.paper.published import COLUMNS, DATASETS, FIGURE_2_CLAIMS, SPLITS, TABLE_K
from idarts.experiments.searches import (
    BY_ALPHA,
    COST,
    NAS_BENCH_201,
    accuracies,
    cost,
    found_cell,
    search_jobs,
    settings,
)
from idarts.experiments.store import Row
from idarts.pages.chart import Chart, Curve, banded, chart
from idarts.pages.experiment import Section, column
from idarts.pages.numbers import mean_std
from idarts.tables import Table, table

Labelled = tuple[str, dict[str, Any], list[tuple[str, float]]]  # run's label, changes, where in the figure it stands

# The paper's figure prints no grids. γ_α is a multiple of the preset's, since it must suit the number of rounds.
GRIDS: dict[str, dict[str, tuple[float, ...]]] = {
    "paper": {"T": (1, 2, 3, 4, 5, 6), "γ": (0.001, 0.005, 0.01, 0.025, 0.05, 0.1), "γ_α": (0.1, 0.3, 1, 3, 10)},
    "cpu": {"T": (1, 2, 4), "γ": (0.001, 0.01, 0.1), "γ_α": (0.1, 1, 10)},
    "smoke": {"T": (1, 4), "γ": (0.01, 0.1), "γ_α": (1, 10)},
}
_FACTS = (*COLUMNS, *COST, "cell")
_HEADER = tuple(f"{DATASETS[name]} {split}" for name in DATASETS for split in SPLITS)


def _runs(request: Request) -> list[Labelled]:
    """K = 1 throughout, and T = 4 where it is not varied; one run may stand in two panels."""
    grids = GRIDS[request.preset]
    base = settings(request, NAS_BENCH_201, "idarts", 0, {}).alpha.rate
    one = {"terms": 1}
    found: list[Labelled] = []
    for T in grids["T"]:
        places = [("T", T)] + ([("γ_α", base)] if T == 4 else [])
        found.append((f"T{T:g}", {"inner_steps": int(T), "hypergradient": one}, places))
    for rate in grids["γ"]:  # the weights' learning rate and the series' γ are one number in the paper
        weights = {"rate": rate, "last_rate": min(0.001, rate / 10)}
        changes = {"inner_steps": 4, "weights": weights, "hypergradient": {**one, "step": "rate"}}
        found.append((f"gamma{rate:g}", changes, [("γ", rate)]))
    for factor in grids["γ_α"]:
        rate = float(f"{factor * base:.4g}")
        if factor != 1:
            changes = {"inner_steps": 4, "alpha": {"rate": rate}, "hypergradient": one}
            found.append((f"alpha{rate:g}", changes, [("γ_α", rate)]))
    return found


def _figure_2_jobs(request: Request) -> Iterable[Job]:
    known = table(NAS_BENCH_201, request.tables)
    for label, changes, places in _runs(request):
        heads: list[Row] = [{"panel": panel, "value": value} for panel, value in places]
        yield from search_jobs(request, NAS_BENCH_201, label, BY_ALPHA | changes, _rows(known, heads))


def _rows(known: Table, heads: Sequence[Row]) -> Any:
    def rows(result: dict[str, Any], _: Path, seed: int) -> Sequence[Row]:
        cell = found_cell(result)
        facts = {**accuracies(known, cell), **cost(result), "cell": convert(cell, "string")}
        return [{**head, "seed": seed, **facts} for head in heads]

    return rows


def _figure_2(rows: list[Row], request: Request) -> list[Section]:
    sections = []
    for panel, claim in FIGURE_2_CLAIMS.items():
        mine = [row for row in rows if row["panel"] == panel]
        values = sorted({float(row["value"]) for row in mine})
        lines = [
            [f"{panel} = {value:g}", str(len(same)), *(mean_std(column(same, name)) for name in COLUMNS)]
            for value in values
            for same in [[row for row in mine if row["value"] == value]]
        ]
        text = [f"The paper prints a picture without numbers and says: {claim}."]
        figures = [_panel(panel, mine, dataset) for dataset in DATASETS] if mine else []
        sections.append(Section(f"Sensitivity to {panel}", text, (panel, "seeds", *_HEADER), lines, figures))
    return sections


def _panel(panel: str, rows: list[Row], dataset: str) -> Chart:
    """Valid and test accuracy over the values; the mean over those seeds that all values have."""
    curves = []
    for split in SPLITS:
        values, matrix = _matrix(rows, f"{dataset}_{split}")
        curves.append(banded(split, values, matrix) if matrix.size else Curve(split, values, values * np.nan))
    name = f"figure-2-{ {'T': 't', 'γ': 'gamma', 'γ_α': 'gamma-alpha'}[panel] }-{dataset}"
    axes = panel, "accuracy in percent"
    return chart(name, f"{DATASETS[dataset]} over {panel}", axes, curves, _READING, log_x=panel != "T")


_READING = "Accuracy by the table of the cell found; the band is one standard deviation over seeds."


def _matrix(rows: list[Row], name: str) -> tuple[np.ndarray, np.ndarray]:
    """Values, and (seeds, values) of a column."""
    found = {(row["seed"], float(row["value"])): float(row[name]) for row in rows}
    values = sorted({value for _, value in found})
    seeds = [seed for seed in dict(found) if all((seed[0], value) in found for value in values)]
    kept = sorted({seed for seed, _ in seeds}, key=str)
    return np.array(values), np.array([[found[seed, value] for value in values] for seed in kept])


FIGURE_2 = Experiment(
    "Figure 2: sensitivity of iDARTS on NAS-Bench-201 to T, γ and γ_α.",
    ("panel", "value", "seed", *_FACTS),
    _figure_2_jobs,
    _figure_2,
)


def _table_k_jobs(request: Request) -> Iterable[Job]:
    known = table(NAS_BENCH_201, request.tables)
    for T, K in TABLE_K:
        changes = BY_ALPHA | {"inner_steps": T, "hypergradient": {"terms": K}}
        rows = _rows(known, [{"T": T, "K": K}])
        yield from search_jobs(request, NAS_BENCH_201, f"T{T}-K{K}", changes, rows)


def _table_k(rows: list[Row], _: Request) -> list[Section]:
    lines: list[list[str]] = []
    for (T, K), published in TABLE_K.items():
        mine = [row for row in rows if (row["T"], row["K"]) == (T, K)]
        if mine:
            name = f"{'DARTS' if (T, K) == (1, 0) else 'iDARTS'} (T = {T}, K = {K})"
            cells = [mean_std(column(mine, column_)) for column_ in COLUMNS]
            lines += [[name, str(len(mine)), *cells], ["  published", "", *published]]
    text = [
        "Mean ± standard deviation over seeds, in percent, by the table; the published rows are those of Appendix C."
    ]
    note = "With K = 0 the series is DARTS's one step; γ and the curvature are those of the preset."
    return [Section("Ablation of K at T = 1 and T = 4", text, ("", "seeds", *_HEADER), lines, notes=[note])]


TABLE_K_EXPERIMENT = Experiment(
    "Ablation of K on NAS-Bench-201 at T = 1 and T = 4 (Appendix C's table).",
    ("T", "K", "seed", *_FACTS),
    _table_k_jobs,
    _table_k,
)
