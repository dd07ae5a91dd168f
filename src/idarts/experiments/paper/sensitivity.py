"""On NAS-Bench-201: Figure 2 (iDARTS's sensitivity to T, γ and γ_α) and the ablation of K (Appendix C)."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from idarts.arch import convert, parse
from idarts.experiments.experiment import COST, Experiment, Request, cost
from idarts.experiments.jobs import Job, SearchJob
from idarts.experiments.paper import add
from idarts.experiments.paper.cells import HEADER, SPACE, accuracies, cell_table, means
from idarts.experiments.paper.published import COLUMNS, DATASETS, FIGURE_2_CLAIMS, SPLITS, TABLE_K
from idarts.experiments.runs import Run
from idarts.experiments.searches import search_jobs, settings
from idarts.experiments.store import Row
from idarts.pages.chart import Chart, Curve, banded, chart
from idarts.pages.experiment import Section

# Where an experiment looks at α, α alone decides, as in the paper; trials would hide the effect of a setting on it.
BY_ALPHA: dict[str, Any] = {"selection": {"rule": "argmax"}}
# The paper's figure prints no grids. γ_α is a multiple of the preset's, since it must suit the number of rounds.
GRIDS: dict[str, dict[str, tuple[float, ...]]] = {
    "paper": {"T": (1, 2, 3, 4, 5, 6), "γ": (0.001, 0.005, 0.01, 0.025, 0.05, 0.1), "γ_α": (0.1, 0.3, 1, 3, 10)},
    "cpu": {"T": (1, 2, 4), "γ": (0.001, 0.01, 0.1), "γ_α": (0.1, 1, 10)},
    "smoke": {"T": (1, 4), "γ": (0.01, 0.1), "γ_α": (1, 10)},
}
_FACTS = (*COLUMNS, *COST, "cell")
_READING = "Accuracy of the cell by the table; the band is one standard deviation over seeds."

Setting = tuple[str, dict[str, Any], list[tuple[str, float]]]  # label, changes, its places in the panels


def _settings(request: Request) -> Iterator[Setting]:
    """K = 1 throughout, and T = 4 where it does not vary; one search may stand in two panels."""
    grids = GRIDS[request.preset]
    base = float(settings(request, SPACE, "idarts", 0, {}).alpha.rate)  # every preset names it
    one = {"terms": 1}
    for T in grids["T"]:
        places = [("T", T)] + ([("γ_α", base)] if T == 4 else [])
        yield f"T{T:g}", {"inner_steps": int(T), "hypergradient": one}, places
    for rate in grids["γ"]:  # the weights' learning rate and the series' γ are one number in the paper
        weights = {"rate": rate, "last_rate": min(0.001, rate / 10)}
        changes = {"inner_steps": 4, "weights": weights, "hypergradient": {**one, "step": "rate"}}
        yield f"gamma{rate:g}", changes, [("γ", rate)]
    for factor in grids["γ_α"]:
        rate = float(f"{factor * base:.4g}")
        if factor != 1:
            changes = {"inner_steps": 4, "alpha": {"rate": rate}, "hypergradient": one}
            yield f"alpha{rate:g}", changes, [("γ_α", rate)]


def _plan_figure_2(request: Request) -> Iterator[Job]:
    cell_table(request.tables)  # an error if there is none
    for label, changes, places in _settings(request):
        heads = [{"panel": panel, "value": value} for panel, value in places]
        yield from search_jobs(request, SPACE, label, BY_ALPHA | changes, facts={"heads": heads})


def _rows(job: SearchJob, run: Run, request: Request) -> list[Row]:
    """One row for each place of a search in the panels, or in the table."""
    result = run.result or {}
    cell = parse(result["architecture"])
    facts = {**accuracies(cell_table(request.tables), cell), **cost(result), "cell": convert(cell, "string")}
    return [{**head, "seed": job.facts["seed"], **facts} for head in job.facts["heads"]]


def _show_figure_2(rows: list[Row], _: Request) -> list[Section]:
    sections = []
    for panel, claim in FIGURE_2_CLAIMS.items():
        mine = [row for row in rows if row["panel"] == panel]
        groups = [[row for row in mine if row["value"] == value] for value in sorted({row["value"] for row in mine})]
        lines = [[f"{panel} = {same[0]['value']:g}", str(len(same)), *means(same)] for same in groups]
        text = [f"The paper prints a picture without numbers and says: {claim}."]
        figures = [_panel(panel, mine, dataset) for dataset in DATASETS] if mine else []
        sections.append(Section(f"Sensitivity to {panel}", text, (panel, "seeds", *HEADER), lines, figures))
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


def _matrix(rows: list[Row], name: str) -> tuple[np.ndarray, np.ndarray]:
    """Values, and (seeds, values) of a column."""
    known = {(row["seed"], float(row["value"])): float(row[name]) for row in rows}
    values = sorted({value for _, value in known})
    seeds = sorted({seed for seed, _ in known if all((seed, value) in known for value in values)}, key=str)
    return np.array(values), np.array([[known[seed, value] for value in values] for seed in seeds])


_ABOUT_FIGURE_2 = "Figure 2: sensitivity of iDARTS on NAS-Bench-201 to T, γ and γ_α."
_COLUMNS = ("panel", "value", "seed", *_FACTS)
add(Experiment("figure-2", _ABOUT_FIGURE_2, _plan_figure_2, _show_figure_2, _rows, _COLUMNS))


def _plan_table_k(request: Request) -> Iterator[Job]:
    cell_table(request.tables)  # an error if there is none
    for T, K in TABLE_K:
        changes = BY_ALPHA | {"inner_steps": T, "hypergradient": {"terms": K}}
        yield from search_jobs(request, SPACE, f"T{T}-K{K}", changes, facts={"heads": [{"T": T, "K": K}]})


def _show_table_k(rows: list[Row], _: Request) -> list[Section]:
    lines: list[list[str]] = []
    for (T, K), published in TABLE_K.items():
        mine = [row for row in rows if (row["T"], row["K"]) == (T, K)]
        if mine:
            name = f"{'DARTS' if (T, K) == (1, 0) else 'iDARTS'} (T = {T}, K = {K})"
            lines += [[name, str(len(mine)), *means(mine)], ["  published", "", *published]]
    text = [
        "Mean ± standard deviation over seeds, in percent, by the table; the published rows are those of Appendix C."
    ]
    note = "With K = 0 the series is DARTS's one step; γ and the curvature are those of the preset."
    return [Section("Ablation of K at T = 1 and T = 4", text, ("", "seeds", *HEADER), lines, notes=[note])]


_ABOUT_TABLE_K = "Ablation of K on NAS-Bench-201 at T = 1 and T = 4 (Appendix C's table)."
add(Experiment("table-k", _ABOUT_TABLE_K, _plan_table_k, _show_table_k, _rows, ("T", "K", "seed", *_FACTS)))
