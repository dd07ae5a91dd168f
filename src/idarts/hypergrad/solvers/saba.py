"""SABA: the running solution with variance reduction, for finitely many batches."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from idarts.errors import InputError
from idarts.hypergrad.implicit import Solution, System
from idarts.hypergrad.method import Result, State
from idarts.hypergrad.problem import Problem
from idarts.hypergrad.products import Loss
from idarts.hypergrad.vectors import Layout, Tensors, relative
from idarts.hypergrad.warm import Warm, along


@dataclass(frozen=True)
class Part:
    """Loss number `index` of `count`, whose mean is the whole loss: one of the batches that the data is cut into."""

    loss: Loss
    index: int
    count: int

    def __post_init__(self) -> None:
        if not 0 <= self.index < self.count:
            raise InputError(f"Part: index={self.index} is not one of the {self.count} parts 0 … {self.count - 1}")

    def __call__(self, w: Tensors, a: Tensors) -> Tensor:
        return self.loss(w, a)

    @property
    def outputs(self) -> Callable[..., Tensor]:
        return self.loss.outputs  # type: ignore[attr-defined,no-any-return]  # for Gauss–Newton, where the loss has it

    @property
    def criterion(self) -> Callable[..., Tensor]:
        return self.loss.criterion  # type: ignore[attr-defined,no-any-return]  # as above


@dataclass(frozen=True)
class Saba(Warm):
    """The directions of `Running`, each replaced by D_i(z_t) − table_i + mean(table), where table_i is the last D_i.

    SABA (Dagréou, Ablin, Vaiter, Moreau 2022), which is SAGA for ∂L1/∂w, (∂²L1/∂w²)v and v·∂²L1/∂α∂w with inner batch
    i, and for ∂L2/∂w and ∂L2/∂α with outer batch j. Both losses are `Part`s. If i and j are drawn uniformly, each
    direction is unbiased whatever the table holds (entries start at zero), and near a solution its noise vanishes.
    `estimate.inner_gradient` is the corrected one, for the step of w.

    The table holds 2·|w| + |α| numbers for each inner batch and |w| + |α| for each outer one. A batch must be the same
    whenever its index comes back: no new shuffling, no augmentation. That is why a search cannot use this method, and
    it is not in `SOLVERS`.

    >>> from idarts.hypergrad import hypergradient
    >>> w, a = (torch.tensor(0.5, requires_grad=True),), (torch.tensor(1.0, requires_grad=True),)
    >>> inner = [lambda w, a, t=t: (w[0] - t) ** 2 / 2 + a[0] * w[0] ** 2 / 2 for t in (0.0, 2.0)]  # w* = 1/(1 + a)
    >>> outer, state = (lambda w, a: w[0] ** 2 / 2), None
    >>> for call in range(60):
    ...     losses = Part(inner[call % 2], call % 2, 2), Part(outer, 0, 1)
    ...     estimate = hypergradient(*losses, w, a, Saba(step=0.3, damping=0.0), state=state)
    ...     state = estimate.state
    >>> estimate.grads[0].round(decimals=3)
    tensor(-0.1250)
    """

    @property
    def kept(self) -> set[str]:
        return super().kept | {"tables"}

    def solve(self, system: System, state: State) -> Solution:
        raise NotImplementedError("the directions are corrected by the table")

    def estimate(self, problem: Problem, state: State) -> Result:
        inner, outer = (_part(loss) for loss in (problem.inner[0], problem.outer))
        paces = []

        def start(system: System) -> Tensor:
            paces.append(self.pace(system, state))
            return self.first_step(system, paces[0]) if state is None else system.load(state["v"])

        now = self.directions(problem, start)
        pace, products = paces[0].after(now.system, now.v, now.image), now.system.products
        tables = {"inner": _empty(inner.count), "outer": _empty(outer.count)} if state is None else state["tables"]
        (gradient, image, *mixed), inner_table = _corrected(
            tables["inner"], inner, (products.gradient, now.image, *now.mixed)
        )
        (g, *direct), outer_table = _corrected(tables["outer"], outer, (now.system.g, *now.direct))
        residual = problem.averaging.number(image - g)
        return Result(
            now.outer_loss,
            tuple(direct),
            tuple(-m for m in mixed),
            now.gradient_evaluations,
            products.hvps,
            inner_loss=products.loss,
            inner_gradient=gradient,
            solution=now.v,
            state={
                "v": now.v - pace.step * residual,
                "spectrum": pace.state,
                "tables": {"inner": inner_table, "outer": outer_table},
            },
            measures={"residual": relative(residual, g), **along(now.v, now.image, now.system.g), **pace.measures},
            terms=1,
            step=pace.step,
        )


def _part(loss: Loss) -> Part:
    if not isinstance(loss, Part):
        raise InputError(
            "Saba must know which of the batches a loss belongs to; give Part(loss, index, count) for both losses"
        )
    return loss


def _empty(count: int) -> dict[str, Any]:
    return {"rows": [None] * count, "mean": None}


def _corrected(table: dict[str, Any], part: Part, values: Tensors) -> tuple[Tensors, dict[str, Any]]:
    """The values with their table's correction, and the new table, which shares the other rows with the old one."""
    if len(table["rows"]) != part.count:
        raise InputError(f"the state has {len(table['rows'])} parts, but this loss has {part.count}; pass state=None")
    layout = Layout.of(values)
    row = layout.flatten(values)
    old, mean = (
        torch.zeros_like(row) if kept is None else kept.to(row) for kept in (table["rows"][part.index], table["mean"])
    )
    rows = [row if index == part.index else other for index, other in enumerate(table["rows"])]
    change = row - old
    return layout.unflatten(change + mean), {"rows": rows, "mean": mean + change / part.count}
