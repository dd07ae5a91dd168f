"""The end of a search: an architecture by the rule of its settings, and what it cost to find it."""

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from idarts.arch import Architecture
from idarts.engine.ranks import all_mean
from idarts.errors import InputError
from idarts.searching.round import judged, replayed
from idarts.searching.selection import Judge, Pick, best_of, by_perturbation, drawn, largest
from idarts.searching.trials import Trial, by_trials, neighbours

if TYPE_CHECKING:
    from idarts.searching.loop import Search


def selected(search: "Search") -> tuple[Architecture, float]:
    """The architecture, and gradient evaluations; of the validation batches each rank looks at its share."""
    net, rule, pick = search.net, search.selection, _pick(search)
    if rule.rule == "argmax":
        return pick(net, rule, None), 0.0

    def score(outputs: Any, labels: Any) -> Tensor:
        """The larger the better: accuracy or, where the task is no classification, the loss turned round."""
        loss, right = judged(search.loss(outputs, labels), outputs, labels)
        return all_mean(torch.where(right.isnan(), -loss, right))

    judge = Judge(net, [next(search.valid) for _ in range(rule.batches)], score)
    if rule.rule == "trials":
        candidates = neighbours(net, rule, pick)
        trial = _trial(search, judge.batches)
        found, cost, search.tried = by_trials(trial, candidates, rule.steps, search.on_message)
        return found, cost
    search.on_message(f"selection: {rule.rule}")
    if rule.rule == "perturbation":
        return by_perturbation(judge, rule, pick)
    return best_of(judge, [_drawn(search) for _ in range(rule.samples)])


def require_selectable(search: "Search") -> None:
    """Refuse a rule that cannot be followed at the end."""
    if search.selection.rule == "trials" and search.build is None:
        raise InputError("selection.rule is trials, but of this model no networks can be built; use another rule")


def _pick(search: "Search") -> Pick:
    return search.budget.pick if search.budget else largest


def _drawn(search: "Search") -> Architecture:
    rule = search.selection
    if not search.controller:
        return drawn(search.net, rule, _pick(search))
    path = search.controller.drawn_path()
    return largest(search.net, rule, {name: mixture.weights for name, mixture in path.items()})


def _trial(search: "Search", valid: list[Any]) -> Trial:
    require_selectable(search)
    assert search.build is not None
    rule = search.selection
    return Trial(search.build, replayed(search.train), valid, search.loss, rule.rate, search.settings.seed)
