"""The theorems: closed forms against finite differences, bounds at every K, decays that are decays."""

from itertools import pairwise

import numpy as np
import pytest
import torch

from idarts.experiments.paper import theory
from idarts.experiments.paper.small_supernet import small_supernet, stepped
from idarts.experiments.paper.theory_page import COLUMNS, sections
from idarts.hypergrad import Neumann


def falls(values):
    """Whether a sequence falls from each value to the next."""
    return all(later < earlier for earlier, later in pairwise(values))


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
    assert falls([row["error"] for row in rows])


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
        assert falls(decays[kind]["estimate"][2:])
        assert decays[kind]["estimate"][-1] < 0.05 * decays[kind]["estimate"][0]


def test_theorem_2_the_true_gradient_decays_down_to_the_error_of_k_terms(decays):
    assert falls(decays["many"]["gradient"])
    assert decays["many"]["gradient"][-1] < 0.1 * decays["few"]["gradient"][-1]
    assert decays["few"]["gradient"][-1] < decays["few"]["bound"][-1]


def test_theorem_2_needs_its_second_condition(decays):
    assert decays["additive"]["estimate"][-1] > 10 * decays["many"]["estimate"][-1]


def shown(part, rows):
    """The lines of a part's table, for rows of it."""
    (section,) = sections([dict.fromkeys(COLUMNS, "") | {"part": part} | row for row in rows])
    return section.rows


@pytest.mark.parametrize(
    ("errors", "said"), [((3, 2, 1), "yes"), ((3, 4, 1), "no, not at T = 2"), ((1, 1, 2), "no, not at T = 2, 4")]
)
def test_the_page_says_of_errors_over_t_what_was_seen(errors, said):
    facts = dict.fromkeys(("cosine", "hvps", "gradient_evaluations", "milliseconds", "kilobytes"), 1.0)
    rows = [{"case": "a", "T": 2**place, "error": float(error), **facts} for place, error in enumerate(errors)]
    assert shown("after T steps", rows)[0][-1] == said


def test_the_page_says_of_theorem_2_what_was_seen():
    def rows(estimates, gradients):
        both = enumerate(zip(estimates, gradients, strict=True), start=1)
        head = {"case": "noise as in condition 2", "K": 0, "seed": 1, "bound": 1.0}
        return [head | {"step": step, "estimate": one, "gradient": other} for step, (one, other) in both]

    for estimates, gradients, said in (
        ((3.0, 1.0, 0.1), (3.0, 1.0, 0.9), ["yes", "no"]),
        ((3.0, 1.0, 0.9), (3.0, 1.0, 0.1), ["no", "yes"]),
    ):
        (line,) = shown("theorem 2", rows(estimates, gradients))
        assert [line[3], line[6]] == said


def test_the_page_says_of_corollary_2_what_was_seen():
    assert shown("corollary 2", [{"K": 1, "same": 0.1, "fewer": 1e-16}])[0][2::2] == ["no", "yes"]
    assert shown("corollary 2", [{"K": 1, "same": 1e-16, "fewer": 0.1}])[0][2::2] == ["yes", "no"]


def test_inner_steps_of_the_small_supernet_lead_to_its_optimum():
    net, w, a, eigenvalue = small_supernet(60, 3)
    far = [
        sum(float(((t - best).detach() ** 2).sum()) for t, best in zip(here, w, strict=True))
        for steps in (0, 4, 64)
        for here in [stepped(net, w, a, 1 / eigenvalue, steps)[1]]
    ]
    assert falls(far)
