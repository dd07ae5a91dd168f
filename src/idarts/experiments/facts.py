"""A comparison as plain data, for JSON and for pages."""

from typing import Any

import numpy as np

from idarts.experiments.comparison import (
    VALID,
    Comparison,
    Group,
    at_equal_cost,
    common_measures,
    curves,
    pairs,
    seed,
    value,
)
from idarts.experiments.statistics import holm

COSTS = ("gradient_evaluations", "seconds")
_KINDS = ("table", VALID)  # of curves by cost


def facts(comparison: Comparison) -> dict[str, Any]:
    """Groups, paired tests, values at equal cost, curves by cost and notes: what `--json` prints."""
    measures = _measures(comparison)
    equal = at_equal_cost(comparison)
    missing = [f"There is no column at equal cost: {equal}."] if isinstance(equal, str) else []
    return {
        "by": list(comparison.by),
        "data": sorted({str(run.config.get("data", "own data")) for group in comparison.groups for run in group.runs}),
        "measure": comparison.measure,
        "measures": measures,
        "groups": [
            {
                "name": group.name,
                "seeds": [seed(run) for run in group.runs],
                **{name: _summary([value(run, name) for run in group.runs]) for name in (*measures, *COSTS)},
                **({} if isinstance(equal, str) else {"at_equal_cost": _summary(equal[2][group.name])}),
            }
            for group in comparison.groups
        ],
        "equal_cost": None if isinstance(equal, str) else {"gradient_evaluations": equal[1], "measure": equal[0]},
        "pairs": _pairs(comparison),
        "curves": {kind: [one for group in comparison.groups for one in _curve(group, kind)] for kind in _KINDS},
        "notes": [*comparison.notes, *missing],
    }


def _measures(comparison: Comparison) -> list[str]:
    """The measures that every run has, the tested one first."""
    shared = common_measures([run for group in comparison.groups for run in group.runs])
    return [comparison.measure, *(name for name in shared if name != comparison.measure)]


def _pairs(comparison: Comparison) -> list[dict[str, Any]]:
    tested = pairs(comparison)
    corrected = holm([test.permutation for _, _, test in tested])
    return [
        {
            "first": first,
            "second": second,
            "seeds": test.pairs,
            "difference": _number(test.mean),
            "deviation": test.deviation,
            "permutation_p": test.permutation,
            "permutation_p_holm": p,
            "t_test_p": test.t_test,
        }
        for (first, second, test), p in zip(tested, corrected, strict=True)
    ]


def _curve(group: Group, kind: str) -> list[dict[str, Any]]:
    """The costs that all runs of a group reached, and what each run had there; nothing if the log has no costs."""
    known = curves(group, kind)
    return [] if known is None else [{"name": group.name, "cost": known[0].tolist(), "values": known[1].tolist()}]


def _summary(values: list[float]) -> dict[str, Any]:
    known = [one for one in values if np.isfinite(one)]
    mean = float(np.mean(known)) if known else None
    deviation = float(np.std(known, ddof=1)) if len(known) > 1 else None
    return {"mean": mean, "std": deviation, "values": list(map(_number, values))}


def _number(value: float) -> float | None:
    return value if np.isfinite(value) else None
