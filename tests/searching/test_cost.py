"""The cost-aware search: the expectation by enumeration and finite differences, budgets that real searches hold."""

import json
from itertools import product

import pytest
import torch
from tiny import begin
from torch import nn

from idarts.data import Batches, load, split
from idarts.errors import InputError
from idarts.searching import RunConfig, Task, config, run
from idarts.searching.cost import CostTarget, cost_target
from idarts.searching.settings import Cost, Selection
from idarts.spaces import (
    Choice,
    ChoiceSupernet,
    Skeleton,
    count,
    count_module,
    derive,
    measure_latency,
    nas_bench_201,
    space,
)
from idarts.spaces.nas_bench_201 import OPS
from idarts.spaces.prices import prices

CELLS = list(product(range(5), repeat=6))
PARAMETERS = {"base": 73306, "nor_conv_1x1": 28000, "nor_conv_3x3": 243040}  # of the benchmark's table
MULTIPLY_ADDS = {"base": 7782400 + 650, "nor_conv_1x1": 3932160, "nor_conv_3x3": 35389440}


@pytest.fixture(scope="module")
def parts():
    return split(load("digits").train, 0.5, seed=0)


def supernet(name="nas-bench-201", scale=0.0):
    torch.manual_seed(3)
    found = space(name)
    net = found.supernet(found.skeleton.changed(depth=3 if name == "darts" else 1, channels=4), in_channels=1)
    for alpha in net.alpha.values():
        nn.init.normal_(alpha, std=scale or 1e-3)
    return net


def table_cost(cell, numbers):
    return numbers["base"] + sum(numbers.get(OPS[column], 0) for column in cell)


def test_options_that_have_left_cost_nothing():
    """The expectation among the living options, and no gradient for the others."""
    net, wanted = supernet(), Cost("parameters", target=4e5)
    alive = [[False, True, column == 3, column != 3, False] for column in (3, 2, 3, 2, 3, 2)]
    with torch.no_grad():
        net.alpha["cell"].copy_(torch.randn(6, 5, generator=torch.Generator().manual_seed(0)))
    known = prices(net, "parameters")
    found = CostTarget(net, known, wanted, mask=lambda: {"cell": alive})
    shares = net.alpha["cell"].detach().masked_fill(~torch.tensor(alive), -torch.inf).softmax(1)
    expected = known.base + (shares * torch.tensor(known.options["cell"])).sum().item()
    assert found.expected().item() == pytest.approx(expected, rel=1e-6)
    assert found.expected().item() != pytest.approx(CostTarget(net, known, wanted).expected().item(), rel=1e-3)
    (grad,) = found.gradient(0.5)
    assert not grad[~torch.tensor(alive)].any()
    assert grad[torch.tensor(alive)].all()


def test_a_search_expects_the_cost_of_its_living_options():
    search = begin("drnas", 4, cost={"kind": "parameters", "target": 372_000.0, "tolerance": 0.9}, channels=8)
    list(search.rounds())
    assert sum(map(sum, search.mask["cell"])) == 6 * 3  # of five
    assert search.cost.mask() == search.mask


@pytest.mark.parametrize(("kind", "numbers"), [("parameters", PARAMETERS), ("multiply_adds", MULTIPLY_ADDS)])
def test_expectation_is_that_of_all_cells(kind, numbers):
    net = supernet(scale=1.0).double()
    found = CostTarget(net, prices(net, kind), Cost(kind, target=4e5))
    logs = net.alpha["cell"].detach().log_softmax(1)
    cells = torch.tensor(CELLS)
    probability = sum(logs[edge, cells[:, edge]] for edge in range(6)).exp()
    costs = torch.tensor([table_cost(cell, numbers) for cell in CELLS], dtype=torch.float64)
    assert found.expected().item() == pytest.approx((probability * costs).sum().item(), rel=1e-12)


def test_gradient_by_finite_differences():
    net = supernet(scale=1.0).double()
    found = CostTarget(net, prices(net, "parameters"), Cost("parameters", target=4e5, weight=0.7))
    alpha = net.alpha["cell"]
    (gradient,) = found.gradient(0.4)
    for place in [(0, 0), (2, 3), (5, 2)]:
        sides = []
        for step in (1e-6, -1e-6):
            with torch.no_grad():
                alpha[place] += step
                sides.append(found.penalty(0.4).item())
                alpha[place] -= step
        assert gradient[place].item() == pytest.approx((sides[0] - sides[1]) / 2e-6, rel=1e-5, abs=1e-9)


