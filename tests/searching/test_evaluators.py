"""Evaluators: what a reward is, what it costs, and that nobody reads the table by accident."""

import json

import pytest
import torch
from proposing import start

import idarts
from idarts import Choice, InputError
from idarts.arch import parse
from idarts.cli import main
from idarts.searching import EVALUATORS, METHODS, STRATEGIES, Evaluation, Evaluator, config
from idarts.tables import find

CELL = parse("nas-bench-201:1462")


class Made:
    """A table of made-up numbers."""

    def query(self, architecture):
        return {"cifar10": {"valid": 40.0 + len(str(architecture)) % 10, "test": 1.0}}

    def accuracy(self, architecture, dataset="cifar10", split="test"):
        return self.query(architecture)[dataset][split]


def test_no_method_reads_the_table_unless_its_settings_say_so():
    assert list(EVALUATORS) == ["shared-weights", "table", "trials"]
    assert {config(name).evaluator.kind for name in METHODS} == {"trials"}


def test_a_trial_is_the_same_each_time_and_costs_its_steps():
    search = start("random-search", evaluator=None, rounds=2, evaluator_settings={"steps": 3, "batches": 2})
    first, again = search.strategy.evaluator(CELL), search.strategy.evaluator(CELL)
    assert first == again
    assert first.cost == pytest.approx(3 + 2 / 3)
    assert first.reward == first.accuracy
    for place in (1, 2):
        next(search.rounds())
        assert search.gradient_evaluations == pytest.approx(place * (3 + 2 / 3))
    assert not search.shares_weights


def test_shared_weights_are_those_of_the_path_and_leave_no_trace():
    sharing = {"kind": "shared-weights", "batches": 2}
    search = start("regularised-evolution", evaluator=None, rounds=3, inner_steps=2, evaluator_settings=sharing)
    before = {name: value.clone() for name, value in search.net.state_dict().items()}
    place = search.task.valid.state_dict()
    evaluation = search.strategy.evaluator(CELL)
    assert all(torch.equal(value, before[name]) for name, value in search.net.state_dict().items())
    search.task.valid.load_state_dict(place)
    right = []
    with torch.no_grad():
        for _ in range(2):
            images, labels = next(search.task.valid)
            outputs = search.net(images, mixtures=search.net.path(CELL))
            right.append((outputs.argmax(1) == labels).float().mean())
    assert evaluation.reward == pytest.approx(torch.stack(right).mean().item())
    assert evaluation.cost == pytest.approx(2 / 3)
    list(search.rounds())
    assert search.spent.weight_steps == 6
    assert search.gradient_evaluations == pytest.approx(6 + 3 * 2 / 3)
    assert any(not torch.equal(weight, before[name]) for name, weight in search.net.named_parameters())
    search.net.path(search.select())


def test_the_table_says_that_it_is_read_and_counts():
    known = find("nas-bench-201", Made())
    with pytest.warns(UserWarning, match="reads the benchmark's table"):
        search = start("random-search", evaluator=None, table=known, rounds=3, evaluator_settings={"kind": "table"})
    rounds = list(search.rounds())
    assert [one.measures["queries"] for one in rounds] == [1, 2, 3]
    assert all(0.4 <= one.measures["reward"] < 0.5 for one in rounds)  # validation, not test
    assert {one.valid_loss for one in rounds} == {None}  # NaN would mean that the round was skipped
    assert search.gradient_evaluations == 0


def test_without_a_table_its_evaluator_is_refused():
    with pytest.raises(InputError, match="needs the benchmark's table"):
        start("random-search", evaluator=None, rounds=3, evaluator_settings={"kind": "table"})


PROPOSING = [name for name in METHODS if not STRATEGIES[config(name).strategy].shares_weights]


@pytest.mark.parametrize("method", PROPOSING)
def test_a_model_of_ones_own_is_refused(method, tmp_path):
    model = Choice({"line": torch.nn.Linear(4, 2), "nothing": torch.nn.Linear(4, 2, bias=False)}, name="layer")
    data = torch.randn(32, 4), torch.arange(32) % 2
    with pytest.raises(InputError, match=r"search a space by name|none can be built from this model"):
        idarts.search(model, data, method=method, batch=8, rounds=2, out=tmp_path / "run")


def test_what_needs_shared_weights_is_refused_before_the_search():
    for rule in ("best-of", "perturbation", "evolution"):
        with pytest.raises(InputError, match="needs shared weights"):
            start("random-search", rounds=1, selection={"rule": rule})
    with pytest.raises(InputError, match="cost needs α"):
        start("pnas", rounds=99, cost={"kind": "parameters", "target": 1000.0})
    with pytest.raises(InputError, match=r"has no 'growth'; spaces with it: darts, .*nas-bench-201"):
        start("pnas", name="nas-bench-1shot1-s1", rounds=99)


class Mine(Evaluator):
    def __init__(self, search):
        self.seen = 0

    def __call__(self, architecture):
        self.seen += 1
        return Evaluation(float(self.seen), cost=2.0)


def test_an_evaluator_of_ones_own_by_object(tmp_path):
    data = torch.randint(255, (32, 8, 8, 1), dtype=torch.uint8), torch.arange(32) % 2
    size = {"batch": 8, "depth": 1, "channels": 4, "rounds": 3}
    found = idarts.search(
        "nas-bench-201", data, method="random-search", evaluator={"kind": Mine}, out=tmp_path / "run", **size
    )
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert result["gradient_evaluations"] == 6
    assert found.rounds[-1]["best_reward"] == 3.0


def test_the_list_of_methods_says_what_each_needs(capsys):
    assert main(["methods", "--json"]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert rows["pnas"]["needs"] == ["sample", "growth", "network"]
    assert rows["regularised-evolution"]["axes"]["evaluator"] == "trials"
    assert rows["mdenas"]["needs"] == ["supernet"]
    assert all(row["paper"] for row in rows.values())
