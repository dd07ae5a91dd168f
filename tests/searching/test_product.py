"""Every relaxation × estimator × selection runs a round on a tiny supernet, or is refused with a reason."""

import math
from itertools import product

import pytest
import torch
from torch import nn

from idarts import Choice, InputError, derive
from idarts.data import Batches, load
from idarts.hypergrad import SOLVERS
from idarts.searching import OBJECTIVES, PENALTIES, RELAXATIONS, RULES, SELECTIONS, STRATEGIES, Task, config
from idarts.searching.registries import build_part
from idarts.searching.streams import TensorBatches
from idarts.spaces import ChoiceSupernet, network, space

# What has to be refused, and the words that say why. Everything else has to run.
REFUSED = {
    ("uniform", None, None): "gives α no gradient",
    ("sampled", None, None): "gives α no gradient",
    ("auxiliary-skip", None, None): "needs a space with skip connections",  # which a model of Choices is not
    ("dirichlet", "second order", None): "has no second derivative",
    ("partial-channels", None, None): "built into a supernet",  # which a model of Choices is not
}
OPTIONS = {
    "nystrom": {"options": {"rank": 3}},
    "truncated-reverse": {"steps": 2, "terms": 1},
    "reverse": {"steps": 2},
}


def expected(relaxation, method, selection):
    """The reason to refuse a point, or None; the settings are checked before the supernet."""
    order = "first order" if method in ("first-order", "f2sa", "bome") else "second order"
    for (r, m, s), reason in REFUSED.items():
        if r in (None, relaxation) and m in (None, order) and s in (None, selection):
            return reason
    return None


def start(relaxation="softmax", method="first-order", selection="argmax", **changes):
    torch.manual_seed(0)
    model = nn.Sequential(
        Choice({"a": nn.Linear(3, 4), "b": nn.Linear(3, 4, bias=False), "c": nn.Sequential(nn.Linear(3, 4))}, "one"),
        nn.Tanh(),
        nn.Linear(4, 2),
    )
    x = torch.randn(24, 3)
    streams = [TensorBatches(x, (x.sum(1) > 0).long(), 8, seed) for seed in range(2)]
    settings = config(
        rounds=1,
        inner_steps=1,
        relaxation=relaxation,
        hypergradient={"method": method, "damping": 0.1, **OPTIONS.get(method, {})},
        selection={"rule": selection, "samples": 3, "batches": 1, "steps": 1},
        **changes,
    )
    return Task(ChoiceSupernet(model), *streams, settings, network=lambda chosen: derive(model, chosen)).search()


@pytest.mark.parametrize(("relaxation", "method"), list(product(RELAXATIONS, SOLVERS)))
def test_every_point_runs_or_says_why_not(relaxation, method):
    for selection in SELECTIONS:
        reason = expected(relaxation, method, selection)
        if reason:
            with pytest.raises(InputError, match=reason):
                start(relaxation, method, selection)
            continue
        search = start(relaxation, method, selection)
        (only,) = search.rounds()
        assert math.isfinite(only.valid_loss), selection
        assert only.measures["norm"] >= 0
        assert set(search.select().choices) == {"one"}


@pytest.mark.parametrize("method", SOLVERS)
def test_partial_channels_run_where_they_are_built_in(method):
    """The cells of the product that a model of Choices cannot have: one round, and every selection after it."""
    chosen = space("nas-bench-201")
    skeleton = chosen.skeleton.changed(depth=1, channels=8, classes=10, image=8)
    relaxation = RELAXATIONS["partial-channels"](share=2)
    net = chosen.supernet(skeleton, in_channels=1, relaxation=relaxation)
    settings = config(
        rounds=1,
        inner_steps=1,
        relaxation="partial-channels",
        relaxation_options={"share": 2},
        hypergradient={"step": 0.01, "damping": 0.1, **OPTIONS.get(method, {}), "method": method},
        selection={"samples": 2, "batches": 1, "steps": 1},
    )
    streams = [Batches(part, 8) for part in (load("digits").train, load("digits").test)]
    task = Task(net, *streams, settings, network=lambda cell: network(cell, skeleton, in_channels=1))
    search = task.search()
    if method == "exact":
        with pytest.raises(InputError, match="too large for"):
            next(search.rounds())
        return
    assert [math.isfinite(one.valid_loss) for one in search.rounds()] == [True]
    for rule in SELECTIONS:
        search.selector = build_part(SELECTIONS, rule, {})
        assert search.select().space == "nas-bench-201"
        assert bool(search.tried) == (rule == "trials")


PATHS = ("gumbel", "sampled", "uniform")  # relaxations that draw one path


@pytest.mark.parametrize(("relaxation", "objective"), list(product(RELAXATIONS, OBJECTIVES)))
def test_every_objective_of_the_weights_runs_with_every_relaxation_or_says_why_not(relaxation, objective):
    """A relaxation of the weight steps; α's own is the softmax."""
    weights = {"relaxation": relaxation, "objective": objective}
    if relaxation == "partial-channels":
        with pytest.raises(InputError, match="built into a supernet"):
            start(weights=weights)
        return
    if relaxation == "auxiliary-skip":
        with pytest.raises(InputError, match="needs a space with skip connections"):
            next(start(weights=weights).rounds())
        return
    if objective == "archive" and relaxation not in PATHS:
        with pytest.raises(InputError, match="trains single paths"):
            next(start(weights=weights).rounds())
        return
    (only,) = start(weights=weights).rounds()
    assert math.isfinite(only.train_loss)


@pytest.mark.parametrize(("rule", "penalty"), list(product(RULES, PENALTIES)))
def test_every_rule_runs_with_every_penalty(rule, penalty):
    for relaxation in set(RELAXATIONS) - {"uniform", "sampled", "partial-channels", "auxiliary-skip"}:
        search = start(relaxation, alpha={"rule": rule, "penalty": penalty})
        (only,) = search.rounds()
        assert math.isfinite(only.valid_loss)
        assert all(alpha.isfinite().all() for alpha in search.a)


@pytest.mark.parametrize(("strategy", "relaxation"), list(product(["fixed", "one-level", "importance"], RELAXATIONS)))
def test_strategies_with_a_relaxation_run_with_every_one_or_say_why_not(strategy, relaxation):
    assert strategy in STRATEGIES
    refused = {"partial-channels": "built into a supernet", "auxiliary-skip": "needs a space with skip connections"}
    if strategy == "one-level":
        refused |= dict.fromkeys(["uniform", "sampled"], "gives α no gradient")
    if relaxation in refused:
        with pytest.raises(InputError, match=refused[relaxation]):
            start(relaxation, strategy=strategy)
        return
    (only,) = start(relaxation, strategy=strategy).rounds()
    assert math.isfinite(only.valid_loss)


def test_the_product_is_not_empty():
    """So that a registry which finds no files does not pass for one without faults."""
    assert len(RELAXATIONS) >= 11
    assert len(OBJECTIVES) >= 3
    assert len(PENALTIES) >= 4
    assert len(RULES) >= 2
    assert len(SOLVERS) >= 14
    assert len(SELECTIONS) >= 4
