"""The page of `table-hypergradients`: one section a theorem, with tables and charts."""

from itertools import pairwise

import numpy as np

from idarts.experiments.paper.published import OVERVIEW
from idarts.experiments.paper.theory import CASES, NOISE, still_falls
from idarts.experiments.store import Row
from idarts.pages.chart import Chart, Curve, banded, chart
from idarts.pages.experiment import Section, column

_QUALITY = ("cosine", "error", "hvps", "gradient_evaluations", "milliseconds", "kilobytes")
_MEASURED = ("cos", "relative error", "HVPs", "gradient evaluations", "ms", "peak kB")
COLUMNS = ("part", "case", "K", "T", "seed", "step", *_QUALITY, "bound", "same", "fewer", "estimate", "gradient")


def sections(rows: list[Row]) -> list[Section]:
    """One section for each part that has rows."""
    parts = {"at w*": _overview, "after T steps": _after_steps, "theorem 1": _theorem_1}
    parts |= {"corollary 2": _corollary_2, "theorem 2": _theorem_2}
    by_part = {part: [row for row in rows if row["part"] == part] for part in parts}
    return [show(by_part[part]) for part, show in parts.items() if by_part[part]]


def _cases(rows: list[Row]) -> dict[str, list[Row]]:
    return {case: [row for row in rows if row["case"] == case] for case in dict.fromkeys(str(r["case"]) for r in rows)}


def _curves(rows: list[Row], across: str, up: str) -> list[Curve]:
    """One curve for each case that has the variable."""
    return [
        Curve(case, np.array(column(mine, across)), np.array(column(mine, up)))
        for case, mine in _cases(rows).items()
        if column(mine, across)
    ]


