"""The theorems: closed forms against finite differences, bounds at every K, decays that are decays."""

import numpy as np
import pytest
import torch

from idarts.hypergrad import Neumann
from idarts.reproduce import theory
from idarts.reproduce.small_supernet import small_supernet, stepped


def test_the_closed_gradient_is_the_slope_of_the_outer_loss():
    problem, a = theory.bilevel(seed=3)

    def value(a):
        return float(problem.outer((problem.optimum(a),), (a,)))

    step = 1e-6
    sides = [(value(a + step * e) - value(a - step * e)) / (2 * step) for e in torch.eye(len(a), dtype=a.dtype)]
    assert problem.gradient(a).tolist() == pytest.approx(sides, abs=1e-8)


def test_the_problem_has_the_constants_it_claims():
    problem, _ = theory.bilevel()
    eigenvalues = torch.linalg.eigvalsh(problem.H)
    assert [eigenvalues[0].item(), eigenvalues[-1].item()] == pytest.approx([theory.MU, theory.L])


@pytest.mark.parametrize("case", [case for case, (step, _, off) in theory.CASES.items() if step <= 1 and not off])
def test_theorem_1_holds_at_every_k(case):
    rows = list(theory.theorem_1(case))
    assert [row["K"] for row in rows] == list(theory.TERMS)
    assert all(row["error"] <= row["bound"] * (1 + 1e-9) for row in rows)
    assert theory.falls([row["error"] for row in rows])


def test_theorem_1_is_an_equality_along_the_smallest_eigenvalue():
    assert all(row["error"] == pytest.approx(row["bound"], rel=1e-6) for row in theory.theorem_1("g, B along μ"))


@pytest.mark.parametrize("case", ["γ = 1.9/L", "w off w*"])
def test_theorem_1_fails_where_its_conditions_do(case):
    rows = list(theory.theorem_1(case))
    assert rows[0]["error"] < rows[0]["bound"]
    assert rows[-1]["error"] > 10 * rows[-1]["bound"]


def test_a_wrong_estimate_would_break_the_bound(monkeypatch):
    """The check can fail: a series with half the step is above the bound of the whole one."""
    monkeypatch.setattr(theory, "Neumann", lambda terms, step: Neumann(terms, step / 2))
    assert any(row["error"] > row["bound"] for row in theory.theorem_1("g, B along μ"))


def test_corollary_2_is_off_by_one():
    for row in theory.corollary_2():
        assert row["fewer"] < 1e-12
        assert row["same"] > 1e-4


@pytest.fixture(scope="module")
def decays():
    def means(rows):
        names = "estimate", "gradient", "bound"
        return {name: np.mean([[row[name] for row in run] for run in rows], axis=0).tolist() for name in names}

    kinds = {"few": (0, False), "many": (24, False), "additive": (8, True)}
    return {
        kind: means([list(theory.theorem_2(terms, 300, seed, additive)) for seed in (1, 2, 3)])
        for kind, (terms, additive) in kinds.items()
    }


def test_theorem_2_the_estimate_decays_on_average(decays):
    for kind in ("few", "many"):
        assert theory.falls(decays[kind]["estimate"][2:])
        assert decays[kind]["estimate"][-1] < 0.05 * decays[kind]["estimate"][0]


def test_theorem_2_the_true_gradient_decays_down_to_the_error_of_k_terms(decays):
    assert theory.falls(decays["many"]["gradient"])
    assert decays["many"]["gradient"][-1] < 0.1 * decays["few"]["gradient"][-1]
    assert decays["few"]["gradient"][-1] < decays["few"]["bound"][-1]


def test_theorem_2_needs_its_second_condition(decays):
    assert decays["additive"]["estimate"][-1] > 10 * decays["many"]["estimate"][-1]


def test_inner_steps_of_the_small_supernet_lead_to_its_optimum():
    net, w, a, eigenvalue = small_supernet(60, 3)
    far = [
        sum(float(((t - best).detach() ** 2).sum()) for t, best in zip(here, w, strict=True))
        for steps in (0, 4, 64)
        for here in [stepped(net, w, a, 1 / eigenvalue, steps)[1]]
    ]
    assert theory.falls(far)