@pytest.mark.parametrize("target", [129_306, 372_346, 900_000])
def test_pick_is_the_most_probable_of_all_that_will_do(target):
    net = supernet(scale=1.0)
    found = CostTarget(net, prices(net, "parameters"), Cost("parameters", target=target))
    logs = net.alpha["cell"].detach().log_softmax(1).tolist()
    inside = [cell for cell in CELLS if abs(table_cost(cell, PARAMETERS) / target - 1) <= 0.05]
    best = max(inside, key=lambda cell: sum(logs[edge][column] for edge, column in enumerate(cell)))
    before = net.alpha["cell"].detach().clone()
    assert nas_bench_201.to_ops(found.pick(net, Selection())) == tuple(OPS[column] for column in best)
    assert torch.equal(net.alpha["cell"], before)
    without = found.pick(net, Selection(none=False))
    assert found.cost(without) == table_cost([OPS.index(op) for op in nas_bench_201.to_ops(without)], PARAMETERS)


def test_none_is_never_taken_where_it_must_not_be():
    net = supernet()
    net.alpha["cell"].data[:, 0] = 5.0
    found = CostTarget(net, prices(net, "parameters"), Cost("parameters", target=372_346.0), none=False)
    assert "none" not in nas_bench_201.to_ops(found.pick(net, Selection()))
    assert found.expected().item() == pytest.approx(73306 + 6 * (28000 + 243040) / 4, rel=1e-3)


@pytest.mark.parametrize(("kind", "target"), [("parameters", 372_346.0), ("multiply_adds", 121_000_000)])
def test_a_real_search_keeps_to_its_budget(tmp_path, kind, target):
    wanted = Cost(kind, target)
    first = config("darts-first-order")
    settings = RunConfig(
        depth=1, channels=4, batch=16, rounds=15, inner_steps=1, hypergradient=first.hypergradient, cost=wanted
    )
    result = run(settings, tmp_path / "run")
    counts = count(result.architecture)
    reached = counts.params if kind == "parameters" else counts.multiply_adds["conv+fc"]
    assert abs(reached / target - 1) <= 0.05
    told = json.loads((tmp_path / "run" / "result.json").read_text())["cost"]
    assert (told["reached"], told["target"]) == (reached, target)
    assert told["deviation"] == pytest.approx(reached / target - 1)
    last = result.rounds[-1]
    assert last["cost"] == told["without_selection"]
    assert last["expected_cost"] == pytest.approx(told["expected_cooled"], rel=1e-5)


def test_the_penalty_moves_alpha_to_the_target(parts):
    ends = {}
    for weight in (0.0, 0.1):
        streams = [Batches(part, 8, seed=seed) for seed, part in enumerate(parts)]
        changes = {"kind": "parameters", "target": 129_306, "weight": weight}
        settings = config("darts-first-order", rounds=20, alpha={"rate": 0.02}, cost=changes)
        ends[weight] = [found.expected_cost for found in Task(supernet(), *streams, settings).search().rounds()][-1]
    assert abs(ends[0.1] / 129_306 - 1) < 0.5 * abs(ends[0.0] / 129_306 - 1)


def test_an_option_that_takes_no_part_is_not_picked(parts):
    """Not from α, nor from values in its place; and the cost target holds."""
    streams = [Batches(part, 8, seed=seed) for seed, part in enumerate(parts)]
    settings = config("darts-first-order", rounds=1, cost={"kind": "parameters", "target": 372_346})
    search = Task(supernet(), *streams, settings).search()
    search.mask = {"cell": [[op != "avg_pool_3x3" for op in OPS] for _ in range(6)]}
    values = torch.zeros(6, 5)
    values[:, OPS.index("avg_pool_3x3")] = 5.0
    search.net.alpha["cell"].data[:] = values
    assert "avg_pool_3x3" not in nas_bench_201.to_ops(search.pick())
    wanted = ["skip_connect", "nor_conv_1x1", "nor_conv_3x3", "skip_connect", "nor_conv_1x1", "skip_connect"]
    for row, op in enumerate(wanted):
        values[row, OPS.index(op)] = 1.0
    picked = search.pick({"cell": values})
    assert list(nas_bench_201.to_ops(picked)) == wanted
    assert search.cost.cost(picked) == 372_346


@pytest.mark.parametrize("method", ["random-nas", "setn"])
def test_what_is_drawn_keeps_to_the_budget(parts, method):
    streams = [Batches(part, 8, seed=seed) for seed, part in enumerate(parts)]
    changes = {"kind": "parameters", "target": 372_346}
    settings = config(method, rounds=1, cost=changes, selection={"samples": 3, "batches": 1})
    search = Task(supernet(), *streams, settings).search()
    list(search.rounds())
    assert count(search.select()).params == pytest.approx(372_346, rel=0.05)


