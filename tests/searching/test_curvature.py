"""The largest eigenvalue of ∇²_α L2: against closed forms and a dense Hessian; the search does not notice it."""

import json
import math

import pytest
import torch
from tiny import begin, same
from torch.nn.functional import cross_entropy

from idarts import InputError
from idarts.arch import parse
from idarts.cli import main
from idarts.engine.folder import METRICS
from idarts.hypergrad import lift
from idarts.searching import config
from idarts.searching.curvature import curvature, measure

EVERY = {"alpha": {"curvature_rounds": 2}}
SIGNS = {
    "mixed": [-3.0, 0.5, 2.0, 7.0],
    "equal modulus": [-5.0, 1.0, 2.0, 5.0],
    "mostly negative": [-9.0, -1.0, 0.5, 4.0],
    "negative": [-9.0, -6.0, -5.0, -2.0],
}


def finished(*arguments, **changes):
    """A search after its rounds, and these."""
    search = begin(*arguments, **changes)
    return search, list(search.rounds())


def without_cost(search):
    return {name: part for name, part in search.state_dict().items() if name not in ("seconds", "counts")}


@pytest.mark.parametrize("eigenvalues", SIGNS.values(), ids=SIGNS)
def test_a_quadratic_form(eigenvalues):
    torch.manual_seed(0)
    basis = torch.linalg.qr(torch.randn(4, 4, dtype=torch.float64)).Q
    matrix = basis @ torch.diag(torch.tensor(eigenvalues, dtype=torch.float64)) @ basis.T
    a = tuple(torch.randn(2, 1, dtype=torch.float64, requires_grad=True) for _ in range(2))

    def loss(a):
        x = torch.cat(a).reshape(-1)
        return x @ matrix @ x / 2 + x.sum()

    value, cost = curvature(loss, a)
    assert value == pytest.approx(max(eigenvalues), rel=1e-9)
    assert cost == 1 + 2 * 4  # a gradient, and a product for each dimension


def test_a_loss_that_is_linear_or_not_finite():
    a = (torch.zeros(3, requires_grad=True),)
    assert curvature(lambda a: a[0].sum(), a)[0] == 0
    assert math.isnan(curvature(lambda a: (math.nan * a[0] ** 2).sum(), a)[0])


def test_two_classes():
    """For cross-entropy of logits (α, −α), p = σ(2α), the second derivative is 4p(1 − p)."""
    a = torch.tensor([0.3], dtype=torch.float64, requires_grad=True)
    p = torch.sigmoid(2 * a.detach())
    value, _ = curvature(lambda a: cross_entropy(torch.cat([a[0], -a[0]])[None], torch.tensor([0])), (a,))
    assert value == pytest.approx((4 * p * (1 - p)).item(), rel=1e-12)


@pytest.mark.parametrize("name", ["nas-bench-201", "darts-s2", "darts-s4"])
def test_a_supernet_against_the_dense_hessian(name):
    search, _ = finished("darts-first-order", 3, name, **EVERY)
    batch, alphas = next(search.task.valid), search.a
    search.net.relaxations = {group: search.relaxed(search.relaxation, group) for group in search.net.alpha}
    search.spent.number = 4
    state = torch.get_rng_state()
    value = measure(search, batch)["alpha_curvature"]
    sizes = [alpha.numel() for alpha in alphas]
    loss = lift(search.net, cross_entropy, batch, search.w, alphas)

    def flat(vector):
        torch.set_rng_state(state)  # the same noise
        parts = zip(vector.split(sizes), alphas, strict=True)
        return loss(search.w, tuple(part.view_as(alpha) for part, alpha in parts))

    hessian = torch.autograd.functional.hessian(flat, torch.cat([alpha.detach().reshape(-1) for alpha in alphas]))
    exact = torch.linalg.eigvalsh(hessian.double())[-1].item()
    assert 0.99 * exact < value < 1.001 * exact  # it approaches it from below


