"""A search for a network of a given cost: parameters, multiply-adds, or measured milliseconds.

A network costs `base` and, for every decision, what the option taken there adds: cost = base + Σ c(decision, option).
Under α's softmax p its expectation is E = base + Σ p·c, which has a gradient in α: the penalty weight·(E/target − 1)²
pulls α to the target, by a softmax that cools, so that expectation and argmax come together. The selection then takes
the most probable architecture within the tolerance, by dynamic programming: the penalty makes it a good one, the
selection makes it hold.

In NAS-Bench-201 the sum is exact, and so is E. It is exact for a model with `Choice`s, unless they share modules. In
DARTS' space the sum is exact once a node's two edges are known; E takes the two that α keeps at the moment for granted,
and so does the selection: both change operations only. In NAS-Bench-1Shot1 an edge changes what every operation costs,
so there it is refused.
"""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from idarts.arch import Architecture
from idarts.errors import InputError
from idarts.layers.constants import constant
from idarts.searching.judge import largest
from idarts.searching.settings import Config, Cost, Selection
from idarts.searching.stage import Mask
from idarts.spaces import Supernet
from idarts.spaces.prices import UNITS, Prices, prices

LAST_TEMPERATURE = 0.03  # of the softmax under which the cost is expected; it falls from 1 with the budget
TIE = 1e-3  # by which the others of equal options are lowered below the one that is taken
GRAIN = 0.01  # of the tolerance: costs that agree this well are held the same while architectures are compared


