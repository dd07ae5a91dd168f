"""MRBO and SUSTAIN: recursive momentum on the running solution and on the hypergradient."""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from torch import Tensor

from idarts.hypergrad.implicit import Solution, System
from idarts.hypergrad.isolation import Randomness
from idarts.hypergrad.method import Result, State, require
from idarts.hypergrad.problem import Problem
from idarts.hypergrad.solvers import SOLVERS
from idarts.hypergrad.vectors import Layout, Tensors, leaves, like, relative
from idarts.hypergrad.warm import Directions, Warm, along


@dataclass(frozen=True)
class Recursive(Warm):
    """d_t = D(z_t; ξ_t) + (1 − η)[d_{t−1} − D(z_{t−1}; ξ_t)] for the directions D of v and of α, z = (w, v, α).

    MRBO (Yang, Ji, Liang 2021, "Provably faster algorithms for bilevel optimization") and SUSTAIN (Khanduri et al.
    2021, "A near-optimal algorithm for stochastic bilevel optimization via double-momentum") use this form of momentum,
    which is STORM's. Here it acts on the directions of `Running`: D_v = (∂²L1/∂w² + damping) v − ∂L2/∂w, D_α = ∂L2/∂α −
    v · ∂²L1/∂α∂w. The batch ξ_t is evaluated at the last point, too, so a call costs twice that of `Running`, and noise
    that does not depend on the point is averaged over 1/η calls without a lag behind the moving z. If the noise changes
    from point to point, the changes of the last 1/η moves of z add up: take η near 1 while the steps are large.

    >>> import torch
    >>> from idarts.hypergrad import hypergradient
    >>> inner, outer = (lambda w, a: (w[0] - a[0]) ** 2), (lambda w, a: w[0] ** 2)  # w* = α, H = 2, g = 6
    >>> w, a = (torch.tensor(3.0, requires_grad=True),), (torch.tensor(3.0, requires_grad=True),)
    >>> method = Recursive(step=0.25, damping=0.0, eta=0.5)
    >>> first = hypergradient(inner, outer, w, a, method)
    >>> hypergradient(inner, outer, w, a, method, state=first.state).grads  # without noise as Running
    (tensor(4.5000),)
    """

    eta: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        require(isinstance(self.eta, float | int) and 0 < self.eta <= 1, f"eta={self.eta!r}", "above 0 and at most 1")

    @property
    def kept(self) -> set[str]:
        return super().kept | {"at", "w", "a", "residual", "direct", "implicit"}

    def solve(self, system: System, state: State) -> Solution:
        raise NotImplementedError("the directions are taken at two points")

    def estimate(self, problem: Problem, state: State) -> Result:
        random, paces = Randomness.now(problem.devices), []

        def start(system: System) -> Tensor:
            paces.append(self.pace(system, state))
            return self.first_step(system, paces[0]) if state is None else system.load(state["v"])

        now = self.directions(problem, start)
        residual, direct, implicit = _averaged(problem, now)
        pace = paces[0].after(now.system, now.v, now.image)
        evaluations, hvps = now.gradient_evaluations, now.system.products.hvps
        if state is not None:
            random.restore()
            before = replace(problem, w=leaves(like(state["w"], problem.w)), a=leaves(like(state["a"], problem.a)))
            last = self.directions(before, partial(System.load, vector=state["at"]))
            evaluations, hvps = evaluations + last.gradient_evaluations, hvps + last.system.products.hvps
            kept = [state["residual"].to(residual), *(like(state[name], direct) for name in ("direct", "implicit"))]
            residual, direct, implicit = (
                self._recur(*parts)
                for parts in zip((residual, direct, implicit), kept, _averaged(before, last), strict=True)
            )
        return Result(
            now.outer_loss,
            direct,
            implicit,
            evaluations,
            hvps,
            inner_loss=now.system.products.loss,
            inner_gradient=now.system.products.gradient,
            solution=now.v,
            state={
                "v": now.v - pace.step * residual,
                "spectrum": pace.state,
                "at": now.v,
                "w": tuple(t.detach().clone() for t in problem.w),
                "a": tuple(t.detach().clone() for t in problem.a),
                "residual": residual,
                "direct": direct,
                "implicit": implicit,
            },
            measures={
                "residual": relative(residual, now.system.g),
                **along(now.v, now.image, now.system.g),
                **pace.measures,
            },
            terms=1,
            step=pace.step,
        )

    def _recur(self, new: Any, kept: Any, last: Any) -> Any:
        if isinstance(new, tuple):
            return tuple(self._recur(*parts) for parts in zip(new, kept, last, strict=True))
        return new + (1 - self.eta) * (kept - last)


def _averaged(problem: Problem, directions: Directions) -> tuple[Tensor, Tensors, Tensors]:
    """D_v and the two parts of D_α, the same in all processes."""
    layout = Layout.of(directions.direct)
    parts = [layout.flatten(directions.direct), -layout.flatten(directions.mixed)]
    direct, implicit = (layout.unflatten(problem.averaging.mean(part)) for part in parts)
    return problem.averaging.number(directions.residual), direct, implicit


SOLVERS.add("recursive", Recursive)