def _overview(rows: list[Row]) -> Section:
    header = ("method", *_MEASURED, "published: steps", "memory")
    shown = [mine[place] for mine in _cases(rows).values() for place in sorted({0, len(mine) // 2, len(mine) - 1})]
    lines = [[_named(row), *_measured(row), *_published(str(row["case"]))] for row in shown]
    text = [
        "A small supernet on digits, at the optimum of its inner loss: every estimate against the exact hypergradient. "
        "Steps and memory come from the paper's overview; P and H are the memory of a gradient of w and of α."
    ]
    with_terms = [row for row in rows if row["K"] != ""]
    charts = []
    if with_terms:
        charts = [
            chart(
                "error-over-k",
                "Error at w*",
                ("K", "relative error"),
                _curves(with_terms, "K", "error"),
                "K: terms, iterations, rank, steps kept. The further γ is below 1/λ_max, the less a term should help.",
                log_y=True,
            ),
            chart(
                "memory-over-k",
                "Memory at w*",
                ("K", "peak kilobytes"),
                _curves(with_terms, "K", "kilobytes"),
                "Truncated reverse mode keeps the graphs of K steps; the series keeps one.",
                log_y=True,
            ),
            chart(
                "time-over-k",
                "Time at w*",
                ("K", "milliseconds"),
                _curves(with_terms, "K", "milliseconds"),
                "Each term is one Hessian-vector product.",
                log_y=True,
            ),
        ]
    notes = [
        "The exact hypergradient needs as many products as there are weights, not ∞; one step and T1–T2 need none.",
        "All rows are in results.csv; here the first, a middle and the last K of each method.",
    ]
    return Section("Hypergradients at the inner optimum", text, header, lines, charts, notes)


def _named(row: Row) -> str:
    suffix = f", K = {row['K']}" if row["K"] != "" else ""
    return f"{row['case']}{suffix}"


def _measured(row: Row) -> list[str]:
    return [
        f"{row['cosine']:.4f}",
        f"{row['error']:.2e}",
        str(row["hvps"]),
        f"{row['gradient_evaluations']:.1f}",
        f"{row['milliseconds']:.2f}",
        f"{row['kilobytes']:.0f}",
    ]


def _published(case: str) -> tuple[str, str]:
    return next((facts for name, facts in OVERVIEW.items() if case.startswith(name)), ("–", "–"))


def _after_steps(rows: list[Row]) -> Section:
    header = ("method", "T", *_MEASURED, "error falls with T")
    charts = [
        chart(
            "error-over-t",
            "Error after T inner steps",
            ("T", "relative error to the exact at w*"),
            _curves(rows, "T", "error"),
            "Inner steps take w to w*: each error should approach the one that the method has there.",
            log_x=True,
            log_y=True,
        ),
        chart(
            "memory-over-t",
            "Memory after T inner steps",
            ("T", "peak kilobytes"),
            _curves(rows, "T", "kilobytes"),
            "Reverse mode keeps all T graphs, as the overview says, truncated reverse mode K, the others none.",
            log_x=True,
            log_y=True,
        ),
    ]
    text = [
        "The weights start near the optimum and take T steps with γ = 1/λ_max; the reference is the exact value at w*."
    ]
    lines = [
        [case, str(mine[-1]["T"]), *_measured(mine[-1]), _falling_error(mine)] for case, mine in _cases(rows).items()
    ]
    note = (
        "Gradient evaluations and time include the T inner steps: reverse mode takes them itself, "
        "for the other methods they are taken before the estimate."
    )
    return Section("As T grows", text, header, lines, charts, [note])


def _falling_error(rows: list[Row]) -> str:
    errors = column(rows, "error")
    rises = [row["T"] for row, (before, error) in zip(rows[1:], pairwise(errors), strict=True) if error >= before]
    return f"no, not at T = {', '.join(map(str, rises))}" if rises else "yes"


def _theorem_1(rows: list[Row]) -> Section:
    lines = []
    for case, mine in _cases(rows).items():
        errors, bounds = np.array(column(mine, "error")), np.array(column(mine, "bound"))
        above = [row["K"] for row, error, bound in zip(mine, errors, bounds, strict=True) if error > bound * (1 + 1e-9)]
        lines.append(
            [
                case,
                f"{(errors / bounds).min():.2g} to {(errors / bounds).max():.2g}",
                f"no, from K = {above[0]}" if above else "yes",
            ]
        )
    text = [
        "‖∇L2 − ∇L̃2‖ ≤ C·C'·(1 − γμ)^(K+1)/μ on a problem whose constants are known: μ = 0.2, L = 1, C = ‖∂²L1/∂α∂w‖, "
        "C' = ‖∂L2/∂w‖ at w*.",
        "It should hold for every K where γ ≤ 1/L, with equality where g and B lie along the eigenvector of μ. "
        "The theorem's text leaves out two things that it needs: γ ≤ 1/L (the series converges up to γ < 2/L, but then "
        "at the rate |1 − γL|, which is slower), and w = w* (off the optimum an error remains for every K). The table "
        "shows where it held.",
    ]
    charts = [_over_bound(case, _cases(rows)[case], place) for place, case in enumerate(CASES) if case in _cases(rows)]
    return Section("Theorem 1", text, ("case", "error / bound", "bound holds"), lines, charts)


def _over_bound(case: str, rows: list[Row], place: int) -> Chart:
    x = np.array(column(rows, "K"))
    curves = [
        Curve(name, x, np.array(column(rows, up)))
        for name, up in (("measured error", "error"), ("bound of Theorem 1", "bound"))
    ]
    return chart(f"theorem-1-{place + 1}", f"Theorem 1, {case}", ("K", "error"), curves, log_y=True)


def _corollary_2(rows: list[Row]) -> Section:
    lines = [
        [str(row["K"]), *(cell for up in ("same", "fewer") for cell in (f"{row[up]:.1e}", _yes(float(row[up]) < 1e-9)))]
        for row in rows
    ]
    text = [
        "Truncated reverse mode over the last K steps, at a converged w. Corollary 2 says that it equals the series "
        "with the same K; by their terms it should be that with K − 1: the sum over t = T−K+1 … T has K terms, that "
        "over k = 0 … K has K + 1."
    ]
    header = ("K", "relative difference to Neumann(K)", "equal", "to Neumann(K − 1)", "equal")
    return Section("Corollary 2 and its count of terms", text, header, lines)


def _theorem_2(rows: list[Row]) -> Section:
    kinds = {
        f"K = {row['K']}{', additive noise' if str(row['case']).startswith('additive') else ''}": (
            row["K"],
            row["case"],
        )
        for row in rows
    }
    groups = {name: [row for row in rows if (row["K"], row["case"]) == kind] for name, kind in kinds.items()}
    lines = [
        [
            name,
            *(cell for up in ("estimate", "gradient") for cell in _fallen(_means(mine, up))),
            f"{_means(mine, 'bound')[-1]:.1e}",
        ]
        for name, mine in groups.items()
    ]
    steps = max(column(rows, "step"))
    text = [
        f"Minibatches of L1 differ by linear functions, those of L2 by factors 1 ± {NOISE}; γ_α falls so that its sum "
        "diverges and that of its squares does not: all conditions of the theorem hold. By it, ‖∇L̂2‖ should fall to "
        "zero for every K.",
        "The true ‖∇L2‖ should not fall to zero, but stay at the error of the K terms: the proof needs P < 1, and P "
        "grows without limit as ‖∇L̃2‖ falls, so with K fixed the search converges to a stationary point of the "
        "estimate, not of L2. With additive noise (condition 2 broken) the stochastic ‖∇L̂2‖ should stay at the noise.",
        f"{steps:,.0f} steps cannot show a limit. A norm “still falls” if at the end it is below half of what it was "
        "at the point before, after 0.56 times as many steps.",
    ]
    norms = (cell for norm in ("‖∇L̂2‖", "true ‖∇L2‖") for cell in (f"{norm} at first", "at the end", "still falls"))
    header = ("", *norms, "Theorem 1's bound of the rest")
    axes = "steps of α", "norm"
    charts = [
        chart(
            "theorem-2-estimate",
            "The stochastic estimate ‖∇L̂2‖",
            axes,
            _falling(groups, "estimate"),
            log_x=True,
            log_y=True,
        ),
        chart(
            "theorem-2-gradient", "The true gradient ‖∇L2‖", axes, _falling(groups, "gradient"), log_x=True, log_y=True
        ),
    ]
    return Section(
        "Theorem 2",
        text,
        header,
        lines,
        charts,
        ["Norms are means over the steps since the point before, and over seeds."],
    )


def _fallen(means: list[float]) -> tuple[str, str, str]:
    return f"{means[0]:.1e}", f"{means[-1]:.1e}", _yes(still_falls(means))


def _yes(holds: bool) -> str:
    return "yes" if holds else "no"


def _means(rows: list[Row], up: str) -> list[float]:
    steps = sorted({float(row["step"]) for row in rows})
    return [float(np.mean(column([row for row in rows if row["step"] == step], up))) for step in steps]


def _falling(groups: dict[str, list[Row]], up: str) -> list[Curve]:
    curves = []
    for name, mine in groups.items():
        steps = sorted({float(row["step"]) for row in mine})
        seeds = dict.fromkeys(row["seed"] for row in mine)
        values = np.array([column([row for row in mine if row["seed"] == seed], up) for seed in seeds])
        curves.append(banded(name, np.array(steps), values))
    return curves