def test_darts_sums_to_what_is_counted():
    net = supernet("darts", scale=1.0)
    found = CostTarget(net, prices(net, "parameters"), Cost("parameters", target=3_000_000.0))
    architecture = found.pick(net, Selection())
    edges = {name: [(e.source, e.target) for e in cell.edges] for name, cell in net.architecture().cells.items()}
    kept = {name: [(e.source, e.target) for e in cell.edges] for name, cell in architecture.cells.items()}
    assert kept == edges
    assert found.cost(architecture) == count(architecture).params == pytest.approx(3_000_000, rel=0.05)


def test_choices_sum_to_what_is_counted():
    def layer(name):
        return Choice({"wide": nn.Linear(8, 8), "bare": nn.Linear(8, 8, bias=False), "same": nn.Identity()}, name)

    net, x = ChoiceSupernet(nn.Sequential(layer("a"), layer("b"), nn.Linear(8, 2))), torch.zeros(4, 8)
    for kind, target in (("parameters", 90), ("multiply_adds", 82)):
        found = cost_target(net, config(cost={"kind": kind, "target": target}), lambda: x)
        counts = count_module(derive(net, found.pick(net, Selection())), x)
        reached = counts.params if kind == "parameters" else counts.multiply_adds["conv+fc"]
        assert reached == found.cost(found.pick(net, Selection())) == pytest.approx(target, rel=0.05)


class Several(nn.Module):
    """It takes more than one input, by place or by name."""

    def __init__(self):
        super().__init__()
        self.layer = Choice({"wide": nn.Linear(8, 8), "same": nn.Identity()}, "layer")

    def forward(self, x, more=None):
        return self.layer(x if more is None else x + more[0])


@pytest.mark.parametrize("form", [lambda x: x, lambda x: (x, [x]), lambda x: {"x": x}, lambda x: {"x": x, "more": [x]}])
def test_multiply_adds_of_a_model_with_several_inputs(form):
    net = ChoiceSupernet(Several())
    counted = prices(net, "multiply_adds", batch=lambda: form(torch.zeros(4, 8)))
    assert (counted.base, counted.options["layer"]) == (72.0, [[0.0, -72.0]])


def test_latency_from_a_file(tmp_path):
    table = measure_latency("nas-bench-201", Skeleton(depth=2, channels=4, classes=10, image=8), seconds=0)
    assert all(len(times) == 3 for times in table["ops"].values())
    assert table["ops"]["nor_conv_3x3"][0] > 0
    table |= {"base": 1.0, "ops": {op: [0.5 * number, 0.0, 0.25 * number] for number, op in enumerate(OPS)}}
    path = tmp_path / "latency.json"
    path.write_text(json.dumps(table))
    found = prices(supernet(), "latency", table=str(path))
    assert (found.base, found.options["cell"][3]) == (1.0, [0.0, 1.5, 3.0, 4.5, 6.0])
    path.write_text("{}")
    with pytest.raises(InputError, match="is not a table of"):
        prices(supernet(), "latency", table=str(path))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kind": "parameters"}, "cost.target is missing"),
        ({"kind": "parameters", "target": -1}, "cost.target is -1"),
        ({"kind": "parameters", "target": 200_000}, "the nearest has 213,306"),
        ({"kind": "latency", "target": 5}, "cost.table names no file"),
        ({"kind": "latency", "target": 5, "table": "nowhere.json"}, "nowhere.json cannot be read"),
        ({"kind": "parameters", "target": 4e5, "tolerance": 0}, "cost.tolerance is 0, expected a positive number"),
        ({"kind": "parameters", "target": 4e5, "skeleton": "mnist"}, "unknown skeleton 'mnist'"),
    ],
)
def test_what_is_refused(changes, message):
    with pytest.raises(InputError, match=message):
        cost_target(supernet(), config(cost=changes), lambda: None)


def test_spaces_and_methods_that_are_refused():
    wanted = {"kind": "parameters", "target": 4e5}
    with pytest.raises(InputError, match="an edge changes what every operation costs"):
        cost_target(supernet("nas-bench-1shot1-s1"), config(cost=wanted), lambda: None)
    data = load("digits").train
    with pytest.raises(InputError, match="a controller samples without it"):
        Task(supernet(), Batches(data, 8), Batches(data, 8), config("enas", cost=wanted)).search()
    inner = Choice({"a": nn.ReLU(), "b": nn.Tanh()}, "inner")
    with pytest.raises(InputError, match="has Choices in it"):
        cost_target(ChoiceSupernet(Choice({"c": inner, "d": nn.ReLU()}, "outer")), config(cost=wanted), lambda: None)


def test_the_skeleton_is_the_one_that_is_named():
    found = prices(supernet(), "parameters", "cifar100")
    assert found.base == 73306 + 65 * 90