@pytest.mark.parametrize(
    ("method", "name"),
    [("idarts", "nas-bench-201"), ("gdas", "nas-bench-201"), ("darts-first-order", "darts-s4"), ("idarts", "darts-s4")],
)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_search_does_not_notice_it(method, name):
    (off, plain), (on, measured) = finished(method, 4, name), finished(method, 4, name, **EVERY)
    assert same(without_cost(off), without_cost(on))
    assert [round.measures.get("alpha_curvature") is not None for round in measured] == [False, True, False, True]
    for one, other in zip(plain, measured, strict=True):
        assert "alpha_curvature" not in one.measures
        assert one.measures.items() <= other.measures.items()
        assert (one.train_loss, one.valid_loss, one.rate) == (other.train_loss, other.valid_loss, other.rate)
    assert 0 < on.spent.measuring <= 2 * (1 + 2 * 20)  # a gradient, and at most 20 products
    assert on.gradient_evaluations == off.gradient_evaluations + on.spent.measuring == measured[-1].gradient_evaluations


def test_it_uses_up_no_budget():
    """The learning rate and the number of rounds follow the budget, so both would change."""
    limit = {"gradient_evaluations": 9.0}
    (off, plain), (on, measured) = (finished("darts-first-order", 99, **limit, **more) for more in ({}, EVERY))
    assert len(plain) == len(measured) < 10
    assert same(without_cost(off), without_cost(on))
    assert off.gradient_evaluations < 12 < on.gradient_evaluations


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_resumed_search_measures_the_same():
    whole, rounds = finished("darts-first-order", 4, "darts-s4", **EVERY)
    first = begin("darts-first-order", 4, "darts-s4", **EVERY)
    running = first.rounds()
    before = [next(running).entry() for _ in range(3)]
    state = first.state_dict()
    second = begin("darts-first-order", 4, "darts-s4", **EVERY)
    second.load_state_dict(state)
    assert before + [round.entry() for round in second.rounds()] == [round.entry() for round in rounds]
    assert same(without_cost(second), without_cost(whole))
    assert second.state_dict()["counts"] == whole.state_dict()["counts"]


def test_a_state_without_measurements_is_loaded():
    search, _ = finished("darts-first-order", 2)
    state = search.state_dict()
    state["counts"] = state["counts"][:4]  # as it was written before
    again = begin("darts-first-order", 2)
    again.load_state_dict(state)
    assert (again.spent.measuring, again.gradient_evaluations) == (0.0, search.gradient_evaluations)


@pytest.mark.parametrize(
    ("method", "message"),
    [
        ("enas", "strategy controller does not measure alpha.curvature_rounds; use 0, or gradient"),
        ("random-nas", "strategy fixed does not measure alpha.curvature_rounds; use 0, or gradient"),
        ("drnas", "relaxation partial-channels has no second derivative; use --alpha.curvature_rounds 0"),
    ],
)
def test_what_cannot_be_measured_is_refused(method, message):
    with pytest.raises(InputError) as error:
        config(method, **EVERY)
    assert str(error.value).endswith(message)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_the_log_has_it(tmp_path, capsys):
    options = ["--rounds", "4", "--batch", "8", "--channels", "4", "--device", "cpu", "--method", "darts-first-order"]
    out = tmp_path / "run"
    measured = ["--alpha.curvature_rounds", "2", "--space", "darts-s2", "--preset", "smoke", "--out", str(out)]
    assert main(["search", *options, *measured]) == 0, capsys.readouterr()
    rows = [json.loads(line) for line in (out / METRICS).read_text().splitlines()]
    assert [row["alpha_curvature"] is None for row in rows] == [True, False, True, False]
    assert [row["skips"] is None for row in rows] == [True, False, True, False]
    for before, row in zip(rows[::2], rows[1::2], strict=True):  # at the α before the step
        cells = parse(before["architecture"]).cells.values()
        assert row["skips"] == sum(edge.op == "skip_connect" for cell in cells for edge in cell.edges)