@dataclass(frozen=True)
class CostTarget:
    """What is expected, what is penalised and what may be selected, for one supernet.

    >>> from idarts.spaces import space
    >>> chosen = space("nas-bench-201")
    >>> net = chosen.supernet(chosen.skeleton.changed(depth=1, channels=4))
    >>> limit = CostTarget(net, prices(net, "parameters"), Cost("parameters", target=560_000.0))
    >>> _ = torch.nn.init.zeros_(net.alpha["cell"])
    >>> round(limit.expected().item())  # 73,306 and 6 · (28,000 + 243,040) / 5
    398554
    >>> limit.cost(limit.pick(net, Selection()))  # two 3×3 convolutions
    559386.0
    """

    net: Supernet
    prices: Prices
    settings: Cost
    none: bool = True  # whether `none` may be taken
    mask: Callable[[], Mask] = dict  # the options that are alive; without it, all are

    def expected(self, temperature: float = 1.0) -> Tensor:
        """The cost under α's softmax, among the living options."""
        alphas = self._living(dict(self.net.alpha.items()))
        taken = self.net.path(largest(self.net, Selection(), alphas))  # a row that DARTS' rule leaves out takes no part
        added = [
            taken[name].weights.sum(1)
            * (self._softmax(alpha, temperature) * alpha.new_tensor(self.prices.options[name])).sum(1)
            for name, alpha in alphas.items()
        ]
        return self.prices.base + torch.cat(added).sum()

    def expected_at(self, used: float) -> Tensor:
        """The cost under the softmax that cools while the budget is used up."""
        return self.expected(temperature(used))

    def penalty(self, used: float) -> Tensor:
        """What is added to the validation loss when so large a share of the search's budget is used up."""
        return self.settings.weight * (self.expected_at(used) / self._target - 1) ** 2

    def gradient(self, used: float) -> tuple[Tensor, ...]:
        """The gradient of the penalty in α."""
        alphas = self.net.architecture_parameters()
        return torch.autograd.grad(self.penalty(used), alphas, allow_unused=True, materialize_grads=True)

    def cost(self, architecture: Architecture) -> float:
        """The sum for one architecture."""
        path = {name: mixture.weights.tolist() for name, mixture in self.net.path(architecture).items()}
        added = (
            price
            for name, rows in self.prices.options.items()
            for row, taken in zip(rows, path[name], strict=True)
            for price, weight in zip(row, taken, strict=True)
            if weight
        )
        return self.prices.base + sum(added)

    def pick(self, net: Supernet, rule: Selection, alphas: Mapping[str, Tensor] | None = None) -> Architecture:
        """As `largest`, but within the tolerance of the target; the nearest in cost, where none is."""
        rule = replace(rule, none=self.none)
        values = {name: alpha.detach().clone() for name, alpha in (alphas or net.alpha).items()}
        taken = net.path(largest(net, rule, values))
        rows = [(name, row) for name in values for row, kept in enumerate(taken[name].weights.sum(1).tolist()) if kept]
        scores = {name: self._softmax(value, 1.0).log().tolist() for name, value in values.items()}
        options = [
            [
                (column, score, self.prices.options[name][row][column])
                for column, score in enumerate(scores[name][row])
                if score > -torch.inf
            ]
            for name, row in rows
        ]
        for (name, row), column in zip(rows, self._most_probable(options), strict=True):
            value = values[name][row]
            first = int(self._softmax(value[None], 1.0).argmax())
            value[[column, first]] = value[[first, column]]  # a rule that compares decisions sees no change
            value[(value == value[column]) & (torch.arange(len(value), device=value.device) != column)] -= TIE
        return largest(net, rule, values)

    def outcome(self, selected: Architecture, unbound: Architecture) -> dict[str, Any]:
        """How close the selected architecture came, for a run's result; `unbound` is what α alone selects."""
        reached = self.prices.whole(selected)
        deviation = reached / self._target - 1
        if abs(deviation) > self.settings.tolerance:
            warnings.warn(
                f"the cost of the selected network is {100 * deviation:+.1f} % away from cost.target; "
                "raise cost.weight, or search longer",
                UserWarning,
                stacklevel=2,
            )
        return {
            "kind": self.settings.kind,
            "target": self._target,
            "reached": reached,
            "deviation": deviation,
            "expected": self.expected().item(),
            "expected_cooled": self.expected(LAST_TEMPERATURE).item(),
            "without_selection": self.cost(unbound),
        }

    @property
    def _target(self) -> float:
        assert self.settings.target is not None
        return self.settings.target

    def _living(self, alphas: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """−∞ for the options that have left."""
        dead = {name: ~constant(rows, alphas[name].device) for name, rows in self.mask().items()}
        return {**alphas, **{name: alphas[name].masked_fill(gone, -torch.inf) for name, gone in dead.items()}}

    def _softmax(self, alpha: Tensor, temperature: float) -> Tensor:
        if (self.none and self.prices.none) or self.net.none is None:
            return (alpha / temperature).softmax(dim=1)
        barred = torch.arange(alpha.shape[1], device=alpha.device) == self.net.none
        return (alpha / temperature).masked_fill(barred, -torch.inf).softmax(dim=1)

    def _most_probable(self, options: list[list[tuple[int, float, float]]]) -> tuple[int, ...]:
        """One (column, score, cost) of each list: the largest sum of scores of those whose sum of costs will do."""
        target, tolerance = self._target, self.settings.tolerance
        best = {0: (0.0, self.prices.base, ())}
        for choices in options:
            longer: dict[int, Any] = {}
            for score, cost, columns in best.values():
                for column, more, price in choices:
                    grain = round((cost + price) / (GRAIN * tolerance * target))
                    if grain not in longer or longer[grain][0] < score + more:
                        longer[grain] = (score + more, cost + price, (*columns, column))
            best = longer
        inside = [one for one in best.values() if abs(one[1] - target) <= tolerance * target]
        if inside:
            return max(inside, key=lambda one: one[0])[2]
        return min(best.values(), key=lambda one: abs(one[1] - target))[2]


def temperature(used: float) -> float:
    """Of the softmax under which the cost is expected, when so large a share of the search's budget is used up.

    >>> temperature(0), round(temperature(1), 6)
    (1.0, 0.03)
    """
    return 1 - (1 - LAST_TEMPERATURE) * used


def cost_target(
    net: Supernet, settings: Config, batch: Callable[[], Any], mask: Callable[[], Mask] = dict
) -> CostTarget | None:
    """The cost target that a search's settings name; `batch` gives inputs, for a model of which nothing else is known.

    `mask` gives the options that are alive when a cost is expected.

    A target that no architecture of the space meets is refused here, before anything is searched.

    >>> from idarts.searching import config
    >>> from idarts.spaces import space
    >>> chosen = space("nas-bench-201")
    >>> net = chosen.supernet(chosen.skeleton.changed(depth=1, channels=4))
    >>> cost_target(net, config(cost={"kind": "parameters", "target": 2_000_000.0}), lambda: None)
    Traceback (most recent call last):
    idarts.errors.InputError: cost.target is 2,000,000 parameters, and no architecture comes within 5 %: \
the nearest has 1,531,546; change cost.target or cost.tolerance
    """
    wanted = settings.cost
    if wanted.kind == "none":
        return None
    if wanted.target is None:
        raise InputError(f"cost.target is missing; give the {UNITS[wanted.kind]} to aim at")
    priced = prices(net, wanted.kind, wanted.skeleton, table=wanted.table, batch=batch)
    target = CostTarget(net, priced, wanted, settings.none and settings.selection.none, mask)
    nearest = target.cost(target.pick(net, settings.selection))
    if abs(nearest - wanted.target) > wanted.tolerance * wanted.target:
        raise InputError(
            f"cost.target is {wanted.target:,.10g} {UNITS[wanted.kind]}, and no architecture comes within "
            f"{100 * wanted.tolerance:g} %: the nearest has {nearest:,.10g}; change cost.target or cost.tolerance"
        )
    return target
